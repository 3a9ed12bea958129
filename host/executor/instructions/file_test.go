package instructions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

const files = `name = "docs"
version = "1.0.0"
description = "Documents."
runtime = "wasm"
source = "m"
[resources.text]
uri = "docs://text"
mime = "text/markdown"
file = "a.md"
[resources."a.b"]
uri = "docs://binary"
mime = "image/png"
file = "b.png"
[resources.large]
uri = "docs://large"
file = "large"
[prompts.letter]
file = "letter.md"
arguments = [{ name = "who", required = true }, { name = "tone" }]
[prompts.binary]
file = "b.png"
[limits]
output = "4KiB"
`

// serve runs the file entry tool of a skill with those files.
func serve(t *testing.T, tool, args string, deny bool) (sdk.Result, error) {
	t.Helper()
	s := skill(t, map[string]string{"skill.toml": files, "m": "x", "a.md": "# Hällo", "b.png": "\x89PNG\x00\xff", "large": strings.Repeat("x", 5<<10),
		"letter.md": "Dear {{who}}, {{tone}}{{unknown}} {{ who }} {{{who}}} {{who"})
	p, err := Executor{}.Load(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	own, err := capability.Parse(capability.Filesystem, "read:"+capability.VarSkillDir, capability.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	l := capability.Layer{Name: "manifest", Closed: true, Allow: capability.Set{own}}
	if l, err = l.Bind(capability.Vars{SkillDir: filepath.ToSlash(s.Home.Dir)}, func(p string) (string, error) { return p, nil }); err != nil {
		t.Fatal(err)
	}
	if deny {
		l.Allow = nil
	}
	return p.Run(t.Context(), executor.Job{Input: sdk.Input{Tool: tool, Args: json.RawMessage(args)}, Limits: s.Limits,
		Dirs: executor.Dirs{Skill: filepath.ToSlash(s.Home.Dir)}, Grant: capability.NewGrant([]capability.Layer{l}, nil)})
}

func TestFiles(t *testing.T) {
	r, err := serve(t, "resources.text", "{}", false)
	if c := r.Content[0]; err != nil || c.Type != sdk.TypeResource || c.URI != "docs://text" || c.MIME != "text/markdown" || c.Text != "# Hällo" || c.Data != nil {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = serve(t, "resources.a.b", "{}", false)
	if c := r.Content[0]; err != nil || c.URI != "docs://binary" || c.Text != "" || string(c.Data) != "\x89PNG\x00\xff" {
		t.Errorf("%+v, %v", r, err)
	}
	// An argument that looks like a place stays what it is, and so does a place
	// that nobody knows.
	r, err = serve(t, "prompts.letter", `{"who":"{{tone}}"}`, false)
	if want := "Dear {{tone}}, {{unknown}} {{ who }} {{{tone}}} {{who"; err != nil || r.Content[0].Text != want {
		t.Errorf("%+v, %v", r.Content, err)
	}
	for name, x := range map[string]struct {
		tool, args string
		deny       bool
		want       sdk.Kind
	}{
		"denied":        {"resources.text", "{}", true, sdk.Denied},
		"denied_prompt": {"prompts.letter", `{"who":"x"}`, true, sdk.Denied},
		"too_large":     {"resources.large", "{}", false, sdk.Limit},
		"grows":         {"prompts.letter", `{"who":"` + strings.Repeat("x", 3<<10) + `"}`, false, sdk.Limit},
		"binary_prompt": {"prompts.binary", "{}", false, sdk.Invalid},
	} {
		if r, err := serve(t, x.tool, x.args, x.deny); sdk.KindOf(err) != x.want || r.Content != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFileChanged checks that a file that was changed after its approval is not
// given out.
func TestFileChanged(t *testing.T) {
	s := skill(t, map[string]string{"skill.toml": files, "m": "x", "a.md": "harmless", "b.png": "x", "large": "x", "letter.md": "x"})
	p, err := Executor{}.Load(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Home.Dir, "a.md"), []byte("rm -rf /"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := capability.Layer{Closed: true, Allow: capability.Set{{Kind: capability.Filesystem, Verb: capability.Read, Pattern: "/"}}}
	r, err := p.Run(t.Context(), executor.Job{Input: sdk.Input{Tool: "resources.text"}, Dirs: executor.Dirs{Skill: filepath.ToSlash(s.Home.Dir)}, Grant: capability.NewGrant([]capability.Layer{own}, nil)})
	if sdk.KindOf(err) != sdk.Invalid || r.Content != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestFill(t *testing.T) {
	values := map[string]string{"a": "1", "b": "{{a}}", "": "never"}
	for _, x := range []struct{ text, want string }{
		{"{{a}}{{b}}{{a}}", "1{{a}}1"},
		{"{{c}}", "{{c}}"},
		{"{{{a}}}", "{1}"},
		{"{{{{a}}}}", "{{1}}"},
		{"{{a", "{{a"},
		{"{{", "{{"},
		{"{{}}", "never"},
		{"{{a}}}}", "1}}"},
		{"no places", "no places"},
		{"", ""},
	} {
		if got, ok := fill(x.text, values, 0); got != x.want || !ok {
			t.Errorf("%q: %q, want %q", x.text, got, x.want)
		}
	}
	began := time.Now()
	if _, ok := fill(strings.Repeat("{", 8<<20), values, 0); !ok || time.Since(began) > 5*time.Second {
		t.Errorf("prompt_of_braces took %v", time.Since(began))
	}
	if _, ok := fill(strings.Repeat("{{a}}", 1000), map[string]string{"a": strings.Repeat("x", 1000)}, 10_000); ok {
		t.Error("prompt_bomb")
	}
}
