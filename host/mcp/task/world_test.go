package task

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/store/memory"
	"github.com/skillhost/skill/sdk"
)

var ctx = context.Background()

// alice is whose tasks the tests make.
var alice = Owner{Caller: "alice", Workspace: "/work", Rights: "read write"}

// A world is a store and the hosts on it.
type world struct {
	t     *testing.T
	store *memory.Store
	clock atomic.Int64 // added to the time, ns
	mu    sync.Mutex
	dead  map[string]bool
	bound Bounds
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: memory.Open(), dead: map[string]bool{}, bound: Bounds{Look: 5 * time.Millisecond}}
	t.Cleanup(func() { w.store.Close() })
	return w
}

// host is a host with that boot id.
func (w *world) host(boot string) *Tasks { return w.hostOn(boot, w.store) }

func (w *world) hostOn(id string, s Store) *Tasks {
	return New(Options{Store: s, Bounds: w.bound,
		Boots: boot.New(func() (string, error) { return id, nil }, func(other string) (bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return !w.dead[other], nil
		}),
		Now: func() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) }})
}

func (w *world) kill(boot string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead[boot] = true
}

func (w *world) later(d time.Duration) { w.clock.Add(int64(d)) }

// begin begins a task of o; the context it returns ends when that is cancelled.
func begin(t *testing.T, h *Tasks, o Owner) (*Run, context.Context) {
	t.Helper()
	c, cancel := context.WithCancelCause(ctx)
	r, err := h.Begin(ctx, o, cancel)
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

// want fails unless the task of that id is in that status, and returns it.
func want(t *testing.T, h *Tasks, o Owner, id string, s Status) Task {
	t.Helper()
	k, err := h.Get(ctx, o, id)
	if err != nil || k.Status != s {
		t.Fatalf("task is %q (%v), want %q", k.Status, err, s)
	}
	return k
}

func wantKind(t *testing.T, err error, k sdk.Kind) {
	t.Helper()
	if sdk.KindOf(err) != k {
		t.Fatalf("error %v, want kind %q", err, k)
	}
}

// within waits until f is true.
func within(t *testing.T, f func() bool) {
	t.Helper()
	for range 2000 {
		if f() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("it does not happen")
}

// rows counts what the store has.
func (w *world) rows(bucket string) int {
	items, err := w.store.List(ctx, bucket, "", "", 10000)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(items)
}

// broken is a store whose writes fail while it is.
type broken struct {
	Store
	now atomic.Bool
}

func (b *broken) Put(c context.Context, bucket, key string, value []byte, old int64) (int64, error) {
	if b.now.Load() {
		return 0, errors.New("the disk is full")
	}
	return b.Store.Put(c, bucket, key, value, old)
}

// nosy calls f before each Put of a row.
type nosy struct {
	Store
	f func(key string)
}

func (n *nosy) Put(c context.Context, bucket, key string, value []byte, old int64) (int64, error) {
	if bucket == rowBucket {
		n.f(key)
	}
	return n.Store.Put(c, bucket, key, value, old)
}
