package web

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

var update = flag.Bool("update", false, "write the tools into the manifest")

const manifestFile = "../../manifests/web/skill.toml"

func TestMain(m *testing.M) {
	Tools() // does not return in a process that reads a PDF
	os.Exit(m.Run())
}

// TestManifest: skill.toml says of the tools what the code says.
func TestManifest(t *testing.T) {
	if *update {
		if err := writeTables(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(manifestFile)
	if err != nil {
		t.Fatal(err)
	}
	s, err := manifest.Read("skill.toml", data)
	if err != nil {
		t.Fatal(err)
	}
	var tools []sdk.Tool
	for _, tool := range s.Tools {
		tools = append(tools, tool.Tool)
		if len(tool.Examples) < 5 {
			t.Errorf("tool %q has %d examples", tool.Name, len(tool.Examples))
		}
	}
	if len(tools) != 1 {
		t.Errorf("%d tools", len(tools))
	}
	wrong, err := guesttest.Disagreements(tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	if s.Limits.Timeout <= maxTimeout || s.Limits.HTTPBody < maxBody {
		t.Errorf("the host gives up before the tool does: %+v", s.Limits)
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
	if len(tools) != 1 || tools[0].Name != "ReadDocs" {
		t.Fatalf("%+v", tools)
	}
	var input struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if err := json.Unmarshal(tools[0].Input, &input); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{"url": "string", "format": "string", "wait_ms": "integer"} {
		if input.Properties[name].Type != kind {
			t.Errorf("%s is %q", name, input.Properties[name].Type)
		}
	}
	if len(input.Required) != 1 || input.Required[0] != "url" || tools[0].Output == nil {
		t.Errorf("%s", tools[0].Input)
	}
}
