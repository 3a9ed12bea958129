//go:build unix

package plugin

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

// bare are cages without bars: what this package promises it promises without
// the kernel's help too.
type bare struct {
	mu      sync.Mutex
	started int
	live    map[*bareGuest]bool
	refuse  error // of every plan
	fail    error // of every start
	note    string
	recorded,
	opened int
}

func (b *bare) plan(s *manifest.Skill, j executor.Job) (plan, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return nil, b.refuse
	}
	return &barePlan{b, s.Home.Digest + "/" + j.Input.Scope.Caller + "/" + j.Level}, nil
}

type barePlan struct {
	b *bare
	k string
}

func (p *barePlan) key() string { return p.k }

func (p *barePlan) record(capability.Grant) error {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.recorded++
	return nil
}

func (p *barePlan) note() string { return p.b.note }

func (p *barePlan) explain(r sdk.Result, err error) (sdk.Result, error) { return r, err }

func (p *barePlan) start(ctx context.Context, prog sandbox.Program, _ []string) (caged, error) {
	p.b.mu.Lock()
	fail := p.b.fail
	p.b.started++
	p.b.mu.Unlock()
	if fail != nil {
		return nil, fail
	}
	if ctx.Err() != nil {
		return nil, &sdk.Error{Kind: sdk.Canceled, What: "canceled"}
	}
	dir, err := os.MkdirTemp("", "bare-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/fd/3")
	cmd.Args, cmd.ExtraFiles = prog.Args, []*os.File{prog.File}
	cmd.Env = append(prog.Env, wire.SocketDirKey+"="+dir)
	if prog.Out != nil {
		cmd.Stdout = prog.Out
	}
	if prog.Err != nil {
		cmd.Stderr = prog.Err
	}
	if prog.Stdin != nil {
		cmd.Stdin = prog.Stdin
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	g := &bareGuest{b: p.b, dir: dir, cmd: cmd, done: make(chan struct{})}
	p.b.mu.Lock()
	p.b.live[g] = true
	p.b.mu.Unlock()
	go func() {
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
		p.b.mu.Lock()
		delete(p.b.live, g)
		p.b.mu.Unlock()
		close(g.done)
	}()
	return g, nil
}

type bareGuest struct {
	b    *bare
	dir  string
	cmd  *exec.Cmd
	done chan struct{}
}

func (g *bareGuest) Pid() int                 { return g.cmd.Process.Pid }
func (g *bareGuest) Level() sandbox.Level     { return sandbox.None }
func (g *bareGuest) Listener() net.Listener   { return nil }
func (g *bareGuest) Signal(s os.Signal) error { return g.cmd.Process.Signal(s) }
func (g *bareGuest) Kill()                    { _ = g.cmd.Process.Kill() }
func (g *bareGuest) Done() <-chan struct{}    { return g.done }
func (g *bareGuest) Serves() (string, string) { return g.dir, g.dir }
func (g *bareGuest) Close() error             { g.Kill(); <-g.done; return nil }
func (g *bareGuest) Open(call string, _ capability.Grant) (string, func()) {
	g.b.mu.Lock()
	defer g.b.mu.Unlock()
	g.b.opened++
	return "http://" + call, func() {
		g.b.mu.Lock()
		defer g.b.mu.Unlock()
		g.b.opened--
	}
}

func (g *bareGuest) Wait() (sandbox.State, error) {
	<-g.done
	s := g.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if s.Signaled() {
		return sandbox.State{Exit: -1, Signal: "signal " + s.Signal().String()}, nil
	}
	return sandbox.State{Exit: s.ExitStatus()}, nil
}

// world is an executor in a test. When the test ends nothing may be left of
// its plugins.
type world struct {
	*Executor
	cages *bare
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	b := &bare{live: map[*bareGuest]bool{}}
	if o.Self == nil {
		o.Self = self
	}
	x := build(o, b)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.live) > 0 || b.opened != 0 {
			t.Errorf("%d processes and %d ways out are left", len(b.live), b.opened)
		}
	})
	return &world{x, b}
}

// self is the test binary as a plugin.
func self() (*os.File, []string, error) {
	path, err := os.Executable()
	if runtime.GOOS == "linux" {
		path = "/proc/self/exe" // whose directory may be closed to an unprivileged test
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	return f, []string{asPlugin}, err
}

// skillOf is a built-in skill that behaves as how says.
func skillOf(how string) *manifest.Skill {
	return &manifest.Skill{
		About: manifest.About{Name: "test"}, Runtime: "plugin", Source: how, Limits: manifest.DefaultLimits,
		Tools:   []manifest.Tool{{Tool: sdk.Tool{Name: "do", Input: []byte(`{"type":"object","properties":{"do":{"type":"string"},"text":{"type":"string"}},"required":["do"],"additionalProperties":false}`)}}},
		Home:    manifest.Home{Builtin: true, File: "test/skill.toml", Digest: "sha256:" + how},
		Sandbox: manifest.Sandbox{Isolation: "call"},
	}
}

func (w *world) load(t *testing.T, s *manifest.Skill) executor.Program {
	t.Helper()
	p, err := w.Load(t.Context(), s)
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
