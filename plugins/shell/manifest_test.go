package shell

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/manifests"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

var update = flag.Bool("update", false, "write the tools into the manifest")

// inCage is set where TestCaged has made a pid namespace for this process.
const inCage = "SHELL_TEST_IN_CAGE"

const manifestFile = "../../manifests/shell/skill.toml"

func TestMain(m *testing.M) {
	if os.Getpid() == 1 && os.Getenv(inCage) == "" {
		fmt.Fprintln(os.Stderr, "the first process of a pid namespace would end all others: run the tests by go test")
		os.Exit(1)
	}
	Tools()
	os.Exit(m.Run())
}

// TestManifest: skill.toml says of the tools what the code says.
func TestManifest(t *testing.T) {
	if *update {
		if err := writeTables(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := manifest.OpenEmbedded(manifests.FS, "shell", "") // as it was when the test was built
	if err != nil {
		t.Fatal(err)
	}
	var tools []sdk.Tool
	for _, tool := range s.Tools {
		tools = append(tools, tool.Tool)
		if len(tool.Examples) < 5 && !tool.Hidden {
			t.Errorf("tool %q has %d examples", tool.Name, len(tool.Examples))
		}
	}
	if len(tools) != 6 {
		t.Errorf("%d tools", len(tools))
	}
	wrong, err := guesttest.Disagreements(tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	if s.Limits.Timeout <= maxTimeout || s.Limits.MaxTimeout <= maxJobTime {
		t.Errorf("the host ends commands before the tools do: %+v", s.Limits)
	}
}

var examples = regexp.MustCompile(`(?s)examples = \[\n.*?\n\]\n`)

// writeTables replaces the tables of the tools and keeps their examples.
func writeTables() error {
	data, err := os.ReadFile(manifestFile)
	if err != nil {
		return err
	}
	parts := strings.Split(string(data), "\n[tools.")
	news, err := guesttest.Disagreements(nil)
	if err != nil {
		return err
	}
	out := strings.TrimRight(parts[0], "\n") + "\n"
	for _, n := range news {
		_, table, _ := strings.Cut(n, "the program has:\n")
		head, _, _ := strings.Cut(table, "\n")
		kept := ""
		for _, old := range parts[1:] {
			if strings.HasPrefix("[tools."+old, head) {
				kept = examples.FindString(old)
			}
		}
		before, after, _ := strings.Cut(table, "input = ")
		out += "\n" + before + kept + "input = " + after
	}
	return os.WriteFile(manifestFile, []byte(out), 0o644)
}

// TestSeed: the parameters of the seed have its names and types, and those it
// requires are required, and no others.
func TestSeed(t *testing.T) {
	tools, err := guesttest.Describe()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Bash": "command", "BackgroundBash": "command", "ReadBgOutput": "task_id", "ListBgTasks": "", "KillBgTask": "task_id",
	}
	for _, tool := range tools {
		if tool.Hidden {
			continue
		}
		input := string(tool.Input)
		required := ""
		if n := want[tool.Name]; n != "" {
			required = `"required":["` + n + `"]`
			if !strings.Contains(input, `"`+n+`":{`) {
				t.Errorf("%s: no %s", tool.Name, n)
			}
		}
		if required == "" && strings.Contains(input, `"required"`) || !strings.Contains(input, required) {
			t.Errorf("%s: %s", tool.Name, input)
		}
		if tool.Output == nil {
			t.Errorf("%s has no output schema", tool.Name)
		}
		delete(want, tool.Name)
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
	for _, tool := range tools {
		if tool.Name == "Bash" && !strings.Contains(string(tool.Input), `"timeout":{"type":"integer"`) {
			t.Errorf("%s", tool.Input)
		}
	}
}
