package main

import (
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/pluck"
)

// mwmbl is a small index made by volunteers. Titles and texts come in pieces.
var mwmbl = &kind{
	name: "mwmbl", base: "https://api.mwmbl.org", categories: []string{"general"}, weight: 0.5,
	ask:  func(s *source, q query) guest.Request { return s.get(s.link("/api/v1/search/", "s", q.text)) },
	read: func(_ *source, a answer) reading { return readJSON(a, mwmblRule, plain) },
}

var mwmblRule = &pluck.Rule{Fields: []pluck.Path{"url", "title.*.value", "extract.*.value"}}
