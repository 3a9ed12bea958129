package main

import (
	"strconv"
	"strings"

	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/pluck"
)

// github is the search for repositories: 10 requests a minute without a key.
var github = &kind{
	name: "github", base: "https://api.github.com", categories: []string{"code"}, weight: 0.6, dated: true,
	ask: func(s *source, q query) guest.Request {
		text := q.text
		if q.since != "" {
			text += " pushed:>=" + q.after().Format("2006-01-02")
		}
		r := s.get(s.link("/search/repositories", "q", text, "per_page", strconv.Itoa(min(q.want, 20))))
		r.Header["Accept"] = []string{"application/vnd.github+json"}
		return r
	},
	read: func(_ *source, a answer) reading {
		items, err := pluck.Extract(a.body, githubRule)
		if err != nil {
			return readJSON(a, githubRule, plain)
		}
		r := reading{state: stateEmpty}
		for _, item := range items {
			about := []string{item[2]}
			if item[4] != "" {
				about = append(about, item[4])
			}
			if n, err := strconv.Atoi(item[5]); err == nil && n > 0 {
				about = append(about, strconv.Itoa(n)+" stars")
			}
			r.hits = append(r.hits, hit{url: item[0], title: item[1], snippet: strings.TrimPrefix(strings.Join(about, " · "), " · "), published: item[3]})
			r.state = stateOK
		}
		return r
	},
}

var githubRule = &pluck.Rule{List: "items", Fields: []pluck.Path{"html_url", "full_name", "description", "pushed_at", "language", "stargazers_count"}}
