package view

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

func TestVisible(t *testing.T) {
	for name, c := range map[string][2]string{
		"plain":                 {"a\tb\nö 日本 👩‍🚀", "a\tb\nö 日本 👩‍🚀"},
		"cursor up":             {"\x1b[2A", `\x1b[2A`},
		"title":                 {"\x1b]0;x\a", `\x1b]0;x\x07`},
		"overwrite":             {"bad\rgood", `bad\x0dgood`},
		"erase":                 {"bad\b\x7f", `bad\x08\u007f`},
		"C1 as a character":     {"\u009b2J", `\u009b2J`},
		"C1 as a byte":          {"\x9b2J", `\x9b2J`},
		"right to left":         {"a\u202etxt.exe", `a\u202etxt.exe`},
		"isolate":               {"\u2066a\u2069", `\u2066a\u2069`},
		"mark":                  {"\u200ea\u061c", `\u200ea\u061c`},
		"line separator":        {"a\u2028b", `a\u2028b`},
		"tag":                   {"\U000e0041", `\udb40\udc41`},
		"replacement character": {"\ufffd", "\ufffd"},
	} {
		var b bytes.Buffer
		if n, err := io.WriteString(Visible(&b), c[0]); err != nil || n != len(c[0]) || b.String() != c[1] {
			t.Errorf("%s: %d %v %q, want %q", name, n, err, b.String(), c[1])
		}
	}
	if got := Line("a\nb\tc\x1b"); got != `a\nb\tc\x1b` {
		t.Errorf("Line: %q", got)
	}
}

// hostile is in every text that is shown below.
const hostile = "x\x1b[1A\u202ey\n2026-01-01 00:00:00.000 forged"

// What each view writes through Visible keeps to its lines, and hides nothing.
func TestHostileTexts(t *testing.T) {
	s := &manifest.Skill{About: manifest.About{Name: "s", Description: hostile}, Home: manifest.Home{File: hostile, Warnings: []string{hostile}},
		Needs:     capability.Layer{Pos: capability.Pos{File: hostile}, Allow: capability.Set{{Kind: capability.Env, Pattern: hostile}}},
		Tools:     []manifest.Tool{{Tool: sdk.Tool{Name: "t", Description: hostile}}},
		Secrets:   []manifest.Secret{{Name: "S", Hosts: []string{hostile}, Header: hostile}},
		Resources: []manifest.Resource{{Name: "r", URI: hostile}},
		Prompts:   []manifest.Prompt{{Name: "p", Description: hostile}},
	}
	for name, write := range map[string]func(io.Writer){
		"skill":  func(w io.Writer) { Skill(w, s) },
		"layers": func(w io.Writer) { Layers(w, []capability.Layer{s.Needs}) },
		"record": func(w io.Writer) { Record(w, audit.Record{Type: audit.TypeEnd, Tool: hostile, Error: hostile}) },
		"log":    func(w io.Writer) { Event(w, sdk.Event{Kind: sdk.EventLog, Message: hostile}) },
		"link": func(w io.Writer) {
			Result(w, sdk.Result{Content: []sdk.Content{{Type: sdk.TypeResourceLink, URI: hostile}}})
		},
	} {
		var b bytes.Buffer
		write(Visible(&b))
		for l := range strings.Lines(b.String()) {
			if strings.HasPrefix(strings.TrimSpace(l), "2026-01-01") {
				t.Errorf("%s: a forged line: %q", name, b.String())
			}
		}
		if !strings.Contains(b.String(), `x\x1b[1A\u202ey`) || strings.ContainsFunc(b.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' || r == '\u202e' }) {
			t.Errorf("%s: %q", name, b.String())
		}
	}
}

func FuzzVisibleJSON(f *testing.F) {
	for _, s := range []string{hostile, "\u009b\x7f\\", "\U000e0041", "\"\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var plain, shown bytes.Buffer
		if err := JSONLine(&plain, s); err != nil {
			t.Fatal(err)
		}
		if err := JSONLine(Visible(&shown), s); err != nil {
			t.Fatal(err)
		}
		var a, b string
		if err := json.Unmarshal(plain.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(shown.Bytes(), &b); err != nil || a != b {
			t.Errorf("%q: %q %v", a, b, err)
		}
	})
}
