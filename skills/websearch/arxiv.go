package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
)

// arxiv is the search for papers, which answers with a feed. Its terms ask for
// three seconds between two requests.
var arxiv = &kind{
	name: "arxiv", base: "https://export.arxiv.org", categories: []string{"science"}, weight: 0.5, dated: true, pause: 3 * time.Second,
	ask: func(s *source, q query) guest.Request {
		var terms []string
		for _, w := range strings.FieldsFunc(q.text, func(r rune) bool { return strings.ContainsRune(" \t\"()[]:", r) }) {
			terms = append(terms, "all:"+w)
		}
		if q.since != "" {
			terms = append(terms, "submittedDate:["+q.after().Format("200601020000")+" TO "+q.now.Format("200601022359")+"]")
		}
		r := s.get(s.link("/api/query", "search_query", strings.Join(terms, " AND "), "max_results", strconv.Itoa(min(q.want, 20))))
		r.Header["Accept"] = []string{"application/atom+xml"}
		return r
	},
	read: func(_ *source, a answer) reading {
		r := arxivFeed.read(a)
		for i := range r.hits {
			h := &r.hits[i]
			if strings.Contains(h.url, "/api/errors") { // how it says that it did not understand
				return reading{state: stateError, detail: "it does not understand the query"}
			}
			h.url = strings.Replace(h.url, "http://", "https://", 1)
		}
		return r
	},
}

var arxivFeed = newLayout("feed", "entry", []page.Field{field("id"), field("title"), field("summary"), field("published")}, nil, nil)
