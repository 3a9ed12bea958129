//go:build linux || darwin

package command

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// uncaged starts programs without a cage: the tests with it are about what
// surrounds the program.
type uncaged struct{}

func (uncaged) Start(_ context.Context, _ sandbox.Cage, p sandbox.Program) (sandbox.Process, error) {
	cmd := &exec.Cmd{Path: p.File.Name(), Args: p.Args, Env: p.Env, Dir: p.Dir, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	if p.Stdin != nil {
		cmd.Stdin = p.Stdin
	}
	if p.Out != nil {
		cmd.Stdout = p.Out
	}
	if p.Err != nil {
		cmd.Stderr = p.Err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	q := &bare{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(q.done)
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			q.err = err
		}
		q.state.Exit = cmd.ProcessState.ExitCode()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			q.state.Signal = map[syscall.Signal]string{syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM"}[ws.Signal()]
		}
	}()
	return q, nil
}

type bare struct {
	cmd   *exec.Cmd
	done  chan struct{}
	state sandbox.State
	err   error
}

func (b *bare) Pid() int                     { return b.cmd.Process.Pid }
func (b *bare) Level() sandbox.Level         { return sandbox.Strict }
func (b *bare) Listener() net.Listener       { return nil }
func (b *bare) Signal(s os.Signal) error     { return b.cmd.Process.Signal(s) }
func (b *bare) Kill()                        { _ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL) }
func (b *bare) Done() <-chan struct{}        { return b.done }
func (b *bare) Wait() (sandbox.State, error) { <-b.done; return b.state, b.err }

// A world is one skill and what its calls are made with.
type world struct {
	t      *testing.T
	skill  *manifest.Skill
	work   string
	layers []capability.Layer // beside the manifest's
	limits manifest.Limits
	x      *Executor
	level  string
}

// newWorld reads a manifest, which is text below the usual head, and starts
// its programs with starter.
func newWorld(t *testing.T, text string, starter native.Starter, report sandbox.Report) *world {
	t.Helper()
	s, err := manifest.Read("skill.toml", []byte("name = \"x\"\nversion = \"1.0.0\"\ndescription = \"d\"\nruntime = \"exec\"\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	s.Home.Digest = "sha256:" + strings.Repeat("0", 64)
	return worldOf(t, &s, starter, report)
}

func worldOf(t *testing.T, s *manifest.Skill, starter native.Starter, report sandbox.Report) *world {
	return worldWith(t, s, starter, report, nil)
}

func worldWith(t *testing.T, s *manifest.Skill, starter native.Starter, report sandbox.Report, serve func(net.Listener) native.Exit) *world {
	t.Helper()
	w := &world{t: t, skill: s, work: place(t), limits: s.Limits, level: s.Sandbox.Require}
	w.x = New(Options{native.Options{Starter: starter, Report: func() sandbox.Report { return report }, Tmp: place(t), Serve: serve}})
	t.Cleanup(func() {
		if err := w.x.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// place makes a directory that is not in /tmp, which in a cage is another one.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "command-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func (w *world) load() (executor.Program, error) {
	p, err := w.x.Load(w.t.Context(), w.skill)
	if err == nil {
		w.t.Cleanup(func() {
			if err := p.Close(); err != nil {
				w.t.Error(err)
			}
		})
	}
	return p, err
}

// run loads the skill and runs one tool.
func (w *world) run(ctx context.Context, tool, args string) (sdk.Result, error) {
	w.t.Helper()
	p, err := w.load()
	if err != nil {
		w.t.Fatal(err)
	}
	return p.Run(ctx, w.job(tool, args))
}

func (w *world) job(tool, args string) executor.Job {
	w.t.Helper()
	var layers []capability.Layer
	for _, l := range append([]capability.Layer{w.skill.Needs}, w.layers...) {
		bound, err := l.Bind(capability.Vars{Workspace: w.work}, filepath.EvalSymlinks)
		if err != nil {
			w.t.Fatal(err)
		}
		layers = append(layers, bound)
	}
	return executor.Job{
		Input:  sdk.Input{Tool: tool, Args: json.RawMessage(args), Call: "c1", Scope: sdk.Scope{Caller: "local:test", Workspace: w.work, Session: "s"}},
		Grant:  capability.NewGrant(layers, nil),
		Limits: w.limits,
		Level:  w.level,
		Dirs:   executor.Dirs{Workspace: w.work, Tmp: sync.OnceValues(func() (string, error) { return place(w.t), nil })},
		Ops:    executor.NoOps{},
		Emit:   func(e sdk.Event) { w.t.Logf("%s: %s", e.Level, e.Message) },
	}
}

// shell is a manifest whose tool t runs a script in sh.
func shell(script, more string) string {
	return "[capabilities]\nexec = [\"sh\"]\n[limits]\noutput = \"64KiB\"\n[tools.t]\ncommand = [\"sh\", \"-c\", " + capability.Quote(strings.NewReplacer("{", "{{", "}", "}}").Replace(script)) + "]\n" + more
}

var strict = sandbox.Report{Level: sandbox.Strict}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
