package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/sandbox"
)

// inCages returns an executor whose plugins run in real cages.
func inCages(t testing.TB, level sandbox.Level) *Executor {
	t.Helper()
	if raced {
		t.Skip("by TestCages, without the race detector: its threads and memory are more than a cage has")
	}
	report := sandbox.Probe()
	if !report.Level.Covers(level) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("this machine offers %q: %v", report.Level, report.Missing)
		}
		t.Skipf("LEFT OUT: level %s: this machine offers %q: %v", level, report.Level, report.Missing)
	}
	report.Level = level
	l := sandbox.New()
	m := native.New(native.Options{Starter: l, Report: func() sandbox.Report { return report }, Tmp: t.TempDir(), RunDir: short(t)})
	x := New(Options{Cages: m, Self: self})
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// short is a directory whose path leaves room for a socket's.
func short(t testing.TB) string {
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// levels runs a test at each level that claims what it tests. Root is not held
// to anything below strict.
func levels(t *testing.T, test func(t *testing.T, x *Executor)) {
	for _, level := range []sandbox.Level{sandbox.Strict, sandbox.Landlock} {
		t.Run(string(level), func(t *testing.T) {
			if level != sandbox.Strict && os.Geteuid() == 0 {
				t.Skip("root runs plugins at strict only")
			}
			test(t, inCages(t, level))
		})
	}
}

func load(t testing.TB, x *Executor, how string) executor.Program {
	t.Helper()
	p, err := x.Load(t.Context(), skillOf(how))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// granted gives a call what entries say, of the file system.
func granted(t *testing.T, entries ...string) func(*executor.Job) {
	return func(j *executor.Job) {
		l := capability.Layer{Name: "manifest", Closed: true}
		for _, e := range entries {
			c, err := capability.Parse(capability.Filesystem, e, capability.Pos{File: "test"})
			if err != nil {
				t.Fatal(err)
			}
			l.Allow = append(l.Allow, c)
		}
		bound, err := l.Bind(capability.Vars{}, filepath.EvalSymlinks)
		if err != nil {
			t.Fatal(err)
		}
		j.Grant = capability.NewGrant([]capability.Layer{bound}, nil)
	}
}

func TestCaged(t *testing.T) {
	levels(t, func(t *testing.T, x *Executor) {
		p := load(t, x, "good")
		for range 3 {
			if got, _, err := do(t, p, "say", "hello", granted(t)); got != "hello" || err != nil {
				t.Fatalf("%q, %v", got, err)
			}
		}
	})
}
