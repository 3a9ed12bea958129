package rewrite

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

var keys = append([]string{"by_hand", "icons", "meta", "hidden"}, generated...)

// rewrite decodes text and rewrites its tools.
func rewrite(t *testing.T, text string, had []string, tools ...sdk.Tool) (string, error) {
	t.Helper()
	var tree map[string]any
	doc, err := tomlfile.Decode("skill.toml", []byte(text), &tree)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Tools(doc, []byte(text), had, keys, tools)
	return string(out), err
}

func TestTools(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		had        []string
		tool       sdk.Tool
		want       string // or a part of the error
	}{
		{"append", "a = 1", nil, sdk.Tool{Name: "b c", Title: "T"}, "a = 1\n\n[tools.\"b c\"]\ntitle = \"T\"\n"},
		{"replace", "[tools.a] # x\ntitle = 'old'\nby_hand = 1\n[z]", []string{"a"}, sdk.Tool{Name: "a", Title: "new"}, "[tools.a] # x\ntitle = \"new\"\nby_hand = 1\n[z]"},
		{"remove", "[tools.a]\ntitle = 'x'\n[tools.b]\ntitle = 'y'\n", []string{"a", "b"}, sdk.Tool{Name: "b"}, "[tools.b]\n"},
		{"remove_by_hand", "[tools.a]\nby_hand = 1\n", []string{"a"}, sdk.Tool{Name: "b"}, `skill.toml:2: the module has no tool "a", but its table has the hand-written key "by_hand"`},
		{"inline", "tools = { a = { title = 'x' } }", []string{"a"}, sdk.Tool{Name: "a"}, "inline or in dotted keys"},
		{"schema", "", nil, sdk.Tool{Name: "a", Input: json.RawMessage(`{"a":"it's"}`)}, "\n[tools.a]\ninput = '{\"a\":\"it\\u0027s\"}'\n"},
		{"said", "[tools.a]\nhidden = false\nicons = []\n[tools.a.meta]\nold = 1\n", []string{"a"},
			sdk.Tool{Name: "a", Hidden: true, Icons: []sdk.Icon{{Src: "https://x/\"", MIME: "image/png", Sizes: []string{"1x1", "any"}, Theme: "dark"}, {Src: "b"}}, Meta: json.RawMessage(`{"ui":{"resourceUri":"ui://a","l":[1,2.5,true,{"x y":"\n"}]}}`)},
			"[tools.a]\nhidden = true\nicons = [{ src = \"https://x/\\\"\", mime = \"image/png\", theme = \"dark\", sizes = [\"1x1\", \"any\"] }, { src = \"b\" }]\n" +
				"meta = { ui = { l = [1, 2.5, true, { \"x y\" = \"\\u000A\" }], resourceUri = \"ui://a\" } }\n"},
		{"not_said", "[tools.a]\nhidden = true\nicons = []\nmeta = {}\n", []string{"a"}, sdk.Tool{Name: "a"}, "[tools.a]\nhidden = true\nicons = []\nmeta = {}\n"},
		{"meta_null", "", nil, sdk.Tool{Name: "a", Meta: json.RawMessage(`{"a":null}`)}, "TOML has no null"},
		{"meta_list", "", nil, sdk.Tool{Name: "a", Meta: json.RawMessage(`[]`)}, "no JSON object"},
		{"not_a_schema", "", nil, sdk.Tool{Name: "a", Input: json.RawMessage(`[]`)}, "not a JSON object"},
	} {
		got, err := rewrite(t, tc.text, tc.had, tc.tool)
		if err != nil {
			if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
			}
		} else if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	if _, err := rewrite(t, "", nil, sdk.Tool{Name: "a"}, sdk.Tool{Name: "a"}); err == nil {
		t.Error("two tools of one name")
	}
}

// FuzzText: what is written as a title and a description reads back as it was.
func FuzzText(f *testing.F) {
	f.Add("Greet \"them\"", "two\nlines \"\"\" \\ and\ttab\"")
	f.Fuzz(func(t *testing.T, title, description string) {
		out, err := rewrite(t, "", nil, sdk.Tool{Name: "a", Title: title, Description: description})
		if err != nil {
			return
		}
		var back struct {
			Tools map[string]struct {
				Title       string `toml:"title"`
				Description string `toml:"description"`
			} `toml:"tools"`
		}
		if _, err := tomlfile.Decode("skill.toml", []byte(out), &back); err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		if a := back.Tools["a"]; a.Title != title || a.Description != description {
			t.Fatalf("got %+v from %q", a, out)
		}
	})
}
