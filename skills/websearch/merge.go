package main

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// A ranking is what one engine found, best first.
type ranking struct {
	engine string
	weight float64
	hits   []hit
}

// A filter says which hosts are wanted.
type filter struct{ allowed, blocked []string }

func (f filter) passes(host string) bool {
	return (len(f.allowed) == 0 || within(host, f.allowed)) && !within(host, f.blocked)
}

// A result is one page that engines found.
type result struct {
	Title     string         `json:"title"`
	URL       string         `json:"url"`
	Snippet   string         `json:"snippet" doc:"what an engine shows of it"`
	Engines   []string       `json:"engines" doc:"that found it"`
	Positions map[string]int `json:"positions" doc:"its place in the list of each engine, from 1"`
	Score     float64        `json:"score" doc:"sum over the engines of weight/(60+place)"`
	Published string         `json:"published,omitempty" doc:"YYYY-MM-DD, if an engine says so"`

	key, host, note string
	places          []place
}

// A place is where an engine has a page.
type place struct {
	engine string
	n      int
}

// What shapes the list.
const (
	rankOffset = 60 // of reciprocal rank fusion: how little the first places count above the others
	window     = 10 // first results
	perHost    = 3  // of one host among them
	maxTitle   = 200
	maxSnippet = 500
)

// merge makes one list of what the engines found. The order of lists does not
// count, no page is lost and none is there twice.
func merge(lists []ranking, f filter, now time.Time) []result {
	lists = slices.Clone(lists)
	slices.SortFunc(lists, func(a, b ranking) int { return strings.Compare(a.engine, b.engine) })
	most := 0
	for _, list := range lists {
		most += len(list.hits)
	}
	pages, order, room := make(map[string]*result, most), make([]*result, 0, most), make([]result, most)
	for _, list := range lists {
		for i, h := range list.hits {
			a := h.at
			if !f.passes(a.host) { // the places of the others stay as they are
				continue
			}
			p := pages[a.key]
			if p == nil {
				p = &room[len(order)]
				p.key, p.host = a.key, a.host
				pages[a.key], order = p, append(order, p)
			}
			p.add(list, i+1, h, a.shown, now)
		}
	}
	slices.SortFunc(order, byScore)
	return spread(order)
}

// add counts a hit. Of what engines say differently, the choice does not depend
// on who said it first.
func (p *result) add(list ranking, at int, h hit, shown string, now time.Time) {
	if n := len(p.places); n == 0 || p.places[n-1].engine != list.engine { // the best place counts, which is the first
		p.places = append(p.places, place{list.engine, at})
		p.Score += list.weight / float64(rankOffset+at)
	}
	if p.URL == "" || betterURL(shown, p.URL) {
		p.URL = shown
	}
	p.Title, p.Snippet, p.note = longer(p.Title, h.title), longer(p.Snippet, h.snippet), longer(p.note, h.note)
	if d := day(h.published, now); d != "" && (p.Published == "" || d < p.Published) {
		p.Published = d
	}
}

// betterURL prefers https, then what is shorter.
func betterURL(a, b string) bool {
	if s, t := strings.HasPrefix(a, "https:"), strings.HasPrefix(b, "https:"); s != t {
		return s
	}
	return len(a) < len(b) || len(a) == len(b) && a < b
}

func longer(a, b string) string {
	if len(b) > len(a) || len(b) == len(a) && b < a {
		return b
	}
	return a
}

func byScore(a, b *result) int {
	switch {
	case a.Score != b.Score:
		return cmp.Compare(b.Score, a.Score)
	case len(a.places) != len(b.places):
		return len(b.places) - len(a.places)
	}
	return strings.Compare(a.key, b.key)
}

// spread moves what is too much of one host behind the first results, as far as
// there are others to take the place.
func spread(order []*result) []result {
	first, rest := make([]*result, 0, len(order)), []*result(nil)
	of := map[string]int{}
	for _, p := range order {
		if len(first) < window && of[p.host] >= perHost {
			rest = append(rest, p)
			continue
		}
		of[p.host]++
		first = append(first, p)
	}
	if len(first) > window { // what was moved comes back in its place behind them
		tail := append(rest, first[window:]...)
		slices.SortStableFunc(tail, byScore)
		first, rest = first[:window:window], tail
	}
	all := make([]result, 0, len(order))
	for _, p := range append(first, rest...) {
		all = append(all, *p)
	}
	return all
}

// present makes results fit to be seen.
func present(results []result) {
	for i := range results {
		p := &results[i]
		p.Positions = make(map[string]int, len(p.places))
		for _, at := range p.places {
			p.Engines = append(p.Engines, at.engine)
			p.Positions[at.engine] = at.n
		}
		p.Score = math.Round(p.Score*1e5) / 1e5
		p.Title, p.Snippet = tidy(p.Title, maxTitle), tidy(cmp.Or(p.Snippet, p.note), maxSnippet)
		if p.Title == "" {
			p.Title = p.host
		}
	}
}
