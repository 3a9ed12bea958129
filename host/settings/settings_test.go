package settings

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

const shape = `{"type":"object","additionalProperties":false,"properties":{"region":{"enum":["eu","us"]},"sources":{"type":"object","additionalProperties":{"type":"object","properties":{"weight":{"type":"number"}}}}}}`

func skill(name, shape string) *manifest.Skill {
	s := &manifest.Skill{Home: manifest.Home{File: name + "/skill.toml", Digest: "sha256:" + name}}
	s.Name = name
	if shape != "" {
		s.Settings = json.RawMessage(shape)
	}
	return s
}

func TestOf(t *testing.T) {
	required := strings.Replace(shape, `"type":"object",`, `"type":"object","required":["region"],`, 1)
	for _, tt := range []struct{ name, shape, set, want, says string }{
		{"fits", shape, `{"region":"eu"}`, `{"region":"eu"}`, ""},
		{"nothing_set", shape, "", "", ""},
		{"skill_takes_none", "", `{"region":"eu"}`, "", ""},
		{"unknown_key", shape, `{"regoin":"eu"}`, "", `unknown "regoin", known: "region", "sources"`},
		{"bad_value", shape, `{"region":"mars"}`, "", `/region: want one of`},
		{"deep", shape, `{"sources":{"bing":{"weight":"2"}}}`, "", `/sources/bing/weight: want number`},
		{"required_not_set", required, "", "", `missing "region"`},
		{"required_set", required, `{"region":"us"}`, `{"region":"us"}`, ""},
		{"bad_schema", `{"type":"array"}`, `{}`, "", "bad schema"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tables := map[string]Table{}
			if tt.set != "" {
				tables["a"] = Table{Values: json.RawMessage(tt.set), From: "config.toml:7"}
			}
			all := New(tables)
			for range 2 { // the second answer is remembered
				got, err := all.Of(skill("a", tt.shape))
				if tt.says == "" {
					if err != nil || string(got) != tt.want {
						t.Fatalf("got %s, %v, want %s", got, err, tt.want)
					}
					continue
				}
				if got != nil || err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Fatalf("got %s, %v, want an error with %q", got, err, tt.says)
				}
				if kind := sdk.KindOf(err); kind != sdk.Unavailable && tt.name != "bad_schema" {
					t.Errorf("kind %q", kind)
				}
				if tt.set != "" && tt.name != "bad_schema" && !strings.Contains(err.Error(), "config.toml:7") {
					t.Errorf("%v does not say where", err)
				}
			}
		})
	}
}

// What one skill's settings are does not say anything of another's of the same
// name, such as one that replaced it.
func TestOfReplaced(t *testing.T) {
	all := New(map[string]Table{"a": {Values: json.RawMessage(`{"region":"eu"}`), From: "config.toml:1"}})
	first, second := skill("a", `{"type":"object","additionalProperties":false}`), skill("a", shape)
	second.Home.Digest += "2"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := all.Of(first); err == nil {
				t.Error("the first takes a key that it does not know")
			}
			if _, err := all.Of(second); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestProblems(t *testing.T) {
	set := func(line string) Table {
		return Table{Values: json.RawMessage(`{"region":"eu"}`), From: "config.toml:" + line}
	}
	all := New(map[string]Table{"good": set("1"), "plain": set("2"), "goood": set("3"), "bad": {Values: json.RawMessage(`{"x":1}`), From: "config.toml:4"}})
	errs := all.Problems([]*manifest.Skill{skill("bad", shape), skill("good", shape), skill("plain", "")})
	var text []string
	for _, err := range errs {
		text = append(text, err.Error())
	}
	got := strings.Join(text, "\n")
	for _, want := range []string{`config.toml:3: [settings.goood]: there is no such skill (did you mean "good"?)`, "config.toml:2: [settings.plain]: the skill takes no settings", `config.toml:4: [settings.bad] is not what`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing of:\n%s", want, got)
		}
	}
	if len(errs) != 3 {
		t.Errorf("%d problems:\n%s", len(errs), got)
	}
}
