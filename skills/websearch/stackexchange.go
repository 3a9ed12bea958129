package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
	"github.com/skillhost/skill/skills/websearch/pluck"
)

// stackexchange is the search for questions: of Stack Overflow, unless the
// parameter "site" says otherwise. 300 requests a day without a key.
var stackexchange = &kind{
	name: "stackexchange", base: "https://api.stackexchange.com", categories: []string{"code", "qa"}, weight: 0.7, dated: true,
	ask: func(s *source, q query) guest.Request {
		since := ""
		if q.since != "" {
			since = strconv.FormatInt(q.after().Unix(), 10)
		}
		return s.get(s.link("/2.3/search/advanced", "q", q.text, "site", "stackoverflow", "order", "desc", "sort", "relevance",
			"pagesize", strconv.Itoa(min(q.want, 20)), "fromdate", since))
	},
	read: func(_ *source, a answer) reading {
		items, err := pluck.Extract(a.body, stackexchangeRule)
		if err != nil {
			return readJSON(a, stackexchangeRule, plain)
		}
		r := reading{state: stateEmpty}
		if n, err := strconv.Atoi(pluck.Text(a.body, "backoff")); err == nil { // its terms: no request before that
			r.wait = time.Duration(min(max(n, 0), 3600)) * time.Second
		}
		for _, item := range items {
			about := fmt.Sprintf("%s answers, score %s", item[3], item[4])
			if item[5] == "true" {
				about += ", answered"
			}
			r.hits = append(r.hits, hit{url: item[0], title: page.Text(item[1]), note: about, published: item[2]})
			r.state = stateOK
		}
		return r
	},
}

var stackexchangeRule = &pluck.Rule{List: "items", Fields: []pluck.Path{"link", "title", "creation_date", "answer_count", "score", "is_answered"}}
