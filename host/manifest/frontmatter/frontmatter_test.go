package frontmatter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

func TestReadJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       `{}`,
		"b: 1\na: [x, {y: z}]\n":                 `{"b":1,"a":["x",{"y":"z"}]}`,
		"a: yes\nb: true\nc: null\nd: .inf\n":    `{"a":"yes","b":true,"c":null,"d":".inf"}`,
		"a: 1.5\nb: 0x10\nc: 2026-01-02\n":       `{"a":1.5,"b":16,"c":"2026-01-02"}`,
		"a: <b> & \"c\"\n1: 2\n":                 `{"a":"<b> & \"c\"","1":2}`,
		"description: Use when: x\nname: it's\n": `{"description":"Use when: x","name":"it's"}`,
	} {
		h, body, err := Read("SKILL.md", []byte("---\n"+text+"---\nbody"))
		if err != nil || string(h.JSON) != want || body != "body" {
			t.Errorf("%q\ngot  %s %q %v\nwant %s", text, h.JSON, body, err, want)
		}
		if repaired := strings.Contains(text, "when:"); repaired != (len(h.Warnings) == 1) {
			t.Errorf("%q: %q", text, h.Warnings)
		}
	}
}

func TestReadHead(t *testing.T) {
	h, body, err := Read("SKILL.md", []byte("---\nname: n\ndescription: ' d '\nlicense: MIT\nmetadata: {version: 1.2.3}\n---\n"))
	if err != nil || h.Name != "n" || h.Description != "d" || h.License != "MIT" || h.Version != "1.2.3" || body != "" {
		t.Errorf("%+v %q %v", h, body, err)
	}
	for text, want := range map[string]string{
		"---\na: 1\n  b: [\n---\n":                       "SKILL.md:",
		"---\na: 1\na: 2\n---\n":                         `duplicate key "a"`,
		"---\na: &x 1\nb: *x\n---\n":                     "anchors and aliases are not read",
		"---\nname: a\u202eb\n---\n":                     "the invisible character U+202E",
		"---\n" + strings.Repeat("x", MaxSize) + "\n---": "at most 65536 are read",
		"---\nname: a\n":                                 "the frontmatter does not end",
		"\xff":                                           "not UTF-8",
	} {
		if _, _, err := Read("SKILL.md", []byte(text)); sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// FuzzRead: whatever is accepted is JSON, and every error is the author's.
func FuzzRead(f *testing.F) {
	f.Add([]byte("---\nname: hello\ndescription: Use when: greeting\nmetadata:\n  version: 1.2.3\n---\n# Hello"))
	f.Add([]byte("---\r\na: [1, .nan, ~, !!binary x]\r\n---"))
	f.Add([]byte("\uFEFF---\n? [a]\n: b\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, _, err := Read("SKILL.md", text)
		if err != nil {
			if sdk.KindOf(err) != sdk.Invalid {
				t.Fatal(err)
			}
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(h.JSON, &m); err != nil {
			t.Fatalf("%v: %s", err, h.JSON)
		}
	})
}
