package native

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// fake starts nothing: it keeps the cage, and the process ends when it is told.
type fake struct {
	mu      sync.Mutex
	err     error
	cages   []sandbox.Cage
	started []sandbox.Program
	inside  func(sandbox.Cage)
}

func (f *fake) Start(_ context.Context, c sandbox.Cage, p sandbox.Program) (sandbox.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cages, f.started = append(f.cages, c), append(f.started, p)
	if f.err != nil {
		return nil, f.err
	}
	if f.inside != nil {
		f.inside(c)
	}
	proc := &process{level: c.Level, done: make(chan struct{})}
	if c.Network == sandbox.Proxy {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		proc.listener = l
	}
	return proc, nil
}

type process struct {
	level    sandbox.Level
	listener net.Listener
	done     chan struct{}
	once     sync.Once
}

func (p *process) Pid() int                     { return 1 }
func (p *process) Level() sandbox.Level         { return p.level }
func (p *process) Listener() net.Listener       { return p.listener }
func (p *process) Signal(os.Signal) error       { return nil }
func (p *process) Kill()                        { p.once.Do(func() { close(p.done) }) }
func (p *process) Done() <-chan struct{}        { return p.done }
func (p *process) Wait() (sandbox.State, error) { <-p.done; return sandbox.State{}, nil }

// exit is the way out of a fake cage.
type exit struct {
	l      net.Listener
	opened []string
	limit  int64
	closed bool
}

func (e *exit) Open(call string, _ capability.Grant, limit int64, _ capability.Set) (string, func()) {
	e.opened, e.limit = append(e.opened, call), limit
	return "http://" + call + ":token@127.0.0.1:3128", func() { e.opened = slices.DeleteFunc(e.opened, func(c string) bool { return c == call }) }
}

func (e *exit) Close() error { e.closed = true; return e.l.Close() }

// house is a Maker in directories of its own.
type house struct {
	*Maker
	starter *fake
	exits   []*exit
	tmp     string
	run     string
	homes   string
}

func newHouse(t *testing.T, level sandbox.Level) *house {
	t.Helper()
	h := &house{starter: new(fake), tmp: t.TempDir(), homes: t.TempDir()}
	var err error
	if h.run, err = os.MkdirTemp("/tmp", "n"); err != nil { // a short path, which t.TempDir has not
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(h.run) })
	h.Maker = New(Options{
		Starter: h.starter,
		Report:  func() sandbox.Report { return sandbox.Report{Level: level, Missing: []string{"a kernel"}} },
		Serve: func(l net.Listener) Exit {
			e := &exit{l: l}
			h.exits = append(h.exits, e)
			return e
		},
		Homes: func(s sdk.Scope, owner string) (string, error) {
			dir := filepath.Join(h.homes, s.Caller+"."+owner)
			return dir, os.MkdirAll(dir, 0o700)
		},
		Tmp: h.tmp, RunDir: h.run,
	})
	h.root = func() bool { return false }
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		for _, dir := range []string{h.tmp, h.run} {
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left in %s: %v %v", dir, left, err)
			}
		}
	})
	return h
}

// skill is a skill that needs what entries say, such as "exec:git".
func skill(t *testing.T, entries ...string) *manifest.Skill {
	t.Helper()
	s := &manifest.Skill{About: manifest.About{Name: "tool"}, Limits: manifest.DefaultLimits}
	s.Home.Digest, s.Home.File = "sha256:00", "tool/skill.toml"
	s.Needs = capability.Layer{Name: "manifest", Closed: true, Pos: capability.Pos{File: "tool/skill.toml", Line: 7}, Table: "[capabilities]", Allow: set(t, entries...)}
	return s
}

func set(t *testing.T, entries ...string) (out capability.Set) {
	t.Helper()
	for _, e := range entries {
		kind, entry, _ := strings.Cut(e, ":")
		if kind == "read" || kind == "write" {
			out = append(out, capability.Capability{Kind: capability.Filesystem, Verb: capability.Verb(kind), Pattern: entry})
			continue
		}
		c, err := capability.Parse(capability.Kind(kind), entry, capability.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func job(s *manifest.Skill, more ...capability.Layer) executor.Job {
	return executor.Job{
		Input:  sdk.Input{Tool: "run", Call: "c1", Scope: sdk.Scope{Caller: "local:me", Session: "s1"}},
		Grant:  capability.NewGrant(append([]capability.Layer{s.Needs}, more...), nil),
		Limits: s.Limits, Soft: context.Background(), Ops: executor.NoOps{}, Emit: func(sdk.Event) {},
	}
}

func (h *house) plan(t *testing.T, s *manifest.Skill, j executor.Job) Plan {
	t.Helper()
	p, err := h.Plan(s, j)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (h *house) begin(t *testing.T, p Plan, prog sandbox.Program) *Guest {
	t.Helper()
	g, err := h.Start(t.Context(), p, prog)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func has(err error, kind sdk.Kind, words ...string) bool {
	if sdk.KindOf(err) != kind {
		return false
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			return false
		}
	}
	return true
}

func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

func contents(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// planMode is a layer as plan mode lays it over a session, bound.
func planMode(t *testing.T, workspace string) capability.Layer {
	t.Helper()
	return capability.Layer{Name: `layer "plan mode" of plan-mode`, Pushed: true, Why: "plan 7; PlanMode exit ends it",
		Speaks: []capability.Topic{{Kind: capability.Filesystem, Verb: capability.Write}, {Kind: capability.Network, Verb: capability.Connect}},
		Allow:  set(t, "write:"+workspace+"/sub/plan.md", "write:${tmp}")}
}
