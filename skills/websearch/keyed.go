package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/skills/websearch/page"
	"github.com/skillhost/skill/skills/websearch/pluck"
)

// The engines that the operator adds: those that want a key, which the host
// puts into the requests, and those of the operator's own.

// keyed is an engine with a JSON interface, whose results are found by rule. An
// answer that has sign and no list is one that found nothing.
func keyed(name, base, key string, rule *pluck.Rule, text func(string) string, sign pluck.Path, ask func(*source, query) guest.Request) *kind {
	return &kind{name: name, base: base, categories: []string{"general"}, weight: 1, key: key, dated: true, sites: true, ask: ask,
		read: func(_ *source, a answer) reading {
			r := readJSON(a, rule, text)
			if r.detail == pluck.ErrAbsent.Error() && sign != "" && pluck.Has(a.body, sign) {
				return reading{state: stateEmpty}
			}
			return r
		}}
}

func fields(list, link, title, text, date pluck.Path) *pluck.Rule {
	return &pluck.Rule{List: list, Fields: []pluck.Path{link, title, text, date}}
}

func count(q query, most int) string { return strconv.Itoa(min(q.want, most)) }

var searxng = keyed("searxng", "", "", fields("results", "url", "title", "content", "publishedDate"), plain, "", func(s *source, q query) guest.Request {
	return s.get(s.link("/search", "q", q.words(s), "format", "json", "language", q.language, "time_range", q.since))
})

var braveAPI = keyed("brave-api", "https://api.search.brave.com", "BRAVE_API_KEY", fields("web.results", "url", "title", "description", "page_age|age"), page.Text, "query", func(s *source, q query) guest.Request {
	since := map[string]string{"day": "pd", "week": "pw", "month": "pm", "year": "py"}[q.since]
	return s.get(s.link("/res/v1/web/search", "q", q.words(s), "count", count(q, 20), "freshness", since))
})

var serper = keyed("serper", "https://google.serper.dev", "SERPER_API_KEY", fields("organic", "link", "title", "snippet", "date"), plain, "", func(s *source, q query) guest.Request {
	in := map[string]any{"q": q.words(s), "num": min(q.want, 20)}
	if q.since != "" {
		in["tbs"] = "qdr:" + q.since[:1]
	}
	return s.post("/search", s.document(in))
})

var tavily = keyed("tavily", "https://api.tavily.com", "TAVILY_API_KEY", fields("results", "url", "title", "content", "published_date"), plain, "", func(s *source, q query) guest.Request {
	in := map[string]any{"query": q.text, "max_results": min(q.want, 20)}
	if q.since != "" {
		in["time_range"] = q.since
	}
	if len(q.allowed) > 0 {
		in["include_domains"] = q.allowed
	}
	return s.post("/search", s.document(in))
})

var exa = keyed("exa", "https://api.exa.ai", "EXA_API_KEY", fields("results", "url", "title", "highlights.*|text", "publishedDate"), plain, "", func(s *source, q query) guest.Request {
	in := map[string]any{"query": q.text, "numResults": min(q.want, 25), "contents": map[string]any{"text": map[string]any{"maxCharacters": 400}}}
	if q.since != "" {
		in["startPublishedDate"] = q.after().UTC().Format("2006-01-02T15:04:05.000Z")
	}
	if len(q.allowed) > 0 {
		in["includeDomains"] = q.allowed
	}
	return s.post("/search", s.document(in))
})

var kagi = keyed("kagi", "https://kagi.com", "KAGI_API_KEY", fields("data.search", "url", "title", "snippet", "time"), page.Text, "data", func(s *source, q query) guest.Request {
	in := map[string]any{"query": q.words(s), "workflow": "search"}
	if q.since != "" {
		in["filters"] = map[string]any{"after": q.after().Format("2006-01-02")}
	}
	return s.post("/api/v1/search", s.document(in))
})

// googleCSE needs the parameter "cx" as well, the id of the operator's engine.
var googleCSE = keyed("google-cse", "https://customsearch.googleapis.com", "GOOGLE_CSE_KEY", fields("items", "link", "title", "snippet", ""), plain, "searchInformation", func(s *source, q query) guest.Request {
	since := ""
	if q.since != "" {
		since = "d" + strconv.Itoa(q.days())
	}
	return s.get(s.link("/customsearch/v1", "q", q.words(s), "num", count(q, 10), "dateRestrict", since))
})

var marginalia = keyed("marginalia", "https://api2.marginalia-search.com", "MARGINALIA_API_KEY", fields("results", "url", "title", "description", ""), plain, "", func(s *source, q query) guest.Request {
	return s.get(s.link("/search", "query", q.text, "count", count(q, 20)))
})

var mojeekAPI = keyed("mojeek-api", "https://api.mojeek.com", "MOJEEK_API_KEY", fields("response.results", "url", "title", "desc", "date"), page.Text, "", func(s *source, q query) guest.Request {
	since := ""
	if q.since != "" {
		since = q.after().Format("20060102")
	}
	return s.get(s.link("/search", "q", q.words(s), "fmt", "json", "t", count(q, 20), "since", since))
})

// generic is any engine that answers with JSON: the operator says how it is
// asked and where its results are.
var generic = &kind{
	name: "json", categories: []string{"general"}, weight: 1,
	ask: func(s *source, q query) guest.Request {
		if s.set.Body == "" {
			return s.get(s.link("", s.set.Query, q.text))
		}
		text, _ := json.Marshal(q.text) // a string: cannot fail
		body := strings.NewReplacer("{query}", string(text), "{count}", strconv.Itoa(q.want)).Replace(s.set.Body)
		return s.post("", []byte(body))
	},
	read: func(s *source, a answer) reading {
		f := s.set.Fields
		return readJSON(a, fields(pluck.Path(f.Results), pluck.Path(f.URL), pluck.Path(f.Title), pluck.Path(f.Snippet), pluck.Path(f.Published)), page.Text)
	},
}

// document is a JSON document with the parameters that the operator added.
func (s *source) document(in map[string]any) []byte {
	for name, value := range s.set.Params {
		in[name] = value
	}
	b, _ := json.Marshal(in) // strings and numbers: cannot fail
	return b
}
