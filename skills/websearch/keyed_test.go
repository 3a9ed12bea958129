package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/skillhost/skill/skills/websearch/loopback"
)

// The engines that the operator adds: the answer of each, made by us after its
// documentation, what it is asked, and what it answers if it found nothing.
var added = map[string]struct {
	answer, empty string
	asked         []string // parts of method, address and body
}{
	"searxng":    {`{"query":"x","results":[{"url":"https://a.example/1","title":"One","content":"text","publishedDate":"2026-05-06T00:00:00","engine":"e"}],"answers":[]}`, `{"results":[]}`, []string{"GET /searxng/search?q=x+y&format=json&language=en&time_range=month"}},
	"brave-api":  {`{"type":"search","query":{},"web":{"results":[{"url":"https://a.example/1","title":"One","description":"<strong>text</strong>","age":"May 6, 2026","page_age":"2026-05-06T01:02:03"}]}}`, `{"type":"search","query":{"original":"x"}}`, []string{"GET /brave-api/res/v1/web/search?q=x+y&count=10&freshness=pm"}},
	"tavily":     {`{"query":"x","results":[{"url":"https://a.example/1","title":"One","content":"text","score":0.9,"published_date":"Wed, 06 May 2026 01:02:03 GMT"}]}`, `{"results":[]}`, []string{"POST /tavily/search", `"query":"x y"`, `"max_results":10`, `"time_range":"month"`}},
	"exa":        {`{"requestId":"r","results":[{"url":"https://a.example/1","title":"One","text":"text","publishedDate":"2026-05-06T00:00:00.000Z"}]}`, `{"results":[]}`, []string{"POST /exa/search", `"numResults":10`, `"startPublishedDate":"20`}},
	"serper":     {`{"searchParameters":{},"organic":[{"link":"https://a.example/1","title":"One","snippet":"text","date":"May 6, 2026","position":1}]}`, `{"searchParameters":{},"organic":[]}`, []string{"POST /serper/search", `"tbs":"qdr:m"`}},
	"kagi":       {`{"meta":{},"data":{"search":[{"url":"https://a.example/1","title":"One","snippet":"text","time":"2026-05-06T00:00:00Z"}]}}`, `{"meta":{},"data":{}}`, []string{"POST /kagi/api/v1/search", `"query":"x y"`, `"after":"20`}},
	"google-cse": {`{"kind":"k","items":[{"link":"https://a.example/1","title":"One","snippet":"text"}]}`, `{"kind":"k","searchInformation":{"totalResults":"0"}}`, []string{"GET /google-cse/customsearch/v1?q=x+y&num=10&dateRestrict=d31&cx=mine"}},
	"marginalia": {`{"license":"l","query":"x","results":[{"url":"https://a.example/1","title":"One","description":"text","quality":1}]}`, `{"results":[]}`, []string{"GET /marginalia/search?query=x+y&count=10"}},
	"mojeek-api": {`{"response":{"status":"OK","results":[{"url":"https://a.example/1","title":"One","desc":"text"}]}}`, `{"response":{"status":"OK","results":[]}}`, []string{"GET /mojeek-api/search?q=x+y&fmt=json&t=10&since=20"}},
	"mine":       {`{"data":{"hits":[{"at":{"href":"https://a.example/1"},"name":"One","parts":["te","xt"],"when":1778025600}]}}`, `{"data":{"hits":[]}}`, []string{"POST /mine", `{"find":"x y","top":10}`}},
	"other":      {`[{"u":"https://a.example/1","t":"One"}]`, `[]`, []string{"GET /other?term=x+y&v=2"}},
}

func TestAdded(t *testing.T) {
	for name, tt := range added {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.only()
			set := map[string]any{"base_url": w.url + "/" + name}
			switch name {
			case "google-cse":
				set["params"] = map[string]string{"cx": "mine"}
			case "mine":
				set["type"], set["body"] = "json", `{"find":{query},"top":{count}}`
				set["fields"] = map[string]string{"results": "data.hits", "url": "at.href", "title": "name", "snippet": "parts.*", "published": "when"}
			case "other":
				set["type"], set["query"], set["params"] = "json", "term", map[string]string{"v": "2"}
				set["fields"] = map[string]string{"url": "u", "title": "t"}
			}
			w.engines[name] = set
			for _, s := range ofManifest(t).Secrets {
				w.host.Secrets = append(w.host.Secrets, s.Name)
			}
			args := map[string]any{"query": "x y", "time_range": "month", "language": "en"}
			if set["type"] == "json" {
				delete(args, "time_range")
			}
			for _, turn := range []struct {
				fault http.HandlerFunc
				want  state
			}{
				{loopback.Text(200, tt.answer, "Content-Type", "application/json"), stateOK},
				{loopback.Text(200, tt.empty), stateEmpty},
				{loopback.Text(200, `{"error":{"message":"no"}}`), stateMalformed},
				{loopback.Text(401, `{"error":"bad key"}`), stateBlocked},
				{loopback.Text(429, ``), stateRateLimited},
			} {
				w.web.Fault(name, turn.fault)
				w.set["max_suspension_ms"] = 0
				out, r := w.search(args)
				e := out.engine(t, name)
				if e.Status != turn.want {
					t.Fatalf("%+v, want %s\n%s", e, turn.want, r.Content[0].Text)
				}
				if turn.want != stateOK {
					continue
				}
				if len(out.Results) != 1 || out.Results[0].URL != "https://a.example/1" || out.Results[0].Title != "One" || name != "other" && out.Results[0].Snippet != "text" {
					t.Errorf("%+v", out.Results)
				}
				if d := out.Results[0].Published; d != "2026-05-06" && d != "" {
					t.Errorf("published %q", d)
				}
			}
			seen := w.web.Seen(name)[0]
			for _, part := range tt.asked {
				if text := seen.Method + " " + seen.URL + " " + seen.Body; !strings.Contains(text, part) {
					t.Errorf("%q is missing of %s", part, text)
				}
			}
			if seen.Method == "POST" && !json.Valid([]byte(seen.Body)) {
				t.Errorf("body %s", seen.Body)
			}
		})
	}
}

// Without its key an engine is not asked: a request would only tell its
// server what is searched for.
func TestNoKey(t *testing.T) {
	w := newWorld(t)
	w.only("mojeek")
	for _, k := range addable {
		if k.key != "" {
			w.engines[k.name] = map[string]any{"base_url": w.url + "/" + k.name, "params": map[string]string{"cx": "x"}}
		}
	}
	out, _ := w.search(map[string]any{"query": "x"})
	for _, k := range addable {
		if k.key == "" {
			continue
		}
		if e := out.engine(t, k.name); e.Status != stateNoKey || !strings.Contains(e.Detail, "skill secret set "+k.key) || len(w.web.Seen(k.name)) != 0 {
			t.Errorf("%+v", e)
		}
	}
	if len(out.Engines) != 9 || len(out.Results) != 10 {
		t.Errorf("%+v", out.Engines)
	}
}

// The query of an engine of type json is text, whatever is in it.
func TestBodyEscapes(t *testing.T) {
	w := newWorld(t)
	w.only()
	w.engines["mine"] = map[string]any{"type": "json", "base_url": w.url + "/mine", "body": `{"find":{query},"top":{count}}`, "fields": map[string]string{"url": "u", "title": "t"}}
	w.web.Fault("mine", loopback.Text(200, "[]"))
	const text = `"}, {count} {query} \`
	w.search(map[string]any{"query": text, "max_results": 20})
	var got struct {
		Find string
		Top  int
	}
	if err := json.Unmarshal([]byte(w.web.Seen("mine")[0].Body), &got); err != nil || got.Find != text || got.Top != 20 {
		t.Errorf("%+v, %v", got, err)
	}
}
