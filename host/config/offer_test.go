package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// Each setting as a variable and in the file: TestEverySetting.
var (
	goodOffer = map[string][2]string{"discover": {"false", "false"}, "tools": {"false", "false"}, "streaming": {"false", "false"}, "model": {"sonnet", `"sonnet"`}}
	badOffer  = map[string][2]string{"discover": {"no", `"false"`}, "tools": {"1", `"true"`}, "streaming": {"on", "1"}, "model": {strings.Repeat("x", 201), `"a\nb"`}}
)

func TestEnvFile(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]Offer{
		"": {true, true, ""},
		"# settings\nTOOLS=true   # serve\nSTREAMING=true\nMODEL=sonnet  # a model\nPROVIDER=x\nnonsense\n": {true, true, "sonnet"},
		"TOOLS=false\r\nSTREAMING=0\r\nMODEL=\"claude #1\"\r\n":                                             {false, false, "claude #1"},
		"export TOOLS=off\nexport MODEL='a b' # c\nTOOLS_X=true\n=true\n":                                   {false, true, "a b"},
		"\ufeffTOOLS = no\nTOOLS=\nMODEL=#x\nMODEL=a#b":                                                     {false, true, "a#b"},
		"MODEL=\"open\nTOOLS=YES": {true, true, `"open`},
	} {
		c, err := load(Flags{EnvFile: write(t, filepath.Join(dir, "env.txt"), text)}, env{"SKILL_HOME": dir}.get, "")
		if err != nil || c.Offer != want {
			t.Errorf("%q: got %+v, %v", text, c.Offer, err)
		}
	}
	file := write(t, filepath.Join(dir, "env.txt"), "\nTOOLS=maybe\n")
	if _, err := load(Flags{EnvFile: file}, env{"SKILL_HOME": dir}.get, ""); sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), file+":2: TOOLS=maybe: ") {
		t.Errorf("a word that is none: %v", err)
	}
	for _, file := range []string{filepath.Join(dir, "missing"), dir, write(t, filepath.Join(dir, "huge"), strings.Repeat("#", maxEnvFile+1))} {
		if _, err := load(Flags{EnvFile: file}, env{"SKILL_HOME": dir}.get, ""); sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), "--env-file: ") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// An environment file outranks the settings file, and a variable of the host's
// own outranks both.
func TestEnvFileRank(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "config.toml"), "tools = false\nstreaming = false\nmodel = \"a\"\n")
	file := write(t, filepath.Join(home, "env.txt"), "TOOLS=true\nMODEL=b\n")
	c, err := load(Flags{EnvFile: file}, env{"SKILL_HOME": home, "SKILL_MODEL": "c"}.get, "")
	if err != nil || c.Offer != (Offer{true, false, "c"}) {
		t.Errorf("%+v, %v", c.Offer, err)
	}
	if got := c.Origins["tools"] + " " + c.Origins["model"]; got != file+":1 SKILL_MODEL" {
		t.Errorf("from %s", got)
	}
}

// A project's skills are looked at last, and not at all if that is not wanted.
func TestFound(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	want := func(dirs ...string) (out []string) {
		for _, d := range dirs {
			out = append(out, filepath.Join(d, ".agents", "skills"), filepath.Join(d, ".claude", "skills"))
		}
		return out
	}
	for _, c := range []struct {
		flags Flags
		env   env
		want  []string
	}{
		{Flags{Workspace: dir}, env{}, want(home, dir)},
		{Flags{Workspace: home}, env{}, want(home)},
		{Flags{Workspace: dir}, env{"SKILL_DISCOVER": "false"}, nil},
		{Flags{Workspace: dir, Skills: []string{filepath.Join(dir, ".claude", "skills")}}, env{}, want(home, dir)[:3]},
	} {
		c.env["SKILL_HOME"] = t.TempDir()
		got, err := load(c.flags, c.env.get, "")
		if err != nil || !slices.Equal(got.Found, c.want) {
			t.Errorf("%+v: found %q, %v", c.flags, got.Found, err)
		}
	}
}
