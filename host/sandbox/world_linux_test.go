package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/host/sandbox/view"
)

// The test binary is also the hostile program, and the host that is killed.
const roleEnv = "SANDBOX_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "hostile":
		os.Exit(hostile(os.Args[1:]))
	case "host":
		os.Exit(doomedHost(os.Args[1:]))
	case "idle":
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const nobody = 65534

// TestUnprivileged runs all tests once more as an ordinary user.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is the run of an ordinary user")
	}
	args := []string{"-test.v", "-test.run=^Test", "-test.timeout=120s"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if testing.Verbose() || err != nil || strings.Contains(line, "LEFT OUT") {
			t.Log("uid 65534: " + strings.TrimRight(line, "\n"))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// levels are those that this user can be confined to, each of which the
// machine must offer.
func levels(t *testing.T) []Level {
	t.Helper()
	if os.Geteuid() == 0 {
		return []Level{need(t, Strict)}
	}
	return []Level{need(t, Strict), need(t, Landlock)}
}

func need(t testing.TB, l Level) Level {
	t.Helper()
	if r := Probe(); !r.Level.Covers(l) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("level %s is not to be had: %q", l, r.Missing)
		}
		t.Skipf("LEFT OUT: level %s: %q", l, r.Missing)
	}
	return l
}

// A world is a host with a directory that is granted for reading, one for
// writing, and one with secrets.
type world struct {
	*Launcher
	read, write, secret string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Launcher: New(), read: dir + "/read", write: dir + "/write", secret: dir + "/secret"}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, d := range []string{w.read, w.write, w.secret} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d+"/file", []byte("in "+filepath.Base(d)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// cage grants what the world says; at both levels the paths are the host's.
func (w *world) cage(l Level) Cage {
	v := loaderOnly()
	v.Mounts = append(v.Mounts,
		view.Mount{Path: "/etc/ld.so.cache", Kind: view.ReadOnly, Maybe: true},
		view.Mount{Path: w.read, Kind: view.ReadOnly}, view.Mount{Path: w.write, Kind: view.Writable})
	v.Links = append(v.Links, view.Link{Path: "/bin", Target: "usr/bin"})
	all := view.Ruleset{Name: "manifest", Handles: view.Read | view.Write | view.Exec | view.Socket}
	all.Rules = append(all.Rules, v.Rulesets[0].Rules...)
	all.Rules = append(all.Rules,
		view.Rule{Path: "/etc/ld.so.cache", Rights: view.Read, Maybe: true},
		view.Rule{Path: "/proc", Rights: view.Read},
		view.Rule{Path: w.read, Rights: view.Read},
		view.Rule{Path: w.write, Rights: view.Read | view.Write})
	for _, d := range []string{"null", "zero", "full", "random", "urandom"} {
		all.Rules = append(all.Rules, view.Rule{Path: "/dev/" + d, Rights: view.Read | view.Write})
	}
	if l == Strict {
		all.Rules = append(all.Rules, view.Rule{Path: "/dev/shm", Rights: view.Read | view.Write}, view.Rule{Path: "/tmp", Rights: view.Read | view.Write})
	}
	v.Rulesets = []view.Ruleset{all}
	c := Cage{Level: l, View: v, Limits: Limits{Memory: 256 << 20}}
	if raced {
		c.Limits.Memory = unbounded
	}
	return c
}

// program is this binary in the role of the hostile program.
func program(t testing.TB, args ...string) Program {
	t.Helper()
	env := []string{roleEnv + "=hostile", "GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"} // the race detector would sleep for a second
	return Program{File: open(t, "/proc/self/exe"), Args: append([]string{"hostile"}, args...), Env: env}
}

// command is a program of the system.
func command(t testing.TB, args ...string) Program {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skipf("LEFT OUT: %v", err)
	}
	return Program{File: open(t, path), Args: args, Env: []string{"PATH=/usr/bin:/bin"}}
}

func open(t testing.TB, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// maxRun bounds every program of the tests.
const maxRun = 20 * time.Second

// run starts p and returns what it wrote and how it ended.
func (w *world) run(t testing.TB, c Cage, p Program) (string, State) {
	t.Helper()
	proc, read := w.begin(t, c, p)
	late := time.AfterFunc(maxRun, proc.Kill)
	defer late.Stop()
	out := read()
	s, err := proc.Wait()
	if err != nil {
		t.Error(err)
	}
	return out, s
}

// begin starts p; read returns all of its output.
func (w *world) begin(t testing.TB, c Cage, p Program) (proc Process, read func() string) {
	t.Helper()
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Out, p.Err = wr, wr
	proc, err = w.Start(t.Context(), c, p)
	wr.Close()
	if err != nil {
		r.Close()
		t.Fatal(err)
	}
	return proc, func() string {
		defer r.Close()
		b, _ := io.ReadAll(io.LimitReader(r, 1<<20))
		return string(b)
	}
}

// uncaged runs the hostile program without any cage, by the same user.
func uncaged(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxRun)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = []string{roleEnv + "=hostile"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

// reason names err as the tables do.
func reason(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "OK"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return fmt.Sprintf("%q", err.Error())
}
