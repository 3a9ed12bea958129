package main

import (
	"github.com/skillhost/skill/host"
	"os"
	"path/filepath"
	"testing"
)

// TestBuildThroughLink: a hostile folder must not make a build write elsewhere.
func TestBuildThroughLink(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	module, victim := filepath.Join(out, "module"), filepath.Join(out, "victim")
	for _, f := range []string{module, victim} {
		if err := os.WriteFile(f, []byte(filepath.Base(f)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"sub": out, "direct.wasm": victim} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	if err := place(module, dir, host.Module{Source: "sub/victim", Runtime: "wasm"}); err == nil {
		t.Error("build_linked_folder: written")
	}
	if err := place(module, dir, host.Module{Source: "direct.wasm", Runtime: "wasm"}); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "victim" {
		t.Errorf("the file outside is now %q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "direct.wasm")); err != nil || string(b) != "module" {
		t.Errorf("the module is %q, %v", b, err)
	}
}
