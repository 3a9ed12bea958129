package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConformance: the skills that the conformance suite calls are skills as
// any others. They build from their sources, are refused until somebody allows
// them, and their manifests say what their modules say.
func TestConformance(t *testing.T) {
	w := newWorld(t)
	wasip1 := []string{"GOOS=wasip1", "GOARCH=wasm"}
	for name, mode := range map[string][]string{"conformance": {"-buildmode=c-shared"}, "conformance-plain": nil} {
		dir := filepath.Join(w.dir, "home", "skills", name)
		if err := os.CopyFS(dir, os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name+".wasm")}, mode...)
		w.compile("go", wasip1, append(args, "./"+name)...)
	}
	w.run(t, 3, "call", "conformance.greet", `{"name":"Ann"}`)
	before, err := os.ReadFile(filepath.Join("conformance", "skill.toml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.dir, "home", "skills", "conformance")
	w.run(t, 0, "build", "--no-compile", dir)
	if after, err := os.ReadFile(filepath.Join(dir, "skill.toml")); err != nil || string(after) != string(before) {
		t.Errorf("the manifest does not say what the module says (%v): run skill build examples/conformance", err)
	}
	for _, name := range judged {
		w.run(t, 0, "allow", "--yes", name)
	}
	for _, x := range []struct {
		tool, args, want string
		status           int
	}{
		{"conformance.greet", `{"name":"Ann"}`, "Hello, Ann!", 0},
		{"conformance.test_image_content", `{}`, "image/png", 0},
		{"conformance.test_error_handling", `{}`, "intentionally returns an error", 1},
		{"conformance.slow_compute", `{"seconds":61}`, "", 2},
		{"conformance-plain.json_schema_2020_12_tool", `{"phone":"1"}`, "", 2}, // the else of its schema
		{"conformance-plain.json_schema_2020_12_tool", `{"contactMethod":"phone","phone":"1"}`, `called with`, 0},
		{"conformance-plain.test_x_mcp_header", `{"region":"eu"}`, `eu`, 0},
	} {
		if x.status != 0 {
			w.run(t, x.status, "call", x.tool, x.args)
			continue
		}
		if out := w.run(t, 0, "call", "--json", x.tool, x.args); !json.Valid([]byte(out)) || !strings.Contains(out, x.want) {
			t.Errorf("%s %s: %s", x.tool, x.args, out)
		}
	}
}
