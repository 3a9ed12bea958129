package pluck

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExtract(t *testing.T) {
	const doc = `{"n":1,"web":{"results":[
	  {"url":"https://a","title":"A \"quoted\" \u00e9","meta":{"date":"2026-01-02","score":1.5},"tags":["x","y"],"spans":[{"value":"one "},{"value":"two"}]},
	  {"url":"https://b","title":null,"extra":[[{}],"]"],"alt":"B"},
	  "no object", 7]}}`
	got, err := Extract([]byte(doc), &Rule{List: "web.results", Fields: []Path{"url", "title|alt", "meta.date", "meta.score", "tags.*", "spans.*.value", "tags.1"}})
	want := [][]string{
		{"https://a", "A \"quoted\" é", "2026-01-02", "1.5", "xy", "one two", "y"},
		{"https://b", "B", "", "", "", "", ""},
		{"", "", "", "", "", "", ""}, {"", "", "", "", "", "", ""},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestExtractErrors(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		list      Path
		absent    bool
	}{
		{"cut_off", `{"items":[{"a":1},{"a":`, "items", false},
		{"crossed", `{"items":[{]}`, "items", false},
		{"html", `<html>{"items":[]}</html>`, "items", false},
		{"two", `{"items":[]} {}`, "items", false},
		{"nothing", ``, "items", false},
		{"open_string", `{"items":["`, "items", false},
		{"only_slash", `"\`, "", false},
		{"too_deep", strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "", false},
		{"no_member", `{"error":"x"}`, "items", true},
		{"no_list", `{"items":{"a":1}}`, "items", true},
		{"scalar", `"items"`, "items", true},
		{"no_comma", `{"items":[1 2]}`, "items", false},
		{"no_colon", `{"items" [1]}`, "items", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Extract([]byte(tt.doc), &Rule{List: tt.list, Fields: []Path{"a"}})
			if err == nil || got != nil || errors.Is(err, ErrAbsent) != tt.absent {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if got, err := Extract([]byte(`{"items":[]}`), &Rule{List: "items"}); err != nil || got == nil || len(got) != 0 {
		t.Errorf("an empty list: %v, %v", got, err)
	}
}

// Of documents that encoding/json takes, the same fields are found.
func FuzzExtract(f *testing.F) {
	f.Add(`{"a":{"b":[{"c":"x","d":[1,2]},{"c":"\u00e9\\\"","c":"twice"},{"\u0063":"escaped"}]}}`)
	f.Add(`{"a":{"b":[ {"c" : true , "d":null} ]}}`)
	f.Add(`{"a":{"b":["\\"]}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		rule := &Rule{List: "a.b", Fields: []Path{"c", "d.0", "d.*"}}
		got, err := Extract([]byte(doc), rule)
		var tree any
		if !utf8.ValidString(doc) || json.Unmarshal([]byte(doc), &tree) != nil || depth(tree) > maxDepth {
			return // it only has to end
		}
		b, isList := member(member(tree, "a"), "b").([]any)
		if !isList {
			if !errors.Is(err, ErrAbsent) {
				t.Fatalf("%q: got %q, %v", doc, got, err)
			}
			return
		}
		if err != nil || len(got) != min(len(b), maxItems) {
			t.Fatalf("%q: got %q, %v", doc, got, err)
		}
		for i, fields := range got {
			if want, ok := member(b[i], "c").(string); ok && len(want) < maxText && fields[0] != want {
				t.Fatalf("%q: got %q, want %q", doc, fields[0], want)
			}
		}
	})
}

func member(v any, name string) any {
	m, _ := v.(map[string]any)
	return m[name]
}

func depth(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n = max(n, depth(e))
		}
		return n + 1
	case []any:
		for _, e := range v {
			n = max(n, depth(e))
		}
		return n + 1
	}
	return 0
}
