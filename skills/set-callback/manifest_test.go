package main

import (
	"os"
	"testing"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

// TestManifest: skill.toml says of the tools what the code says.
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
