//go:build unix

package plugin

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// eventually waits for something that happens by itself.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not so in the end: " + what)
		}
	}
}

func (w *world) count() (started, live int) {
	w.cages.mu.Lock()
	defer w.cages.mu.Unlock()
	return w.cages.started, len(w.cages.live)
}

func session(s *manifest.Skill) *manifest.Skill {
	s.Sandbox.Isolation = "session"
	return s
}

// A process makes one call, and the next one finds a process that waits.
func TestIsolationCall(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.load(t, skillOf("good"))
	pids := map[string]bool{}
	for i := range 4 {
		if got, _, err := do(t, p, "count", ""); got != "1" || err != nil {
			t.Errorf("call %d: %q, %v", i, got, err)
		}
		eventually(t, "one process waits", func() bool { _, live := w.count(); return live == 1 })
		started, _ := w.count()
		if want := i + 3; started != want { // describe, the calls, and the one that waits
			t.Errorf("call %d: %d started, want %d", i, started, want)
		}
		pid, _, err := do(t, p, "pid", "")
		if err != nil || pids[pid] {
			t.Errorf("call %d: process %s again, %v", i, pid, err)
		}
		pids[pid] = true
		eventually(t, "one process waits", func() bool { _, live := w.count(); return live == 1 })
		w.cages.mu.Lock()
		w.cages.started--
		w.cages.mu.Unlock()
	}
}

// A process that was started before its call is used under its key only.
func TestKey(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.load(t, session(skillOf("good")))
	for _, c := range []struct{ who, want string }{{"ann", "1"}, {"ann", "2"}, {"bob", "1"}, {"ann", "3"}, {"bob", "2"}} {
		if got, _, err := do(t, p, "count", "", caller(c.who)); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %s", c.who, got, err, c.want)
		}
	}
}

func TestIsolationFresh(t *testing.T) {
	w := newWorld(t, Options{})
	s := skillOf("good")
	s.Sandbox.Isolation = "fresh"
	if _, _, err := do(t, w.load(t, s), "say", "x"); err != nil {
		t.Fatal(err)
	}
	if started, _ := w.count(); started != 2 {
		t.Errorf("%d started, want the describe and the call", started)
	}
}

// Calls of a session run at once in one process, however many come first.
func TestIsolationSession(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.load(t, session(skillOf("good")))
	var all sync.WaitGroup
	pids := make(chan string, 8)
	for range 8 {
		all.Go(func() {
			pid, _, err := do(t, p, "pid", "")
			if err != nil {
				t.Error(err)
			}
			pids <- pid
		})
	}
	all.Wait()
	first := <-pids
	for range 7 {
		if pid := <-pids; pid != first {
			t.Errorf("processes %s and %s", first, pid)
		}
	}
}

// A call of a session that is stopped by force takes the process with it, but
// not the other calls that it makes.
func TestSessionAfterForce(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.load(t, session(skillOf("good")))
	before, _, err := do(t, p, "pid", "")
	if err != nil {
		t.Fatal(err)
	}
	other := make(chan error)
	go func() {
		got, _, err := do(t, p, "nap", "700ms")
		if err == nil && got != "awake" {
			err = fmt.Errorf("got %q", got)
		}
		other <- err
	}()
	time.Sleep(100 * time.Millisecond)
	if _, _, err := do(t, p, "nap", "1h", within(100*time.Millisecond, context.Canceled)); sdk.KindOf(err) != sdk.Canceled {
		t.Errorf("got %v", err)
	}
	if after, _, err := do(t, p, "pid", ""); err != nil || after == before {
		t.Errorf("process %s again, %v", after, err)
	}
	if err := <-other; err != nil {
		t.Error(err)
	}
	if got, _, err := do(t, p, "exit", ""); sdk.KindOf(err) != sdk.Guest {
		t.Errorf("%q, %v", got, err)
	}
	if got, _, err := do(t, p, "count", ""); got != "1" || err != nil {
		t.Errorf("after a crash: %q, %v", got, err)
	}
}

// Processes without calls are ended after a while, and when there are too many
// the one that waited longest goes first.
func TestIdle(t *testing.T) {
	t.Run("ttl", func(t *testing.T) {
		w := newWorld(t, Options{IdleTTL: 300 * time.Millisecond, SessionTTL: 300 * time.Millisecond})
		if _, _, err := do(t, w.load(t, skillOf("good")), "say", ""); err != nil {
			t.Fatal(err)
		}
		if _, _, err := do(t, w.load(t, session(skillOf("other"))), "say", ""); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nothing waits", func() bool { _, live := w.count(); return live == 0 })
	})
	t.Run("most", func(t *testing.T) {
		w := newWorld(t, Options{MaxIdle: 2})
		p := w.load(t, session(skillOf("good")))
		for _, who := range []string{"a", "b", "a", "c", "d"} {
			if _, _, err := do(t, p, "count", "", caller(who)); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "two wait", func() bool { _, live := w.count(); return live == 2 })
		for _, c := range []struct{ who, want string }{{"d", "2"}, {"c", "2"}, {"a", "1"}} {
			if got, _, err := do(t, p, "count", "", caller(c.who)); got != c.want || err != nil {
				t.Errorf("%s: %q, %v, want %s", c.who, got, err, c.want)
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		w := newWorld(t, Options{MaxIdle: -1})
		if _, _, err := do(t, w.load(t, skillOf("good")), "say", ""); err != nil {
			t.Fatal(err)
		}
		if started, live := w.count(); started != 2 || live != 0 {
			t.Errorf("%d started, %d live", started, live)
		}
	})
}

// A process that dies while it waits is not given a call.
func TestIdleDies(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.load(t, session(skillOf("good")))
	for range 3 {
		if got, _, err := do(t, p, "count", ""); got != "1" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		w.cages.mu.Lock()
		for g := range w.cages.live {
			g.Kill()
		}
		w.cages.mu.Unlock()
		eventually(t, "it is gone", func() bool { _, live := w.count(); return live == 0 })
	}
}

// Close of a program ends its processes and nobody else's.
func TestProgramClose(t *testing.T) {
	w := newWorld(t, Options{})
	a, b := w.load(t, session(skillOf("good"))), w.load(t, session(skillOf("other")))
	for _, p := range []executor.Program{a, b} {
		if _, _, err := do(t, p, "count", ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one is left", func() bool { _, live := w.count(); return live == 1 })
	if got, _, err := do(t, b, "count", ""); got != "2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Close of the executor ends everything, even what is still starting.
func TestClose(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.load(t, skillOf("good"))
	ended := make(chan error, 1)
	go func() { _, _, err := do(t, p, "nap", "1h"); ended <- err }()
	time.Sleep(200 * time.Millisecond)
	begun := time.Now()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || time.Since(begun) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	if _, live := w.count(); live != 0 {
		t.Errorf("%d live", live)
	}
	if _, _, err := do(t, p, "say", ""); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("after Close: %v", err)
	}
}

// A call that is canceled while its process starts does not wait for it.
func TestCanceledWhileStarting(t *testing.T) {
	w := newWorld(t, Options{})
	slow, err := w.open(skillOf("start_hang"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	pl, err := w.cages.plan(slow.skill, executor.Job{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, context.Canceled)
	defer cancel()
	begun := time.Now()
	if _, err := w.pool.acquire(ctx, slow, pl); sdk.KindOf(err) != sdk.Canceled || time.Since(begun) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

// What the machine refuses is not the skill's fault, and is not remembered.
func TestUnavailable(t *testing.T) {
	w := newWorld(t, Options{})
	w.cages.fail = &sdk.Error{Kind: sdk.Unavailable, What: "no more processes"}
	if _, err := w.Load(t.Context(), skillOf("good")); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("got %v", err)
	}
	w.cages.fail = nil
	w.cages.refuse = &sdk.Error{Kind: sdk.Denied, What: "level"}
	p := w.load(t, skillOf("good")) // the operator may accept less than the manifest
	if _, _, err := do(t, p, "say", ""); sdk.KindOf(err) != sdk.Denied {
		t.Errorf("got %v", err)
	}
	w.cages.refuse = nil
	if got, _, err := do(t, p, "say", "now"); got != "now" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// The manifest and the plugin say the same, or the skill does not load.
func TestAgree(t *testing.T) {
	w := newWorld(t, Options{})
	s := skillOf("good")
	s.Tools = append(s.Tools, manifest.Tool{Tool: sdk.Tool{Name: "more", Input: []byte(`{}`)}})
	if _, err := w.Load(t.Context(), s); sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), `"more" is not in the module`) {
		t.Errorf("got %v", err)
	}
	tools, err := w.Describe(t.Context(), s)
	if err != nil || len(tools) != 1 || tools[0].Name != "do" {
		t.Errorf("%v, %v", tools, err)
	}
	if tools, err := w.Describe(t.Context(), skillOf("stream_none")); err != nil || tools != nil {
		t.Errorf("a plugin without a description: %v, %v", tools, err)
	}
	// A level that only the operator accepts does not skip the comparison.
	w.cages.refuse = &sdk.Error{Kind: sdk.Denied, What: "level"}
	p := w.load(t, s)
	w.cages.refuse = nil
	if _, _, err := do(t, p, "say", ""); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("got %v", err)
	}
}

func TestOpen(t *testing.T) {
	w := newWorld(t, Options{})
	absent := skillOf("absent")
	absent.Home = manifest.Home{Files: os.DirFS(t.TempDir()), Digest: "sha256:x"}
	none := skillOf("")
	bare := skillOf("x")
	bare.Home.Builtin = false
	for name, s := range map[string]*manifest.Skill{"absent": absent, "no_source": none, "no_files": bare} {
		if _, err := w.Load(t.Context(), s); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
	x := build(Options{}, w.cages)
	defer x.Close()
	if _, err := x.Load(t.Context(), skillOf("good")); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("without built-ins: %v", err)
	}
}
