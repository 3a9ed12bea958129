package main

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

var update = flag.Bool("update", false, "write the tools into the manifest")

// TestManifest: skill.toml says of the tools what the code says.
func TestManifest(t *testing.T) {
	if *update {
		if err := writeTables(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(manifest.FileName)
	if err != nil {
		t.Fatal(err)
	}
	s, err := manifest.Read(manifest.FileName, data)
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
	wrong, err := guesttest.Disagreements(tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

var examples = regexp.MustCompile(`(?s)examples = \[\n.*?\n\]\n`)

// writeTables replaces the tables of the tools and keeps their examples.
func writeTables() error {
	data, err := os.ReadFile(manifest.FileName)
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
				if kept = examples.FindString(old); strings.Contains(old, "\nhidden = true\n") {
					kept = "hidden = true\n" + kept
				}
			}
		}
		before, after, _ := strings.Cut(table, "input = ")
		out += "\n" + before + kept + "input = " + after
	}
	return os.WriteFile(manifest.FileName, []byte(out), 0o644)
}

// TestSeed: the parameters of the seed have its names and types, and action
// alone is required.
func TestSeed(t *testing.T) {
	tools, err := guesttest.Describe()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tools, func(tool sdk.Tool) bool { return tool.Name == "PlanMode" })
	if i < 0 {
		t.Fatal("no PlanMode")
	}
	var input struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if err := json.Unmarshal(tools[i].Input, &input); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"action", "goal", "plan_file"} {
		if input.Properties[name].Type != "string" {
			t.Errorf("%s: %+v", name, input.Properties[name])
		}
	}
	if !slices.Equal(input.Required, []string{"action"}) || len(input.Properties) != 3 || tools[i].Output == nil {
		t.Errorf("%s", tools[i].Input)
	}
	var output struct{ Required []string }
	if err := json.Unmarshal(tools[i].Output, &output); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mode", "plan_id", "goal", "plan_file", "steps", "approved", "denied_since_enter"} {
		if !slices.Contains(output.Required, name) {
			t.Errorf("the output has not always %s", name)
		}
	}
}
