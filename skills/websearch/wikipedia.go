package main

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
	"github.com/skillhost/skill/skills/websearch/pluck"
)

// wikipedia is the search of MediaWiki, in the encyclopedia of the language.
var wikipedia = &kind{
	name: "wikipedia", base: "https://{language}.wikipedia.org", categories: []string{"general", "reference"}, weight: 0.8,
	ask: func(s *source, q query) guest.Request {
		local := *s
		local.base = wikipediaBase(s, q.language)
		return s.get(local.link("/w/api.php", "action", "query", "list", "search", "format", "json", "formatversion", "2",
			"srsearch", q.text, "srlimit", strconv.Itoa(min(q.want, 20)), "srprop", "snippet|timestamp"))
	},
	read: func(_ *source, a answer) reading {
		items, err := pluck.Extract(a.body, wikipediaRule)
		if err != nil {
			return readJSON(a, wikipediaRule, plain)
		}
		r := reading{state: stateEmpty}
		site, _, _ := strings.Cut(a.url, "/w/api.php")
		for _, item := range items {
			if item[0] != "" {
				link := site + "/wiki/" + strings.ReplaceAll(url.PathEscape(strings.ReplaceAll(item[0], " ", "_")), "%2F", "/")
				r.hits = append(r.hits, hit{url: link, title: item[0], snippet: page.Text(item[1]), published: item[2]})
				r.state = stateOK
			}
		}
		return r
	},
}

var wikipediaRule = &pluck.Rule{List: "query.search", Fields: []pluck.Path{"title", "snippet", "timestamp"}}

// wikipediaBase puts the language in: its first part, and English if there is none.
func wikipediaBase(s *source, language string) string {
	tongue, _, _ := strings.Cut(strings.ToLower(language), "-")
	if tongue == "" {
		tongue = "en"
	}
	return strings.ReplaceAll(s.base, "{language}", tongue)
}
