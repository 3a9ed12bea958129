package main

import (
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
)

// brave is the page of results. Its advertisements have relative addresses,
// which are no results.
var brave = &kind{
	name: "brave", base: "https://search.brave.com", categories: []string{"general"}, weight: 1, dated: true, sites: true,
	ask: func(s *source, q query) guest.Request {
		since := map[string]string{"day": "pd", "week": "pw", "month": "pm", "year": "py"}[q.since]
		return s.browse(s.link("/search", "q", q.words(s), "source", "web", "tf", since), q.language)
	},
	read: func(_ *source, a answer) reading { return bravePage.read(a) },
}

var bravePage = newLayout("div#results", "div.snippet", []page.Field{href("a"), field(".title"), {Of: page.Select(".content"), Not: page.Select("span.t-secondary")}, field("span.t-secondary")},
	nil, []string{"div#pow-captcha", "form.captcha"}, "No results found", "did not match any")
