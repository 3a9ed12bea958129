// Package examples_test builds each example skill as its author would, with
// the tools that its language has, and calls it through the real binary.
package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is the binary under test, and what its calls start with.
type world struct {
	t         *testing.T
	skill     string
	dir, work string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, skill: filepath.Join(dir, "skill"), work: filepath.Join(dir, "work")}
	if runtime.GOOS == "windows" {
		w.skill += ".exe"
	}
	if err := os.Mkdir(w.work, 0o700); err != nil {
		t.Fatal(err)
	}
	w.compile("go", nil, "build", "-trimpath", "-ldflags=-s -w", "-o", w.skill, "../cmd/skill")
	return w
}

// compile runs a compiler.
func (w *world) compile(name string, env []string, args ...string) {
	w.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(cmd.Environ(), append(env, "CGO_ENABLED=0")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// run runs the binary and wants its exit status.
func (w *world) run(t *testing.T, status int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.skill, args...)
	cmd.Dir = w.work
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SKILL_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "SKILL_HOME="+filepath.Join(w.dir, "home"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		t.Fatalf("skill %q: %v, want status %d\n%s%s", args, err, status, out.String(), errs.String())
	}
	return out.String()
}

// author copies an example without its module, which is built, not kept.
func (w *world) author(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(w.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) == ".wasm" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(name, f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f.Name()), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// natives are the examples that are no modules.
var natives = []string{"git-readonly", "jq", "plugin-go", "plugin-node", "plugin-python"}

// judged are the examples that "make conformance" calls; conformance_test.go
// wants that they can be.
var judged = []string{"conformance", "conformance-plain"}

// TestExamples runs each folder of this directory. One that is new and has no
// line here fails.
func TestExamples(t *testing.T) {
	w := newWorld(t)
	wasip1 := []string{"GOOS=wasip1", "GOARCH=wasm"}
	const count = `{"text":"one two  three\nfour é"}`
	const counted = `{"characters":21,"lines":2,"words":5}`
	examples := map[string]struct {
		build            func(t *testing.T, from, module string)
		tool, args, want string
		wrong            string
	}{
		"hello-go": {func(_ *testing.T, from, module string) {
			w.compile("go", wasip1, "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", module, "./"+from)
		}, "greet", `{"name":"Ann","loud":true}`, `{"greeting":"HELLO, ANN"}`, `{"nam":"Ann"}`},
		"wordcount-go": {func(_ *testing.T, from, module string) {
			w.compile("go", wasip1, "build", "-trimpath", "-ldflags=-s -w", "-o", module, "./"+from)
		}, "count", count, counted, `{"text":5}`},
		"wordcount-c": {func(t *testing.T, from, module string) {
			if why := noClang(w.dir); why != "" {
				if os.Getenv("CI") == "true" {
					t.Fatal(why)
				}
				t.Skip("LEFT OUT: ", why)
			}
			w.compile("clang", nil, "--target=wasm32-wasi", "-O2", "-o", module, filepath.Join(from, "main.c"))
		}, "count", count, counted, `{}`},
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		switch x, ok := examples[name]; {
		case !e.IsDir() || name == "session": // which "make session" runs
		case slices.Contains(natives, name): // native_test.go, plugin_test.go
		case slices.Contains(judged, name):
		case name == "review":
			t.Run(name, w.review)
		case !ok:
			t.Errorf("no test runs examples/%s", name)
		default:
			t.Run(name, func(t *testing.T) {
				dir := w.author(t, name)
				x.build(t, name, filepath.Join(dir, name+".wasm"))
				before := w.tools(t, name)
				w.run(t, 0, "build", "--no-compile", dir)
				if after := w.tools(t, name); after != before {
					t.Errorf("the manifest does not say what the module says: run skill build examples/%s\n%s\n%s", name, before, after)
				}
				w.run(t, 3, "call", dir, x.tool, x.args)
				out := w.run(t, 0, "call", "--allow", "--json", dir, x.tool, x.args)
				var r struct {
					Structured json.RawMessage `json:"structuredContent"`
				}
				var got bytes.Buffer
				if err := json.Unmarshal([]byte(out), &r); err != nil {
					t.Fatal(err)
				}
				if err := json.Compact(&got, sorted(t, r.Structured)); err != nil || got.String() != x.want {
					t.Errorf("%s %s: got %s, %v, want %s", x.tool, x.args, got.String(), err, x.want)
				}
				w.run(t, 2, "call", "--allow", dir, x.tool, x.wrong)
			})
		}
	}
	if out := w.run(t, 0, "audit", "verify"); !strings.Contains(out, "intact: ") {
		t.Error(out)
	}
}

// tools are those of an example's manifest, as the host reads them.
func (w *world) tools(t *testing.T, name string) string {
	t.Helper()
	var s struct{ Tools []json.RawMessage }
	if err := json.Unmarshal([]byte(w.run(t, 0, "show", "--json", "--skills", w.dir, name)), &s); err != nil || len(s.Tools) == 0 {
		t.Fatalf("%s: %d tools, %v", name, len(s.Tools), err)
	}
	var text bytes.Buffer
	for _, tool := range s.Tools {
		if err := json.Compact(&text, tool); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// sorted writes an object with its keys in order.
func sorted(t *testing.T, object json.RawMessage) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatalf("%q: %v", object, err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// review is a skill of instructions: installed, allowed and invoked.
func (w *world) review(t *testing.T) {
	to := filepath.Join(w.dir, "home", "skills")
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.author(t, "review"), filepath.Join(to, "review")); err != nil {
		t.Fatal(err)
	}
	const args = `{"skill_name":"review","arguments":"the $1 of it"}`
	w.run(t, 3, "call", "InvokeSkill", args)
	w.run(t, 0, "allow", "--yes", "review")
	if out := w.run(t, 0, "call", "InvokeSkill", args); !strings.Contains(out, "The change to review: the $1 of it") || !strings.Contains(out, "checklist.md") {
		t.Errorf("review: %s", out)
	}
}

// noClang says what is missing for C, or nothing. A program is tried: clang is
// of no use without wasm-ld, the C library and the compiler's own.
func noClang(dir string) string {
	source := filepath.Join(dir, "try.c")
	if err := os.WriteFile(source, []byte("#include <stdio.h>\nint main(void) { return puts(\"\"); }\n"), 0o600); err != nil {
		return err.Error()
	}
	if out, err := exec.Command("clang", "--target=wasm32-wasi", "-o", filepath.Join(dir, "try.wasm"), source).CombinedOutput(); err != nil {
		return fmt.Sprintf("no clang that compiles for wasm32-wasi (on Debian: apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32): %v %s", err, out)
	}
	return ""
}
