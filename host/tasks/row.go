package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/tasks/ring"
	"github.com/skillhost/skill/sdk"
)

// A row is a job as the store has it. Who runs it writes it, twice: when it
// begins and when it ends. Anybody may write that it is lost.
type row struct {
	ID          int64           `json:"id"`
	Call        bool            `json:"call,omitempty"` // no job: a call that has kept its output
	Skill       string          `json:"skill"`
	Session     string          `json:"session,omitempty"`
	Boot        string          `json:"boot"`
	By          string          `json:"by"` // the call that started it, or that it is
	Status      Status          `json:"status"`
	Description string          `json:"description,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	Started     time.Time       `json:"started"`
	Ended       time.Time       `json:"ended,omitzero"`
	Bytes       int64           `json:"bytes,omitempty"`
	Lost        int64           `json:"lost,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Error       string          `json:"error,omitempty"`
}

// headBucket holds a head for each scope; rows are in a bucket of their own for
// each scope.
const headBucket = "tasks"

func bucket(scope string) string { return headBucket + "/" + scope }

// key sorts as the ids do.
func key(id int64) string { return fmt.Sprintf("%019d", id) }

// A head counts the jobs of a scope. The cap on those that run holds across
// hosts, because each is admitted by a compare-and-swap of this one value.
type head struct {
	Last    int64   `json:"last"`
	Running []entry `json:"running,omitempty"`
}

type entry struct {
	ID   int64  `json:"id"`
	Boot string `json:"boot"`
}

// maxConflicts is how often a busy head is tried.
const maxConflicts = 64

// swap changes the head of a scope. change may be called many times; its error
// leaves the head as it is.
func (t *Tasks) swap(ctx context.Context, scope string, change func(*head) error) error {
	for range maxConflicts {
		var h head
		value, version, err := t.store.Get(ctx, headBucket, scope)
		switch {
		case errors.Is(err, store.ErrAbsent):
		case err != nil:
			return unavailable(err)
		case json.Unmarshal(value, &h) != nil:
			return &sdk.Error{Kind: sdk.Unavailable, Op: "tasks", What: "the record of jobs is damaged"}
		}
		if err := change(&h); err != nil {
			return err
		}
		if value, err = json.Marshal(h); err != nil {
			return err
		}
		_, err = t.store.Put(ctx, headBucket, scope, value, version)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return unavailable(err)
		}
	}
	return &sdk.Error{Kind: sdk.Unavailable, Op: "tasks", What: "the record of jobs is being written by others all the time", Hint: "try again"}
}

// admit gives out an id. A job takes one of the places of those that run.
func (t *Tasks) admit(ctx context.Context, scope, boot string, call bool) (id int64, err error) {
	err = t.swap(ctx, scope, func(h *head) error {
		h.Last++
		id = h.Last
		if call {
			return nil
		}
		if len(h.Running) >= t.bounds.Running {
			if err := t.leftOver(ctx, scope, h); err != nil {
				return err
			}
		}
		if len(h.Running) >= t.bounds.Running {
			return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("%d jobs run already in this workspace, which is the most", len(h.Running)), Hint: "kill one, or wait until one has ended"}
		}
		h.Running = append(h.Running, entry{id, boot})
		return nil
	})
	return id, err
}

// leftOver takes out of h the jobs that have ended, but whose end a host could
// not write there.
func (t *Tasks) leftOver(ctx context.Context, scope string, h *head) error {
	var failed error
	h.Running = slices.DeleteFunc(h.Running, func(e entry) bool {
		n := name{scope, e.ID}
		if t.running(n) != nil {
			return false
		}
		r, _, err := t.load(ctx, n)
		switch {
		case err == nil:
			return r.Status != Active
		case !errors.Is(err, store.ErrAbsent):
			failed = err
			return false
		}
		over, err := t.boots.Over(e.Boot) // it may be about to write the row
		if err != nil {
			failed = err
		}
		return over
	})
	return failed
}

// release gives back a job's place. If it cannot, leftOver does.
func (t *Tasks) release(ctx context.Context, n name) {
	_ = t.swap(ctx, n.scope, func(h *head) error {
		h.Running = slices.DeleteFunc(h.Running, func(e entry) bool { return e.ID == n.id })
		return nil
	})
}

// load reads a row and, if its host has ended meanwhile, marks it as lost. The
// error may be store.ErrAbsent.
func (t *Tasks) load(ctx context.Context, n name) (row, int64, error) {
	value, version, err := t.store.Get(ctx, bucket(n.scope), key(n.id))
	if errors.Is(err, store.ErrAbsent) {
		return row{}, 0, store.ErrAbsent
	}
	if err != nil {
		return row{}, 0, unavailable(err)
	}
	return t.settle(ctx, n.scope, value, version)
}

// settle decodes a row of a scope as load does.
func (t *Tasks) settle(ctx context.Context, scope string, value []byte, version int64) (row, int64, error) {
	var r row
	if err := json.Unmarshal(value, &r); err != nil {
		return r, 0, &sdk.Error{Kind: sdk.Unavailable, Op: "tasks", What: "the record of a job is damaged", Err: err}
	}
	if r.Status != Active {
		return r, version, nil
	}
	over, err := t.boots.Over(r.Boot)
	if err != nil || !over {
		return r, version, err
	}
	n := name{scope, r.ID}
	r.Status, r.Ended = Lost, t.now()
	r.Error = "the host that ran it has ended"
	if l, err := ring.Open(t.folder(n, r.Boot)); err == nil {
		_, r.Bytes = l.Bounds()
	}
	next, err := t.save(ctx, scope, r, version)
	if errors.Is(err, store.ErrConflict) { // somebody else has seen it as well
		return t.load(ctx, n)
	}
	return r, next, err
}

// save writes a row if its version is still old.
func (t *Tasks) save(ctx context.Context, scope string, r row, old int64) (version int64, err error) {
	value, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	version, err = t.store.Put(ctx, bucket(scope), key(r.ID), value, old)
	if errors.Is(err, store.ErrConflict) {
		return 0, store.ErrConflict
	}
	return version, unavailable(err)
}

// rowPage is how many rows are asked of the store at once.
const rowPage = 64

// rows calls yield for each row of a scope, by id, until it returns an error.
// What another process runs is settled; what this one runs is as the store has
// it.
func (t *Tasks) rows(ctx context.Context, scope string, yield func(r row, version int64) error) error {
	for after := ""; ; {
		items, err := t.store.List(ctx, bucket(scope), "", after, rowPage)
		if err != nil {
			return unavailable(err)
		}
		for _, it := range items {
			after = it.Key
			r, version, err := t.settle(ctx, scope, it.Value, it.Version)
			if err == nil {
				err = yield(r, version)
			}
			if err != nil {
				return err
			}
		}
		if len(items) < rowPage {
			return nil
		}
	}
}

// find returns the row of a job that o may see, and what runs it, if that is
// this process. A job of another session is not found while its host lives.
func (t *Tasks) find(ctx context.Context, o Owner, id int64) (name, row, *Running, error) {
	scope, err := o.scope()
	if err != nil {
		return name{}, row{}, nil, err
	}
	n := name{scope, id}
	r, found := row{}, t.running(n)
	if found == nil {
		if r, _, err = t.load(ctx, n); errors.Is(err, store.ErrAbsent) {
			return n, r, nil, absent(id)
		}
		if err != nil {
			return n, r, nil, err
		}
		found = t.running(n) // it may have begun, or ended, between the two
	}
	if found != nil {
		r = found.snapshot()
	}
	seen, err := t.sees(o, r)
	if err == nil && !seen {
		err = absent(id)
	}
	return n, r, found, err
}

// sees reports whether r is one of o's, as its session sees them.
func (t *Tasks) sees(o Owner, r row) (bool, error) {
	if r.Skill != o.Skill {
		return false, nil
	}
	if r.Session == o.Session {
		return true, nil
	}
	return t.boots.Over(r.Boot)
}

func absent(id int64) error {
	return &sdk.Error{Kind: sdk.NotFound, What: "no job " + strconv.FormatInt(id, 10), Hint: "job.list has those that there are"}
}

// unavailable is the error of a store that does not answer. Its words, such as
// the path of its file, are for the host's log.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &sdk.Error{Kind: sdk.Unavailable, Op: "tasks", What: "the store does not answer", Err: err}
}
