package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// TestMade: a denied path that did not exist cannot be held, so making it is
// told (write_denied_absent).
func TestMade(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.ToSlash(filepath.Join(dir, name)) }
	if err := os.WriteFile(at("old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	entry := func(v capability.Verb, path string) capability.Capability {
		return capability.Capability{Kind: capability.Filesystem, Verb: v, Pattern: path}
	}
	layers := []capability.Layer{{Name: "manifest", Closed: true, Allow: capability.Set{entry(capability.Write, at(""))},
		Deny: capability.Set{entry(capability.Write, at("old")), entry(capability.Write, at("envrc")), entry(capability.Read, at("vscode")), entry(capability.Write, "/elsewhere")}}}
	p := &Plan{layers: layers, absent: unmade(layers)}
	if got := strings.Join(p.absent, " "); got != at("envrc")+" "+at("vscode") {
		t.Errorf("absent: %s", got)
	}
	if r, _ := Explain(*p, sdk.Text("done"), nil); len(r.Content) != 1 {
		t.Errorf("nothing was made: %v", r.Content)
	}
	if err := os.Mkdir(at("vscode"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := Explain(*p, sdk.Text("done"), nil)
	if err != nil || len(r.Content) != 2 || !strings.Contains(r.Content[1].Text, at("vscode")) || strings.Contains(r.Content[1].Text, "envrc") {
		t.Errorf("%v, %v", r.Content, err)
	}
}
