// Package executortest holds the promises that every executor keeps. An
// executor's test calls Run; the vectors in testdata are the promises, one to
// a file, named after the attack they withstand. It knows no runtime: a Target
// says how to reach one.
package executortest

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

//go:embed testdata/*.txt
var vectors embed.FS

// A Target is one executor, and a program on it that is built from the probe.
type Target struct {
	Program executor.Program
	Form    Form              // of the probe behind Program
	Left    map[string]string // vectors that this executor cannot be held to, and why

	// Kernel says that guests meet the kernel. It has many words for a refusal:
	// what is hidden is absent, what is mounted apart cannot be moved. And it
	// keeps no record: what was granted is recorded, not what was tried.
	Kernel bool
}

// A Form is what the probe is built as.
type Form string

// The forms of the probe. They are what a vector's "form" line names.
const (
	Skill   Form = "skill/1"   // a WebAssembly module of that ABI
	Command Form = "command/1" // a WebAssembly program
	Native  Form = "native"    // a program of this machine
	Plugin  Form = "plugin"    // a native plugin, by sdk/plugin
)

// Build compiles the probe and returns it. It needs nothing but Go.
func Build(t testing.TB, form Form) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "probe")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out}
	env := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	switch form {
	case Native:
	case Plugin:
		args = append(args, "-tags=plugin")
	default:
		env = append(env, "GOOS=wasip1", "GOARCH=wasm")
	}
	if form == Skill {
		args = append(args, "-tags=skill1", "-buildmode=c-shared")
	}
	cmd := exec.Command("go", append(args, "github.com/skillhost/skill/host/executor/executortest/probe")...)
	cmd.Env = env
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the probe as %s: %v\n%s", form, err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Limits are those of a vector that sets none: wide enough for a slow machine,
// tight enough that no vector takes long.
var limits = manifest.Limits{
	Memory: 64 << 20, Timeout: 60 * time.Second, MaxTimeout: 60 * time.Second, Output: 1 << 20,
	Concurrency: 1, Processes: 32, HTTPBody: 1 << 20,
}

// Run checks every promise that can be asked of the target.
func Run(t *testing.T, target Target) {
	names, err := fs.Glob(vectors, "testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, name := range names {
		text, err := vectors.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			v, err := parse(string(text), filepath.ToSlash(place(t)))
			if err != nil {
				t.Fatal(err)
			}
			if why, ok := target.Left[strings.TrimSuffix(filepath.Base(name), ".txt")]; ok {
				t.Skipf("left out: %s", why)
			}
			if len(v.forms) > 0 && !slices.Contains(v.forms, target.Form) {
				t.Skipf("asks for %v", v.forms)
			}
			v.run(t, target)
		})
	}
}

// place makes the directory of a vector. It is not in /tmp, which in a guest is
// another directory.
func place(t *testing.T) string {
	base, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if capability.Beneath(filepath.ToSlash(base), "/tmp") {
		if base = "/var/tmp"; !isDir(base) {
			if base, err = os.Getwd(); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir, err := os.MkdirTemp(base, "executortest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// run lays out the vector's files, makes its calls, and checks what it expects.
func (v *vector) run(t *testing.T, target Target) {
	for _, d := range []string{"work", "skill", "tmp"} {
		if err := os.Mkdir(filepath.Join(v.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, lay := range v.files {
		if err := lay(); err != nil {
			if runtime.GOOS == "windows" {
				t.Skipf("this machine cannot lay out the files: %v", err)
			}
			t.Fatal(err)
		}
	}
	grant, err := v.grant()
	if err != nil {
		t.Fatal(err)
	}
	var before string
	for i := range v.calls {
		got := v.call(t, target, i, grant)
		for _, want := range v.calls[i].want {
			if complaint := want(got, before); complaint != "" {
				t.Errorf("%s\ncall %d: %s\ntext %q\nerror %v\nlogs %q", v.promise, i+1, complaint, got.text, got.err, got.logs)
			}
		}
		before = got.text
	}
	for _, check := range v.after {
		if complaint := check(); complaint != "" {
			t.Errorf("%s\nafterwards: %s", v.promise, complaint)
		}
	}
}

// An outcome is what came of one call.
type outcome struct {
	text string
	err  error
	logs string
	seen []string // accesses, as "kind.verb target" and for a refused one "!" before it

	kernel bool // Target.Kernel
}

// call makes call i of the vector.
func (v *vector) call(t *testing.T, target Target, i int, layers []capability.Layer) outcome {
	c := &v.calls[i]
	hard, cancel := context.WithCancelCause(t.Context())
	defer cancel(context.Canceled)
	var end error = &sdk.Error{Kind: sdk.Limit, What: "the tool did not finish in time", Hint: "limits.timeout"}
	if c.cancel {
		end = context.Canceled
	}
	timer := time.AfterFunc(c.limits.Timeout, func() { cancel(end) })
	defer timer.Stop()
	soft, cancelSoft := context.WithTimeout(hard, c.soft)
	defer cancelSoft()

	var got outcome
	var mu sync.Mutex
	job := executor.Job{
		Input: sdk.Input{Tool: "probe", Args: c.args, Env: c.env, Settings: c.set, Timeout: c.soft},
		Grant: capability.NewGrant(layers, func(a capability.Access, err error) {
			mu.Lock()
			defer mu.Unlock()
			line := a.String()
			if err != nil {
				line = "!" + line
			}
			got.seen = append(got.seen, line)
		}),
		Limits: c.limits,
		Dirs: executor.Dirs{
			Workspace: filepath.Join(v.dir, "work"),
			Skill:     filepath.Join(v.dir, "skill"),
			Tmp:       sync.OnceValues(func() (string, error) { return os.MkdirTemp(filepath.Join(v.dir, "tmp"), "call-") }),
		},
		Soft: soft,
		Ops:  testOps{},
		Emit: func(e sdk.Event) {
			mu.Lock()
			defer mu.Unlock()
			got.logs += e.Level + ": " + e.Message + "\n"
		},
	}
	r, err := target.Program.Run(hard, job)
	mu.Lock()
	defer mu.Unlock()
	got.err = err
	for _, content := range r.Content {
		got.text += content.Text
	}
	if got.kernel = target.Kernel; got.kernel {
		got.text = plainly(got.text)
	}
	return got
}

// plainly says of everything that was refused that it was denied.
func plainly(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line == "absent" || strings.HasPrefix(line, "refused: ") {
			lines[i] = "denied"
		}
	}
	return strings.Join(lines, "\n")
}

// testOps are the operations of a vector: op echo answers with its request,
// slow ends with the call, panics panics, and fails returns an error. That
// there is no op lost is found out late.
type testOps struct{}

func (testOps) Knows(op string) bool {
	return slices.Contains([]string{"echo", "slow", "panics", "fails", "refused", "large", "lost"}, op)
}

func (testOps) Do(ctx context.Context, request sdk.Frame) ([]byte, error) {
	switch string(request.Header) {
	case `{"op":"echo"}`:
		return sdk.AppendFrame(nil, request.Header), nil
	case `{"op":"slow"}`:
		<-ctx.Done()
		return nil, fmt.Errorf("slow: %w", ctx.Err())
	case `{"op":"panics"}`:
		panic("the host's secret")
	case `{"op":"fails"}`:
		return nil, errors.New("the host's secret")
	case `{"op":"refused"}`:
		return nil, &sdk.Error{Kind: sdk.Denied, What: "not for you"}
	case `{"op":"large"}`:
		return sdk.AppendFrame(nil, []byte("{}"), make([]byte, 65<<20)), nil
	}
	return nil, executor.ErrUnknownOp
}
