package timer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/store/memory"
	"github.com/skillhost/skill/sdk"
)

// A world is a machine with a clock, a store and hosts that come and go.
type world struct {
	t     *testing.T
	clock *clock
	store store.Store
	log   *logbook

	mu    sync.Mutex
	alive map[string]bool
	boots int
}

func newWorld(t *testing.T) *world {
	return &world{t: t, clock: &clock{now: time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)}, store: memory.Open(), log: &logbook{}, alive: map[string]bool{}}
}

// host starts one. Its timers run; it serves if that is said.
func (w *world) host(serves bool) *Timers {
	w.mu.Lock()
	w.boots++
	id := fmt.Sprint("boot", w.boots)
	w.alive[id] = true
	w.mu.Unlock()
	h := New(Options{Store: w.store, Clock: w.clock, Workspace: "/work", Log: slog.New(slog.NewTextHandler(w.log, nil)),
		Boots: boot.New(func() (string, error) { return id, nil }, func(boot string) (bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.alive[boot], nil
		})})
	if serves {
		h.Start()
	}
	w.t.Cleanup(func() { _ = h.Close() })
	return h
}

// kill ends a host as kill -9 does: nothing is written down any more.
func (w *world) kill(h *Timers) {
	w.t.Helper()
	boot, err := h.o.Boots.Self()
	if err != nil {
		w.t.Fatal(err)
	}
	h.mu.Lock()
	h.life = closed
	h.mu.Unlock()
	h.cancel()
	h.work.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alive[boot] = false
}

// A clock is moved by tests: as time goes by, and as somebody sets it.
type clock struct {
	mu      sync.Mutex
	now     time.Time
	elapsed time.Duration
	waiting []waiter
}

type waiter struct {
	at time.Duration
	ch chan time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed
}

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan time.Time, 1)
	c.waiting = append(c.waiting, waiter{c.elapsed + d, ch})
	c.wake()
	return ch
}

// wake sends to those whose time has come. The caller holds mu.
func (c *clock) wake() {
	rest := c.waiting[:0]
	for _, w := range c.waiting {
		if w.at <= c.elapsed {
			w.ch <- c.now
		} else {
			rest = append(rest, w)
		}
	}
	c.waiting = rest
}

// pass lets time go by.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elapsed += d
	c.now = c.now.Add(d)
	c.wake()
}

// jump sets the wall clock.
func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const skill = "set-callback"

func owner(session string) Owner { return Owner{"local:ann", "/work", session, skill} }

func (o Owner) sdk() sdk.Scope {
	return sdk.Scope{Caller: o.Caller, Workspace: o.Workspace, Session: o.Session}
}

// set sets a timer or fails.
func (w *world) set(h *Timers, session string, s Spec) Timer {
	w.t.Helper()
	x, err := h.Set(context.Background(), owner(session), s)
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

func (w *world) list(h *Timers, session string) []Timer {
	w.t.Helper()
	all, err := h.List(context.Background(), owner(session))
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// inbox returns what waits for a session.
func (w *world) inbox(h *Timers, session string) []Arrival {
	w.t.Helper()
	all, _, err := h.Inbox(context.Background(), owner(session))
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// take takes what waits, as an answer that is written does.
func (w *world) take(h *Timers, session string) []Arrival {
	w.t.Helper()
	out, _, written := h.Take(context.Background(), owner(session).sdk())
	if len(out) > 0 {
		written(true)
	}
	return out
}

// fires waits until a session's inbox has so many fires.
func (w *world) fires(h *Timers, session string, n int) []Arrival {
	w.t.Helper()
	var got []Arrival
	w.until(fmt.Sprintf("%d fires for %s", n, session), func() bool {
		got = w.inbox(h, session)
		sum := 0
		for _, a := range got {
			sum += a.Count
		}
		return sum == n
	})
	return got
}

// patience bounds waits for what happens in other goroutines.
const patience = 60 * time.Second

func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("no %s\n%s", what, w.log)
		}
	}
}

// settled waits until a host has done all that is due: its loop waits for a time
// that has not come, and for nothing else.
func (w *world) settled(h *Timers) {
	w.t.Helper()
	for range 3 {
		h.ring()
		w.until("rest", func() bool { return len(h.wake) == 0 })
	}
}
