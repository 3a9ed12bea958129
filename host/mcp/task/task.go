// Package task keeps the calls that outlive their request: which there are, how
// each one is, and what came of it. A task is in the store before anybody is
// told of it, so that it can be asked for after a restart and through another
// host of the same user. One that waits for its user belongs to no process:
// whichever host is given the answers goes on with it.
//
// It does not know the protocol, what a call does, or whether it may be made;
// results are bytes to it. It only keeps the tasks of one caller from another.
package task

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// A Store keeps rows; store.Store says what its methods promise.
type Store interface {
	Get(ctx context.Context, bucket, key string) (value []byte, version int64, err error)
	Put(ctx context.Context, bucket, key string, value []byte, old int64) (version int64, err error)
	Delete(ctx context.Context, bucket, key string, old int64) error
	List(ctx context.Context, bucket, prefix, after string, n int) ([]store.Item, error)
}

// Options of New.
type Options struct {
	Store  Store
	Boots  *boot.Boots      // who else there is; nil: nobody
	Now    func() time.Time // nil means time.Now
	Bounds Bounds
}

// Bounds are what is kept. A zero field has the default.
type Bounds struct {
	TTL     time.Duration // how long a task is kept after its end: 10 min, at most 24 h
	Wait    time.Duration // how long it waits for its user: 1 h, which is how long the corridor takes answers
	Caller  int           // tasks of one caller and workspace that are kept: 100
	All     int           // tasks that are kept: 1000
	Running int           // tasks that this process runs at once: 256
	Look    time.Duration // how soon a task ends that another host was asked to cancel: 1 s
}

const maxTTL = 24 * time.Hour

func (b Bounds) orDefault() Bounds {
	return Bounds{TTL: min(cmp.Or(b.TTL, 10*time.Minute), maxTTL), Wait: min(cmp.Or(b.Wait, time.Hour), maxTTL), Caller: cmp.Or(b.Caller, 100),
		All: cmp.Or(b.All, 1000), Running: cmp.Or(b.Running, 256), Look: cmp.Or(b.Look, time.Second)}
}

// A Status says how a task is.
type Status string

// The statuses of a task, as the protocol spells them. The last three are final.
const (
	Working   Status = "working"
	Waiting   Status = "input_required"
	Completed Status = "completed" // the call has a result, be it a failure of the tool
	Failed    Status = "failed"    // the call has no result
	Cancelled Status = "cancelled"
)

// A Task is what is told of one.
type Task struct {
	ID        string
	Status    Status
	Message   string // for people
	Created   time.Time
	Updated   time.Time
	Expires   time.Time               // when it may be forgotten; zero while it works
	Questions map[string]sdk.Question // that are open, if it waits
	Body      json.RawMessage         // the result of one that completed; the error of one that failed, nil if there is only Message
}

// An Owner is whose a task is. Rights are compared as sets: who has fewer than
// the call was made with does not see it.
type Owner struct{ Caller, Workspace, Rights string }

// OwnerOf returns the owner of what is called in a scope. Sessions do not
// count: a task outlives them.
func OwnerOf(s sdk.Scope) Owner { return Owner{s.Caller, s.Workspace, s.Rights} }

// place names where the tasks of o are kept. Its parts are hashed with their
// lengths, so that no choice of names leads to another caller's place.
func (o Owner) place() string {
	h := sha256.New()
	for _, part := range [...]string{o.Caller, o.Workspace} {
		fmt.Fprintf(h, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]) + "/"
}

// sees reports whether o has all the rights that a task was made with.
func (o Owner) sees(rights string) bool {
	have := map[string]bool{}
	for _, r := range strings.Fields(o.Rights) {
		have[r] = true
	}
	for _, r := range strings.Fields(rights) {
		if !have[r] {
			return false
		}
	}
	return true
}

// key is where a task of that id is kept if it is one of o's. An id that New
// cannot have made has none.
func (o Owner) key(id string) (string, bool) {
	if len(id) != len(rand.Text()) || o.Caller == "" {
		return "", false
	}
	for _, c := range []byte(id) {
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return "", false
		}
	}
	return o.place() + id, true
}

// Tasks keeps tasks. It is safe for concurrent use.
type Tasks struct {
	store  Store
	boots  *boot.Boots
	now    func() time.Time
	bounds Bounds

	admitting sync.Mutex     // one at a time is counted
	work      sync.WaitGroup // runs that have not ended

	mu     sync.Mutex
	live   map[string]*Run // by key
	turn   chan struct{}   // closed at the next change of a task here
	closed bool
}

// New returns a Tasks. It does nothing yet.
func New(o Options) *Tasks {
	t := &Tasks{store: o.Store, boots: o.Boots, now: o.Now, bounds: o.Bounds.orDefault(), live: map[string]*Run{}, turn: make(chan struct{})}
	if t.boots == nil {
		t.boots = boot.New(nil, nil)
	}
	if t.now == nil {
		t.now = time.Now
	}
	return t
}

// maxTries is how often what others change meanwhile is tried again.
const maxTries = 16

// Get tells of a task. The error has kind NotFound if o has none of that id.
func (t *Tasks) Get(ctx context.Context, o Owner, id string) (Task, error) {
	key, ok := o.key(id)
	if !ok {
		return Task{}, unknown()
	}
	for range maxTries {
		if r := t.current(ctx, key); r != nil {
			return r.task(o)
		}
		w, _, err := t.load(ctx, key)
		if err == nil && !o.sees(w.Rights) {
			err = unknown()
		}
		if err != nil {
			return Task{}, err
		}
		body, err := t.body(ctx, key, w)
		if err != nil {
			return Task{}, err
		}
		if body == nil && w.Parts > 0 || w.Status == Working && t.running(key) != nil {
			continue // it has changed meanwhile
		}
		return w.task(body)
	}
	return Task{}, busy()
}

// Cancel asks a task to end. One that has ended stays as it is; one that
// another host runs ends soon.
func (t *Tasks) Cancel(ctx context.Context, o Owner, id string) error {
	key, ok := o.key(id)
	if !ok {
		return unknown()
	}
	for range maxTries {
		if r := t.current(ctx, key); r != nil {
			if !o.sees(r.rights) {
				return unknown()
			}
			r.cancel(ErrCancelled)
			return nil
		}
		was, version, err := t.load(ctx, key)
		w := was
		switch {
		case err != nil:
			return err
		case !o.sees(w.Rights):
			return unknown()
		case w.Status == Working:
			w.Stop = true
		case w.Status == Waiting:
			w.end(Cancelled, "cancelled while it waited for an answer", t.now(), t.bounds.TTL)
		default:
			return nil
		}
		if err = t.swap(ctx, key, was, w, version); err != errConflict {
			return err
		}
	}
	return busy()
}

// Changed returns a channel that is closed when a task changes that this process
// runs, or is asked to answer or cancel.
func (t *Tasks) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn
}

func (t *Tasks) announce() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.turn)
	t.turn = make(chan struct{})
}

// running returns the run of a task that this process runs, or nil.
func (t *Tasks) running(key string) *Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[key]
}

// current is running, but waits while a run is being recorded: nobody is told
// of an end that the store does not have.
func (t *Tasks) current(ctx context.Context, key string) *Run {
	r := t.running(key)
	if r == nil || !r.ending() {
		return r
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	return t.running(key)
}

// unknown is the error of an id that the caller has no task of. It is the same
// whether another caller has one.
func unknown() error {
	return &sdk.Error{Kind: sdk.NotFound, Op: "task", What: "there is no such task", Hint: "it never was, is another caller's, or has expired"}
}

func busy() error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: "task", What: "the task is being changed by others all the time", Hint: "try again"}
}
