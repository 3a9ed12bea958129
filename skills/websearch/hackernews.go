package main

import (
	"fmt"
	"strconv"

	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
	"github.com/skillhost/skill/skills/websearch/pluck"
)

// hackernews is the search for stories.
var hackernews = &kind{
	name: "hackernews", base: "https://hn.algolia.com", categories: []string{"news", "code"}, weight: 0.5, dated: true,
	ask: func(s *source, q query) guest.Request {
		since := ""
		if q.since != "" {
			since = "created_at_i>" + strconv.FormatInt(q.after().Unix(), 10)
		}
		return s.get(s.link("/api/v1/search", "query", q.text, "tags", "story", "hitsPerPage", strconv.Itoa(min(q.want, 20)), "numericFilters", since))
	},
	read: func(_ *source, a answer) reading {
		items, err := pluck.Extract(a.body, hackernewsRule)
		if err != nil {
			return readJSON(a, hackernewsRule, plain)
		}
		r := reading{state: stateEmpty}
		for _, item := range items {
			link := item[0]
			if link == "" {
				link = "https://news.ycombinator.com/item?id=" + item[3]
			}
			note := fmt.Sprintf("%s points, %s comments: https://news.ycombinator.com/item?id=%s", item[4], item[5], item[3])
			r.hits = append(r.hits, hit{url: link, title: item[1], snippet: page.Text(item[6]), published: item[2], note: note})
			r.state = stateOK
		}
		return r
	},
}

var hackernewsRule = &pluck.Rule{List: "hits", Fields: []pluck.Path{"url", "title", "created_at", "objectID", "points", "num_comments", "story_text"}}
