package tasks

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/store/memory"
	"github.com/skillhost/skill/sdk"
)

// A world is a machine: a store, a directory, and which hosts live.
type world struct {
	store  *flaky
	dir    string
	bounds Bounds

	mu  sync.Mutex
	now time.Time
	on  map[string]bool
}

// flaky is a store that can be made to fail.
type flaky struct {
	store.Store
	mu   sync.Mutex
	fail error
}

func (f *flaky) broken() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fail
}

func (f *flaky) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

func (f *flaky) Put(ctx context.Context, bucket, key string, value []byte, old int64) (int64, error) {
	if err := f.broken(); err != nil {
		return 0, err
	}
	return f.Store.Put(ctx, bucket, key, value, old)
}

func newWorld(t testing.TB) *world {
	return &world{store: &flaky{Store: memory.Open()}, dir: t.TempDir(), now: time.Unix(1_800_000_000, 0).UTC(), on: map[string]bool{}}
}

// host starts a host.
func (w *world) host(id string) *Tasks {
	w.mu.Lock()
	w.on[id] = true
	w.mu.Unlock()
	return New(Options{Store: w.store, Dir: w.dir, Bounds: w.bounds, Boots: boot.New(func() (string, error) { return id, nil }, func(b string) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.on[b], nil
	}),
		Now: func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.now
		}})
}

// die is what kill -9 does to a host: nothing of it runs any more.
func (w *world) die(boot string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.on, boot)
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

var ann = Owner{Caller: "local:ann", Workspace: "/w", Session: "s1", Skill: "shell"}

func begin(t testing.TB, h *Tasks, o Owner) *Running {
	t.Helper()
	r, err := h.Begin(t.Context(), Spec{Owner: o, By: "c-1", Description: "a test", Args: []byte(`{"command":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// polite is a job that writes text and goes on until it is asked to stop.
func polite(r *Running, text string) func(soft, hard context.Context) End {
	return func(soft, _ context.Context) End {
		_ = r.append([]byte(text))
		<-soft.Done()
		return End{}
	}
}

func read(t testing.TB, h *Tasks, o Owner, id int64, cursor *int64) Piece {
	t.Helper()
	p, err := h.Read(t.Context(), o, id, Reading{Cursor: cursor, Max: DefaultRead})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func at(n int64) *int64 { return &n }

// is fails unless err has the kind and says all parts.
func is(t testing.TB, err error, kind sdk.Kind, parts ...string) {
	t.Helper()
	if sdk.KindOf(err) != kind {
		t.Errorf("%v (%s), want %s", err, sdk.KindOf(err), kind)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
}

func list(t testing.TB, h *Tasks, o Owner) []Job {
	t.Helper()
	jobs, err := h.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// empty fails if anything is left of a scope but its counter.
func (w *world) empty(t testing.TB, o Owner) {
	t.Helper()
	scope, err := o.scope()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := w.store.List(context.Background(), bucket(scope), "", "", 10)
	if err != nil || len(rows) > 0 {
		t.Errorf("rows %v, %v", rows, err)
	}
	left, err := os.ReadDir(New(Options{Dir: w.dir}).scopeDir(scope))
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		t.Errorf("directories %v, %v", left, err)
	}
}
