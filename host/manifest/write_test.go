package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

func yes(b bool) *bool { return &b }

var twoTools = []sdk.Tool{
	{Name: "greet", Title: "Greet \"them\"", Description: "Greets.\nOn \\two\\ lines \"\"\" with\ttab\"", Input: json.RawMessage(`{"type":"object","properties":{"who":{"type":"string","description":"whom to greet, it's 'needed'"},"n":{"type":"integer","maximum":9007199254740993}},"required":["who"]}`),
		Output: json.RawMessage(`{"type":"string"}`), Annotations: &sdk.Annotations{ReadOnly: yes(true), OpenWorld: yes(false)}},
	{Name: "greet.all", Description: "Greets all."},
}

func TestWriteTools(t *testing.T) {
	const start = head + "# the tools\n[tools.greet.capabilities]\nfilesystem = []\n\n[capabilities]\n"
	once, err := WriteTools([]byte(start), twoTools)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(once), start) {
		t.Errorf("the author's text has changed:\n%s", once)
	}
	again, err := WriteTools(once, twoTools)
	if err != nil || string(again) != string(once) {
		t.Errorf("writing again changes the text: %v\n%s", err, again)
	}
	s, err := Read("skill.toml", once)
	if err != nil || len(s.Tools) != 2 || s.Tools[0].Narrow == nil || s.Tools[0].Description != twoTools[0].Description {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestDraft checks that a manifest can be read before its tools are written.
func TestDraft(t *testing.T) {
	for text, want := range map[string]string{
		head:                 "untold",
		head + "[tools.a]\n": "a",
		head + "[tools.a]\n[resources.r]\nuri = \"x://{v}\"\ntool = \"read\"\nvariables.v.complete = \"a.b\"\n":                 "a a.b read",
		head + "[prompts.p]\ntool = \"chat\"\narguments = [{ name = \"x\", complete = \"chat\" }]\n[prompts.q]\nfile = \"f\"\n": "chat untold",
	} {
		draft, err := Draft("skill.toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read("skill.toml", draft)
		var names []string
		for _, tool := range s.Tools {
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	if _, err := Draft("skill.toml", []byte("x")); sdk.KindOf(err) != sdk.Invalid {
		t.Error(err)
	}
}

func TestWriteToolsKeeps(t *testing.T) {
	const start = head + `
[tools.greet] # my comment
examples = ["a"] # by hand
description = """
old
text"""
# above input
input.type = "object"
icons = [
  { src = "https://example.com/i.png" },
]
[tools.greet.input.properties.x] # goes
type = "string"
[tools.gone]
title = "gone"

# last words
[tools.greet.limits]
timeout = "1s"`
	const want = head + `
[tools.greet] # my comment
title = "New"
input = '{"type":"object"}'
examples = ["a"] # by hand
# above input
icons = [
  { src = "https://example.com/i.png" },
]

# last words
[tools.greet.limits]
timeout = "1s"
`
	got, err := WriteTools([]byte(start), []sdk.Tool{{Name: "greet", Title: "New", Input: json.RawMessage(`{ "type": "object" }`)}})
	if err != nil || strings.TrimSpace(string(got)) != strings.TrimSpace(want) {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestWriteToolsErrors(t *testing.T) {
	a := []sdk.Tool{{Name: "a"}}
	for _, tc := range []struct {
		name, text string
		tools      []sdk.Tool
		want       string
	}{
		{"syntax", "name =", a, `skill.toml:1: want a value, found the end of the file`},
		{"unknown_key", "nam = 1", a, `skill.toml:1: unknown key "nam"`},
		{"gone_with_examples", head + "[tools.a]\n[tools.b]\nexamples = []", a, `skill.toml:8: the module has no tool "b", but its table has the hand-written key "examples"`},
		{"gone_with_capabilities", head + "[tools.a]\n[tools.b.capabilities]\nenv = []", a, `the hand-written key "capabilities"`},
		{"inline", head + "[tools]\na = { title = 'x' }", a, `skill.toml:7: the tool "a" is written inline or in dotted keys (write it as a table, [tools.a])`},
		{"dotted", head + "tools.a.title = 'x'", a, `skill.toml:6: the tool "a" is written inline or in dotted keys`},
		{"gone_inline", head + "[tools]\na = { title = 'x' }\nb = { title = 'x' }", nil, `is written inline or in dotted keys`},
		{"twice", head, []sdk.Tool{{Name: "a"}, {Name: "a"}}, `two tools are called "a"`},
		{"bad_name", head, []sdk.Tool{{Name: "a b"}}, `bad name "a b" in [tools]`},
		{"bad_schema", head, []sdk.Tool{{Name: "a", Input: json.RawMessage(`{`)}}, `the input schema of "a": `},
		{"array_schema", head, []sdk.Tool{{Name: "a", Output: json.RawMessage(`[]`)}}, `the output schema of "a": not a JSON object`},
		{"invisible", head, []sdk.Tool{{Name: "a", Description: "\u202e"}}, `the invisible character U+202E`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := WriteTools([]byte(tc.text), tc.tools)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %s\n%s", err, tc.want, out)
			}
		})
	}
}

func FuzzWriteTools(f *testing.F) {
	f.Add("greet", "Greets.\nYou", `{"type":"object","title":"it's"}`, head+"[tools.x]\n")
	f.Add("a.b", `"""`, `{"x":"\u007f"}`, head+"[tools.\"a.b\"]\r\ntitle = ''\r\n[limits]")
	f.Fuzz(func(t *testing.T, name, description, schema, text string) {
		tools := []sdk.Tool{{Name: name, Description: description, Input: json.RawMessage(schema), Annotations: &sdk.Annotations{}}}
		out, err := WriteTools([]byte(text), tools)
		if err != nil {
			if sdk.KindOf(err) == sdk.Internal {
				t.Fatal(err)
			}
			return
		}
		again, err := WriteTools(out, tools)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%v\n%q\n%q", err, out, again)
		}
	})
}
