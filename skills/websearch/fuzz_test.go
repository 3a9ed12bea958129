package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/skillhost/skill/skills/websearch/loopback"
)

// Whatever an engine answers, it is read to an end, and what is said of it is
// one of the states.
func FuzzEngines(f *testing.F) {
	for i, k := range builtin {
		_, page := loopback.Page(k.name, 3, 100)
		f.Add(uint8(i), 200, []byte(page))
	}
	for name, a := range added {
		i := slices.IndexFunc(addable, func(k *kind) bool { return k.name == name })
		f.Add(uint8(len(builtin)+max(i, 0)), 200, []byte(a.answer))
	}
	f.Add(uint8(0), 403, []byte("g-recaptcha"))
	set := engineSettings{Fields: jsonFields{Results: "a.*.b|c", URL: "u.0", Title: "t|x.*"}}
	f.Fuzz(func(t *testing.T, which uint8, status int, body []byte) {
		all := append(builtin[:len(builtin):len(builtin)], addable...)
		k := all[int(which)%len(all)]
		s := &source{kind: k, name: k.name, base: "https://x.example", weight: 1, set: set}
		r := judge(s, answer{status: status, url: "https://x.example/w/api.php?x", body: body, head: []byte(`{"headers":[["Retry-After","1"],` + string(body[:min(len(body), 40)]) + `]}`), now: time.Unix(1, 0)})
		if r.state == "" || (r.state == stateOK) != (len(r.hits) > 0) {
			t.Fatalf("%s: %+v", k.name, r)
		}
		list := merge([]ranking{{k.name, 1, r.hits}}, filter{}, time.Unix(1, 0))
		present(list)
		out := reply{Query: "x", Results: list, Engines: []report{{Name: k.name, Status: r.state, Count: len(r.hits), Detail: r.detail}}}
		if len(render(&out)) > maxText+4096 {
			t.Fatal("the text is too long")
		}
		if _, err := json.Marshal(out); err != nil {
			t.Fatal(err)
		}
	})
}
