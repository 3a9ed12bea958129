package main

import (
	"net/url"
	"strings"

	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
)

// duckduckgo is the page for browsers without scripts. It answers programs that
// ask too often with status 202 and a puzzle.
var duckduckgo = &kind{
	name: "duckduckgo", base: "https://html.duckduckgo.com", categories: []string{"general"}, weight: 1, dated: true, sites: true, captcha: -1,
	ask: func(s *source, q query) guest.Request {
		form := url.Values{"b": {""}, "kl": {"wt-wt"}}
		s.params([]string{"q", unbanged(q.words(s)), "df", duckduckgoSince[q.since]}, form.Set)
		r := s.browse(strings.TrimSuffix(s.base, "/")+"/html/", q.language)
		r.Method, r.Body = "POST", []byte(form.Encode())
		r.Header["Content-Type"] = []string{"application/x-www-form-urlencoded"}
		r.Header["Referer"] = []string{strings.TrimSuffix(s.base, "/") + "/"}
		return r
	},
	read: func(_ *source, a answer) reading {
		if a.status == 202 {
			return reading{state: stateCaptcha}
		}
		return duckduckgoPage.read(a)
	},
}

var duckduckgoSince = map[string]string{"day": "d", "week": "w", "month": "m", "year": "y"}

var duckduckgoPage = newLayout("div#links", "div.web-result", []page.Field{href("h2 a"), field("h2 a"), field(".result__snippet")},
	[]string{"div.no-results"}, []string{"form#challenge-form", "div.anomaly-modal__title"})

// unbanged keeps words such as "!w" from sending the request elsewhere.
func unbanged(text string) string {
	if !strings.Contains(text, "!") {
		return text
	}
	words := strings.Fields(text)
	for i, w := range words {
		if strings.HasPrefix(w, "!") || strings.HasPrefix(w, `\`) {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}
