package manifest

import (
	"embed"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/manifest/template"
)

//go:embed testdata/embedded
var embedded embed.FS

func TestReadExec(t *testing.T) {
	data, err := os.ReadFile("testdata/good/exec.toml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read("skill.toml", data)
	if err != nil {
		t.Fatal(err)
	}
	if s.Source != "" || s.Sandbox != (Sandbox{Require: "landlock", Isolation: "call", Home: "private"}) {
		t.Errorf("%+v", s)
	}
	grep, log := s.Tools[0].Command, s.Tools[1].Command
	if !slices.Equal(grep.Success, []int{0, 1}) || grep.Program != "/usr/bin/grep" || grep.Input != "{text}\n" || log.Input != "" || !slices.Equal(log.Success, []int{0}) {
		t.Errorf("grep %+v, log %+v", grep, log)
	}
	got, err := log.Argv(json.RawMessage(`{"count":3,"format":"--stat","paths":["-x"]}`), template.Dirs{Workspace: "/w"})
	if want := []string{"git", "-C", "/w", "log", "--max-count=3", "--stat", "--", "-x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// The schema of a command may be in a file, and is checked when it is there.
func TestOpenExec(t *testing.T) {
	const toml = "name = \"hello\"\nversion = \"1.0.0\"\ndescription = \"d\"\nruntime = \"exec\"\n[tools.a]\ncommand = [\"git\", \"{x}\"]\ninput = \"a.json\"\n[capabilities]\nexec = [\"git\"]\n"
	s, err := open(folder(t, map[string]string{FileName: toml, "a.json": `{"type":"object","properties":{"x":{"type":"string"}}}`}))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Tools[0].Command.Argv(json.RawMessage(`{"x":"log"}`), template.Dirs{}); err != nil || !slices.Equal(got, []string{"git", "log"}) {
		t.Errorf("%q, %v", got, err)
	}
	_, err = open(folder(t, map[string]string{FileName: toml, "a.json": `{"type":"object"}`}))
	if err == nil || !strings.Contains(err.Error(), `skill.toml:6: tools.a.command: the command uses "x", which is no argument of the tool`) {
		t.Errorf("%v", err)
	}
}

// The source of a plugin in the binary is a name; that of any other is a file.
func TestOpenPlugin(t *testing.T) {
	s, err := OpenEmbedded(embedded, "testdata/embedded/plugin", "sha256:"+strings.Repeat("0", 64))
	if err != nil || s.Source != "shell" || !s.Home.Builtin || s.Home.File != "shell/skill.toml" || s.Sandbox.Home != "private" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := OpenEmbedded(embedded, "testdata/embedded/bad", "sha256:"+strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), `bad source "../shell"`) {
		t.Errorf("%v", err)
	}
	text, err := embedded.ReadFile("testdata/embedded/plugin/" + FileName)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(folder(t, map[string]string{FileName: string(text)})); err == nil || !strings.Contains(err.Error(), `no file "shell" in the skill's directory`) {
		t.Errorf("a stranger's skill names a plugin of the binary: %v", err)
	}
	if s, err := open(folder(t, map[string]string{FileName: string(text), "shell": "#!/bin/sh\n"})); err != nil || s.Source != "shell" || s.Home.Builtin {
		t.Errorf("%+v, %v", s, err)
	}
}

// Writing a module's tools keeps the hand-written command.
func TestWriteToolsKeepsCommand(t *testing.T) {
	_, err := WriteTools([]byte("name = \"x\"\nversion = \"1.0.0\"\ndescription = \"d\"\nruntime = \"exec\"\n[tools.a]\n[tools.b]\ncommand = [\"git\"]\n[capabilities]\nexec = [\"git\"]\n"), nil)
	if err == nil || !strings.Contains(err.Error(), `hand-written key "command"`) {
		t.Errorf("%v", err)
	}
}
