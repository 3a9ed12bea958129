package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// structured calls a tool of the skill in dir and returns what it answered.
func (w *world) structured(t *testing.T, dir, tool, args string) string {
	t.Helper()
	var r struct {
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal([]byte(w.run(t, 0, "call", "--allow", "--json", dir, tool, args)), &r); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, sorted(t, r.Structured)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// native says why a native plugin is not run here, or nothing.
func (w *world) native(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "linux" && os.Getenv("CI") == "true" {
		return // a machine that cannot confine fails
	}
	if out := w.run(t, 0, "doctor"); runtime.GOOS != "linux" {
		t.Skipf("LEFT OUT: native plugins are run on Linux only\n%s", out)
	}
}

// TestPlugins runs the examples that are native plugins.
func TestPlugins(t *testing.T) {
	w := newWorld(t)
	w.native(t)
	for name, size := range map[string]int{"a.txt": 3, "docs/b.txt": 50, "docs/c.txt": 7} {
		file := filepath.Join(w.work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("plugin-go", func(t *testing.T) {
		asPlugin := filepath.Join(w.dir, "plugin-go")
		if err := os.CopyFS(asPlugin, os.DirFS("plugin-go")); err != nil {
			t.Fatal(err)
		}
		w.compile("go", nil, "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(asPlugin, "plugin-go"), "./plugin-go")
		asModule := filepath.Join(w.dir, "plugin-go-wasm")
		if err := os.CopyFS(asModule, os.DirFS(filepath.Join("plugin-go", "wasm"))); err != nil {
			t.Fatal(err)
		}
		w.compile("go", []string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(asModule, "plugin-go.wasm"), "./plugin-go")
		for _, dir := range []string{asPlugin, asModule} {
			before, err := os.ReadFile(filepath.Join(dir, "skill.toml"))
			if err != nil {
				t.Fatal(err)
			}
			w.run(t, 0, "build", "--no-compile", dir)
			if after, err := os.ReadFile(filepath.Join(dir, "skill.toml")); err != nil || !bytes.Equal(before, after) {
				t.Errorf("%s: the manifest does not say what the program says: run skill build (%v)\n%s", dir, err, after)
			}
			w.run(t, 3, "call", dir, "largest", `{}`)
			const want = `{"files":[{"bytes":50,"path":"docs/b.txt"},{"bytes":7,"path":"docs/c.txt"}],"total":60}`
			if got := w.structured(t, dir, "largest", `{"top":2}`); got != want {
				t.Errorf("%s: got %s, want %s", dir, got, want)
			}
			w.run(t, 2, "call", "--allow", dir, "largest", `{"top":0}`)
		}
	})
	t.Run("plugin-node", func(t *testing.T) {
		if why := noNode(); why != "" {
			if os.Getenv("CI") == "true" {
				t.Fatal(why)
			}
			t.Skip("LEFT OUT: ", why)
		}
		dir := w.author(t, "plugin-node")
		w.run(t, 3, "call", dir, "count", `{"text":"x"}`)
		if got := w.structured(t, dir, "count", `{"text":"one two  three\nfour é"}`); got != `{"characters":21,"lines":2,"words":5}` {
			t.Errorf("got %s", got)
		}
		if got := w.structured(t, dir, "now", `{}`); !strings.HasPrefix(got, `{"now":"20`) {
			t.Errorf("got %s", got)
		}
		w.run(t, 2, "call", "--allow", dir, "count", `{"text":5}`)
	})
	if out := w.run(t, 0, "audit", "verify"); !strings.Contains(out, "intact: ") {
		t.Error(out)
	}
}

// noNode says what is missing for Node, or nothing. A caged program looks only
// where the system has its programs.
func noNode() string {
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin"} {
		if out, err := exec.Command(filepath.Join(dir, "node"), "--version").Output(); err == nil && len(out) > 0 {
			return ""
		}
	}
	return "no node in /usr/local/bin or /usr/bin (on Debian: apt-get install nodejs)"
}
