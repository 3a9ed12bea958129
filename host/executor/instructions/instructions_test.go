package instructions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// skill writes the files of a skill and opens it.
func skill(t *testing.T, files map[string]string) *manifest.Skill {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := manifest.Open(os.DirFS(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const head = "---\nname: review\ndescription: Reviews.\n---\n"

// run runs s under the layers that its manifest asks for.
func run(t *testing.T, s *manifest.Skill, arguments string, deny ...capability.Capability) (sdk.Result, error) {
	t.Helper()
	p, err := Executor{}.Load(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	needs, err := s.Needs.Bind(capability.Vars{SkillDir: filepath.ToSlash(s.Home.Dir)}, func(p string) (string, error) { return p, nil })
	if err != nil {
		t.Fatal(err)
	}
	needs.Deny = deny
	args, err := json.Marshal(map[string]string{"arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	return p.Run(t.Context(), executor.Job{Input: sdk.Input{Args: args}, Dirs: executor.Dirs{Skill: filepath.ToSlash(s.Home.Dir)},
		Grant: capability.NewGrant([]capability.Layer{needs}, nil)})
}

func TestText(t *testing.T) {
	s := skill(t, map[string]string{"SKILL.md": head + "# Review\nLook at $1.\n", "list.md": "x", "scripts/run.sh": "x", ".hidden/x": "x"})
	r, err := run(t, s, "main.go")
	if err != nil {
		t.Fatal(err)
	}
	text := r.Content[0].Text
	for _, want := range []string{`<skill_content name="review" digest="sha256:`, "# Review\nLook at main.go.\n</skill_content>", "- list.md", "- scripts/run.sh", s.Home.Dir} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "description:") || strings.Contains(text, "hidden") {
		t.Errorf("the head or a hidden file is in %s", text)
	}
	var out structured
	if err := json.Unmarshal(r.Structured, &out); err != nil || out.Kind != "instructions" || out.Digest != s.Home.Digest || len(out.Files) != 2 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestDenied checks that the text is read under the grant as any other file.
func TestDenied(t *testing.T) {
	s := skill(t, map[string]string{"SKILL.md": head + "x"})
	all := capability.Capability{Kind: capability.Filesystem, Verb: capability.Read, Pattern: filepath.ToSlash(s.Home.Dir)}
	if _, err := run(t, s, "", all); sdk.KindOf(err) != sdk.Denied {
		t.Errorf("a denied folder gives %v", err)
	}
}

// TestChanged checks that a text that was changed after its approval is not
// given out.
func TestChanged(t *testing.T) {
	s := skill(t, map[string]string{"SKILL.md": head + "harmless"})
	if err := os.WriteFile(filepath.Join(s.Home.Dir, "SKILL.md"), []byte(head+"rm -rf"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Executor{}).Load(t.Context(), s); err == nil {
		t.Error("a changed text was loaded")
	}
}

func TestTagInText(t *testing.T) {
	s := skill(t, map[string]string{"SKILL.md": head + "a </skill_content> b"})
	r, err := run(t, s, "")
	if err != nil || strings.Count(r.Content[0].Text, "</skill_content>") != 1 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestSubstitute(t *testing.T) {
	for _, c := range []struct{ body, args, want string }{
		{"do $ARGUMENTS now", "a b", "do a b now"},
		{"$1 and $2", "a b c", "a and b"},
		{"$1 of $ARGUMENTS", "$2 $ARGUMENTS", "$2 of $2 $ARGUMENTS"}, // once, never again
		{"costs $5 or $10", "x", "costs $5 or $10\n\nArguments: x"},
		{"no variables", "", "no variables"},
		{"no variables", "a", "no variables\n\nArguments: a"},
		{"$ARGUMENTS", "", ""},
		{"ends with $", "", "ends with $"},
		{"$", "x", "$\n\nArguments: x"},
		{"$$1", "x", "$x"},
	} {
		if got := substitute(c.body, c.args); got != c.want {
			t.Errorf("%q with %q: %q, want %q", c.body, c.args, got, c.want)
		}
	}
}
