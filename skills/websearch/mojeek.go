package main

import (
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
)

// mojeek is the first page of results, asked for without "s=0", which counts as
// too many requests.
var mojeek = &kind{
	name: "mojeek", base: "https://www.mojeek.com", categories: []string{"general"}, weight: 1, dated: true, sites: true,
	ask: func(s *source, q query) guest.Request {
		since := ""
		if q.since != "" {
			since = q.after().Format("20060102")
		}
		return s.browse(s.link("/search", "q", q.words(s), "since", since), q.language)
	},
	read: func(_ *source, a answer) reading { return mojeekPage.read(a) },
}

var mojeekPage = newLayout("ul.results-standard", "li", []page.Field{href("a.ob"), field("h2 a"), field("p.s")},
	nil, nil, "No pages found")
