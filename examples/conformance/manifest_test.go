package main

import (
	"os"
	"slices"
	"testing"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

// TestManifest: skill.toml says of the tools what the code says, and which of
// them become tasks is what the suite expects.
func TestManifest(t *testing.T) {
	data, err := os.ReadFile(manifest.FileName)
	if err != nil {
		t.Fatal(err)
	}
	s, err := manifest.Read(manifest.FileName, data)
	if err != nil {
		t.Fatal(err)
	}
	var tools []sdk.Tool
	tasks := map[string][]string{}
	for _, tool := range s.Tools {
		tools = append(tools, tool.Tool)
		tasks[tool.Task.When] = append(tasks[tool.Task.When], tool.Name)
		if tool.Task.AskFirst != (tool.Name == "test_tool_with_task") {
			t.Errorf("%s: ask_first is %t", tool.Name, tool.Task.AskFirst)
		}
	}
	wrong, err := guesttest.Disagreements(tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	for when, want := range map[string][]string{
		"required": {"failing_job", "test_tool_with_task"},
		"optional": {"confirm_delete", "multi_input", "protocol_error_job", "slow_compute"},
	} {
		if got := slices.Sorted(slices.Values(tasks[when])); !slices.Equal(got, want) {
			t.Errorf("task = %q: %q, want %q", when, got, want)
		}
	}
}
