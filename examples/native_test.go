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

// native prepares a world for skills that run programs of the machine. Its
// directories are not in /tmp, which a program's cage has one of its own of.
func native(t *testing.T, programs ...string) *world {
	t.Helper()
	leave := func(why string) {
		t.Helper()
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip("LEFT OUT: ", why)
	}
	if runtime.GOOS != "linux" {
		t.Skip("LEFT OUT: the programs are looked for where Linux has them")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			leave(err.Error())
		}
	}
	w := newWorld(t)
	dir, err := os.MkdirTemp("/var/tmp", "examples-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	w.dir, w.work = dir, filepath.Join(dir, "work")
	if err := os.Mkdir(w.work, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// A reply is what "skill call --json" writes.
type reply struct {
	Content    []struct{ Text string }
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool
}

// call calls a tool of the example in dir and wants the exit status.
func (w *world) call(t *testing.T, status int, dir, tool, args string) (r reply) {
	t.Helper()
	out := w.run(t, status, "call", "--allow", "--json", dir, tool, args)
	if out == "" && status != 0 {
		return r
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

// TestGitReadonly reads a repository that asks git to run a program, through
// the binary: git answers, and the program does nothing.
func TestGitReadonly(t *testing.T) {
	w := native(t, "git")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", w.work, "-c", "user.name=Ann", "-c", "user.email=ann@example.com"}, args...)...)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	write(filepath.Join(w.work, "a.txt"), "one\n")
	git("add", "-A")
	git("commit", "--quiet", "-m", "the first commit")
	write(filepath.Join(w.work, "a.txt"), "one\ntwo\n")
	secret, mark := filepath.Join(w.dir, "secret"), filepath.Join(w.dir, "ran")
	write(secret, "TOPSECRET\n")
	evil := filepath.Join(w.work, "evil")
	write(evil, "#!/bin/sh\necho ran > "+mark+"\ncat "+secret+"\n")
	git("config", "core.fsmonitor", evil)
	git("config", "core.pager", evil)
	git("config", "diff.external", evil)
	git("config", "filter.f.clean", evil)
	write(filepath.Join(w.work, ".gitattributes"), "*.c filter=f\n")

	dir := w.author(t, "git-readonly")
	w.run(t, 3, "call", dir, "status") // nobody has allowed it
	for _, tt := range []struct{ tool, args, want string }{
		{"status", `{}`, " M a.txt"},
		{"log", `{}`, "the first commit"},
		{"diff", `{}`, "+two"},
		{"show", `{"revision":"HEAD:a.txt"}`, "one\n"},
		{"blame", `{"path":"a.txt"}`, "Ann"},
	} {
		if r := w.call(t, 0, dir, tt.tool, tt.args); len(r.Content) == 0 || !strings.Contains(r.Content[0].Text, tt.want) || strings.Contains(r.Content[0].Text, "TOPSECRET") {
			t.Errorf("%s %s: %+v", tt.tool, tt.args, r)
		}
	}
	for _, args := range []string{`{"revision":"--output=` + mark + `"}`, `{"format":"-calias.x=!sh"}`, `{"count":0}`, `{"output":"x"}`} {
		w.call(t, 2, dir, "log", args) // refused before git is asked
	}
	if r := w.call(t, 1, dir, "blame", `{"path":"../secret"}`); len(r.Content) > 0 && strings.Contains(r.Content[0].Text, "TOPSECRET") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Lstat(mark); err == nil {
		t.Error("a program that the repository names has run outside of its cage")
	}
	if out := w.run(t, 0, "audit", "verify"); !strings.Contains(out, "intact: ") {
		t.Error(out)
	}
}

func TestJQ(t *testing.T) {
	w := native(t, "jq")
	dir := w.author(t, "jq")
	w.run(t, 3, "call", dir, "query", `{"filter":".","value":1}`)
	r := w.call(t, 0, dir, "query", `{"filter":".[] | .a","value":[{"a":1},{"a":"é"}]}`)
	var got bytes.Buffer
	if err := json.Compact(&got, r.Structured); err != nil || got.String() != `[1,"é"]` {
		t.Errorf("%s in %+v, %v", got.String(), r, err)
	}
	w.call(t, 1, dir, "query", `{"filter":".[","value":1}`)
	w.call(t, 2, dir, "query", `{"filter":"."}`)
}
