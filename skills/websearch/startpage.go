package main

import (
	"net/url"
	"strings"

	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
	"github.com/skillhost/skill/skills/websearch/pluck"
)

// startpage has its results in a script, as JSON. One request is all that is
// made: the token of its own form is not fetched first, so that it asks for a
// human more often than others.
var startpage = &kind{
	name: "startpage", base: "https://www.startpage.com", categories: []string{"general"}, weight: 1, dated: true, sites: true,
	ask: func(s *source, q query) guest.Request {
		since := map[string]string{"day": "d", "week": "w", "month": "m", "year": "y"}[q.since]
		return s.browse(s.link("/sp/search", "query", q.words(s), "cat", "web", "with_date", since), q.language)
	},
	read: func(_ *source, a answer) reading {
		if u, err := url.Parse(a.url); err == nil && strings.Contains(u.Path, "/captcha") {
			return reading{state: stateCaptcha}
		}
		if doc, ok := startpageData(a.body); ok {
			return startpageResults(doc)
		}
		return startpagePage.read(a)
	},
}

// startpageData finds the JSON that the script draws the results from.
func startpageData(body []byte) (doc []byte, ok bool) {
	const before = "UIStartpage.AppSerpWeb,"
	n := page.Index(body, before)
	if n < 0 {
		return nil, false
	}
	return pluck.First(body[n+len(before):])
}

// startpageResults reads the groups of results that come from the web.
func startpageResults(doc []byte) reading {
	r := reading{state: stateEmpty}
	groups, ok := pluck.List(doc, "render.presenter.regions.mainline")
	if !ok {
		return reading{state: stateMalformed, detail: pluck.ErrAbsent.Error()}
	}
	for _, group := range groups {
		if !strings.HasPrefix(pluck.Text(group, "display_type"), "web") {
			continue
		}
		more := readJSON(answer{body: group}, startpageRule, page.Text)
		r.hits = append(r.hits, more.hits...)
	}
	if len(r.hits) > 0 {
		r.state = stateOK
	}
	return r
}

var startpageRule = &pluck.Rule{List: "results", Fields: []pluck.Path{"clickUrl", "title", "description"}}

// startpagePage is the page for browsers without scripts.
var startpagePage = newLayout("section#main", "div.result", []page.Field{href("a.result-link"), field(".wgl-title"), field("p.description")},
	[]string{"div.w-gl"}, []string{"form#captcha", "div#captcha"})
