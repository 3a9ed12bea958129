package timer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/tasks/timer/row"
	"github.com/skillhost/skill/sdk"
)

// A box is a row as this process knows it. There is one for each row that has
// something in it for this process to look after.
type box struct {
	key     string
	writing sync.Mutex // one changes the row at a time

	// Guarded by Timers.mu.
	uses    int // who holds it
	row     *row.Row
	version int64
	known   bool // row and version are what the store had when they were read
	read    time.Duration
	counted *row.Scope // under which it is in Timers.index, and in Timers.waiting; nil: not
	armed   map[int64]armed
	out     map[int64]*outgoing // by the N of the entry
	told    map[int64]told      // what an Ear was told of, by the N of the entry
	again   time.Duration       // when what failed is tried again
}

// told is how much of an entry an Ear was told of.
type told struct{ fire, missed int }

// armed is when a timer of this process is due, by Elapsed, for its next fire.
type armed struct {
	at    time.Duration
	fires int
}

// hold returns the box of a key, which stays until release.
func (t *Timers) hold(key string) *box {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.boxes[key]
	if b == nil {
		b = &box{key: key, row: &row.Row{}, armed: map[int64]armed{}, out: map[int64]*outgoing{}, told: map[int64]told{}}
		t.boxes[key] = b
	}
	b.uses++
	return b
}

// release forgets a box that nobody holds and nothing is in.
func (t *Timers) release(b *box) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.uses--; b.uses == 0 && b.row.Empty() {
		t.count(b)
		delete(t.boxes, b.key)
	}
}

// count keeps the boxes that matter to calls, which are those with something in
// them. The caller holds mu.
func (t *Timers) count(b *box) {
	now := b.row.Scope()
	if b.counted != nil && (b.row.Empty() || *b.counted != now) {
		t.waiting.Add(-1)
		was := *b.counted
		t.index[was] = slices.DeleteFunc(t.index[was], func(o *box) bool { return o == b })
		if len(t.index[was]) == 0 {
			delete(t.index, was)
		}
		b.counted = nil
	}
	if b.counted == nil && !b.row.Empty() {
		t.waiting.Add(1)
		t.index[now] = append(t.index[now], b)
		b.counted = &now
	}
}

// held returns the boxes that are liked, until they are released.
func (t *Timers) held(like func(*box) bool) (out boxes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.boxes {
		if like(b) {
			b.uses++
			out = append(out, b)
		}
	}
	return out
}

// of returns what there is for a session, until it is released: its own row, if
// anything is in it, and those that it has taken over.
func (t *Timers) of(s row.Scope) boxes {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := slices.Clone(t.index[s])
	for _, b := range out {
		b.uses++
	}
	return out
}

// boxes are some that are held.
type boxes []*box

func (all boxes) release(t *Timers) {
	for _, b := range all {
		t.release(b)
	}
}

// maxConflicts is how often a busy row is tried.
const maxConflicts = 64

// errSame is what a change returns that changes nothing.
var errSame = errors.New("nothing changes")

// change changes a row by one compare-and-swap. f may be called many times; its
// error leaves the row as it is.
func (t *Timers) change(ctx context.Context, b *box, f func(*row.Row) error) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	for range maxConflicts {
		r, version, err := t.current(ctx, b)
		if err != nil {
			return err
		}
		next := r.Clone()
		if next.Next == 0 { // a row that is made anew gives out none of the old numbers
			next.Next = t.o.Clock.Now().UnixMilli()
		}
		switch err := f(&next); {
		case errors.Is(err, errSame):
			return nil
		case err != nil:
			return err
		}
		version, err = t.save(ctx, b.key, &next, version)
		switch {
		case err == nil:
			t.keep(b, &next, version)
			return nil
		case !errors.Is(err, store.ErrConflict):
			return err
		}
		t.mu.Lock()
		b.known = false
		t.mu.Unlock()
	}
	return &sdk.Error{Kind: sdk.Unavailable, Op: "timer", What: "the callbacks are being changed by others all the time", Hint: "try again"}
}

// current returns the row as this process knows it, or else as it is.
func (t *Timers) current(ctx context.Context, b *box) (*row.Row, int64, error) {
	t.mu.Lock()
	r, version, known := b.row, b.version, b.known
	t.mu.Unlock()
	if known {
		return r, version, nil
	}
	r, version, err := t.load(ctx, b.key)
	if err != nil {
		return nil, 0, err
	}
	if r == nil {
		r = &row.Row{}
	}
	return r, version, nil
}

// look reads a row anew, unless that was done within the time given.
func (t *Timers) look(ctx context.Context, b *box, within time.Duration) error {
	t.mu.Lock()
	fresh := b.known && t.o.Clock.Elapsed()-b.read < within
	t.mu.Unlock()
	if fresh {
		return nil
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	r, version, err := t.load(ctx, b.key)
	if err != nil {
		return err
	}
	if r == nil {
		r = &row.Row{}
	}
	t.keep(b, r, version)
	return nil
}

// keep remembers a row, and when its timers are due.
func (t *Timers) keep(b *box, r *row.Row, version int64) {
	mine, err := t.o.Boots.Self()
	t.mu.Lock()
	defer t.mu.Unlock()
	b.row, b.version, b.known, b.read = r, version, true, t.o.Clock.Elapsed()
	t.count(b)
	was := b.armed
	b.armed = map[int64]armed{}
	for i := range r.Timers {
		x := &r.Timers[i]
		if err != nil || x.Boot != mine {
			continue
		}
		a, ok := was[x.N]
		if !ok || a.fires != x.Fires {
			a = armed{b.read + x.Period(), x.Fires}
		}
		b.armed[x.N] = a
	}
	there := func(n int64) bool { return slices.ContainsFunc(r.Inbox, func(e row.Entry) bool { return e.N == n }) }
	for n, o := range b.out {
		if o.stored || !there(n) {
			delete(b.out, n)
		}
	}
	for n := range b.told {
		if !there(n) {
			delete(b.told, n)
		}
	}
	t.ring()
}

// abandon leaves what is durable of a row to others, and ends the rest.
func (t *Timers) abandon(ctx context.Context, b *box) error {
	mine, err := t.o.Boots.Self()
	if err != nil {
		return err
	}
	return t.change(ctx, b, func(r *row.Row) error {
		r.Leave(mine)
		return nil
	})
}

// forget makes a box one that nothing is in for this process.
func (t *Timers) forget(b *box) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.row, b.version, b.known = &row.Row{}, 0, false
	clear(b.armed)
	clear(b.out)
	clear(b.told)
	t.count(b)
}
