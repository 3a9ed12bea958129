package main

import (
	"bytes"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
	"github.com/skillhost/skill/skills/websearch/pluck"
)

// A kind is one sort of search engine: what it is asked, and how its answers
// are read. Each has a file of its own.
type kind struct {
	name       string
	base       string // what its addresses begin with; "" if only the operator can know
	categories []string
	weight     float64       // of its ranks, beside those of others
	key        string        // the secret that the host adds to its requests; "" if it needs none
	dated      bool          // it can be asked for what is new
	sites      bool          // it knows "site:example.com"
	captcha    time.Duration // how long it is left alone after a captcha; negative: not at all
	pause      time.Duration // between two requests, as its terms ask for
	ask        func(*source, query) guest.Request
	read       func(*source, answer) reading
}

// A source is an engine as the operator has set it up.
type source struct {
	*kind
	name       string
	base       string
	weight     float64
	timeout    time.Duration
	categories []string
	agent      string // the User-Agent
	set        engineSettings
}

// A query is what is asked of every engine.
type query struct {
	text     string
	language string   // a BCP 47 tag such as "en" or "pt-BR", or ""
	since    string   // "day", "week", "month", "year" or ""
	allowed  []string // domains; none: all
	want     int      // results
	now      time.Time
}

// An answer is what an engine sent back.
type answer struct {
	status int
	url    string // after redirects
	head   []byte // the header of the host's reply, JSON
	body   []byte
	now    time.Time
}

// answerOf reads a reply of the host. Its header is read for what is needed,
// when it is: it is longer than the documents of some engines.
func answerOf(f sdk.Frame, now time.Time) answer {
	a := answer{url: pluck.Text(f.Header, "url"), head: f.Header, now: now}
	a.status, _ = strconv.Atoi(pluck.Text(f.Header, "status")) // the host's own number
	if len(f.Blobs) > 0 {
		a.body = f.Blobs[0]
	}
	return a
}

// first returns a header's value. name is as Go's net/http writes it.
func (a *answer) first(name string) string {
	all, _ := pluck.List(a.head, "headers")
	for _, h := range all {
		if pluck.Text(h, "0") == name {
			return pluck.Text(h, "1")
		}
	}
	return ""
}

// A hit is one result of one engine, as that engine has it.
type hit struct {
	url, title, snippet, published string

	note string // what is shown where no engine has a text

	at address // where url leads
}

// A reading is what an answer means.
type reading struct {
	hits   []hit
	state  state
	detail string        // for people
	wait   time.Duration // the engine asks to be left alone for so long
	hasty  bool          // the engine had less time than it may take: no fault of its own
}

// maxQuery is the longest query that all engines take, in bytes.
const maxQuery = 499

// words is the text for s: with the allowed domains where s knows "site:" and
// they fit.
func (q *query) words(s *source) string {
	if !s.sites || len(q.allowed) == 0 || len(q.allowed) > 4 {
		return q.text
	}
	sites := "site:" + strings.Join(q.allowed, " OR site:")
	if len(q.allowed) > 1 {
		sites = "(" + sites + ")"
	}
	if all := q.text + " " + sites; len(all) <= maxQuery {
		return all
	}
	return q.text
}

// days is how long ago q.since is.
func (q *query) days() int {
	return map[string]int{"day": 1, "week": 7, "month": 31, "year": 365}[q.since]
}

// after is the moment that q.since means.
func (q *query) after() time.Time { return q.now.AddDate(0, 0, -q.days()) }

// link is the address of path at s with the parameters, given as names and
// values, and those that the operator added. Empty values are left out.
func (s *source) link(path string, params ...string) string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(s.base, "/"))
	b.WriteString(path)
	mark := byte('?')
	if strings.IndexByte(b.String(), '?') >= 0 {
		mark = '&'
	}
	s.params(params, func(name, value string) {
		b.WriteByte(mark)
		b.WriteString(url.QueryEscape(name) + "=" + url.QueryEscape(value))
		mark = '&'
	})
	return b.String()
}

// params calls f for each parameter; the operator's take the place of others.
func (s *source) params(params []string, f func(name, value string)) {
	for i := 0; i+1 < len(params); i += 2 {
		if _, own := s.set.Params[params[i]]; !own && params[i+1] != "" {
			f(params[i], params[i+1])
		}
	}
	for _, name := range sortedKeys(s.set.Params) {
		f(name, s.set.Params[name])
	}
}

// get is a request for a JSON document or a feed.
func (s *source) get(link string) guest.Request {
	return s.with(guest.Request{URL: link, Header: map[string][]string{"Accept": {"application/json"}}})
}

// post is a request with a JSON document.
func (s *source) post(path string, body []byte) guest.Request {
	return s.with(guest.Request{Method: "POST", URL: s.link(path), Body: body, Header: map[string][]string{"Accept": {"application/json"}, "Content-Type": {"application/json"}}})
}

// browse is a request for a page, as a browser without scripts sends it.
func (s *source) browse(link, language string) guest.Request {
	h := map[string][]string{
		"Accept":          {"text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"},
		"Accept-Language": {"en-US,en;q=0.5"},
		"Sec-Fetch-Dest":  {"document"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Site": {"same-origin"}, "Sec-Fetch-User": {"?1"},
		"Upgrade-Insecure-Requests": {"1"},
	}
	if language != "" {
		h["Accept-Language"] = []string{language + ",en;q=0.3"}
	}
	return s.with(guest.Request{URL: link, Header: h})
}

// with adds what all requests of s have.
func (s *source) with(r guest.Request) guest.Request {
	r.Header["User-Agent"] = []string{s.agent}
	for _, name := range sortedKeys(s.set.Headers) {
		r.Header[name] = []string{s.set.Headers[name]}
	}
	return r
}

// A layout is how the pages of an engine are made. The fields of its rule are
// the address, the title, the text and the date of a result.
type layout struct {
	rule  *page.Rule
	list  int      // how many of the rule's marks say that the page is one of results; the others are challenges
	empty []string // texts of a page that found nothing
}

// newLayout puts a layout together from selectors: of the element that holds
// the results, of one result, and of what else tells what a page is.
func newLayout(region, item string, fields []page.Field, list, challenges []string, empty ...string) *layout {
	marks := []page.Selector{page.Select(region)}
	for _, s := range append(list[:len(list):len(list)], challenges...) {
		marks = append(marks, page.Select(s))
	}
	return &layout{rule: page.NewRule(marks[0], page.Select(item), fields, marks...), list: len(list) + 1, empty: empty}
}

// read reads a page. One without results is empty only if it is surely a page
// of results: what is not understood is not "nothing found".
func (l *layout) read(a answer) reading {
	var hits []hit
	for _, item := range page.Extract(a.body, l.rule) {
		if !strings.Contains(item[0], "//") {
			continue // an advertisement, or a link into the engine itself
		}
		h := hit{url: item[0], title: item[1], snippet: item[2]}
		if len(item) > 3 {
			h.published = item[3]
		}
		hits = append(hits, h)
	}
	if len(hits) > 0 {
		return reading{hits: hits, state: stateOK}
	}
	marks := page.Marks(a.body, l.rule)
	if slices.Contains(marks[l.list:], true) {
		return reading{state: stateCaptcha}
	}
	if r, ok := challenged(a.body); ok {
		return r
	}
	if slices.Contains(marks[:l.list], true) || slices.ContainsFunc(l.empty, func(text string) bool { return bytes.Contains(a.body, []byte(text)) }) {
		return reading{state: stateEmpty}
	}
	return reading{state: stateMalformed, detail: "the page is not made as the pages of this engine were"}
}

// field is a text of a result.
func field(selector string) page.Field { return page.Field{Of: page.Select(selector)} }

// href is the address that a link leads to.
func href(selector string) page.Field { return page.Field{Of: page.Select(selector), Attr: "href"} }

// readJSON reads a document whose fields are, by rule, the address, the title,
// the text and the date of a result. text reads title and text: page.Text where
// they are HTML.
func readJSON(a answer, rule *pluck.Rule, text func(string) string) reading {
	items, err := pluck.Extract(a.body, rule)
	if err != nil {
		if r, ok := challenged(a.body); ok {
			return r
		}
		return reading{state: stateMalformed, detail: err.Error()}
	}
	r := reading{state: stateOK}
	for _, item := range items {
		h := hit{url: item[0], title: text(item[1]), snippet: text(item[2])}
		if len(item) > 3 {
			h.published = item[3]
		}
		r.hits = append(r.hits, h)
	}
	if len(r.hits) == 0 {
		r.state = stateEmpty
	}
	return r
}

// plain is a text that is no HTML.
func plain(s string) string { return s }
