package main

import (
	"fmt"

	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
)

// bing is the first page of results.
var bing = &kind{
	name: "bing", base: "https://www.bing.com", categories: []string{"general"}, weight: 1, dated: true, sites: true,
	ask: func(s *source, q query) guest.Request {
		return s.browse(s.link("/search", "q", q.words(s), "setlang", q.language, "filters", bingSince(q)), q.language)
	},
	read: func(_ *source, a answer) reading { return bingPage.read(a) },
}

// bingSince is the filter for what is new: a year is counted in days of the epoch.
func bingSince(q query) string {
	switch q.since {
	case "":
		return ""
	case "year":
		day := q.now.Unix() / 86400
		return fmt.Sprintf(`ex1:"ez5_%d_%d"`, day-365, day)
	}
	return fmt.Sprintf(`ex1:"ez%s"`, map[string]string{"day": "1", "week": "2", "month": "3"}[q.since])
}

var bingPage = newLayout("ol#b_results", "li.b_algo", []page.Field{href("h2 a"), field("h2 a"), {Of: page.Select("p"), Not: page.Select("span.algoSlug_icon")}},
	[]string{"li.b_no"}, []string{"div#b_captcha", "div.captcha"})
