package timer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/skillhost/skill/host/tasks/timer/row"
	"github.com/skillhost/skill/sdk"
)

// outgoing is what of an entry is on its way to the client, or has got there and
// is still to be taken out of the row.
type outgoing struct {
	count, missed int
	at            time.Duration
	written       bool
	stored        bool // by the change that is under way
}

// rideFor is how long an answer may take to be written before what it carries
// is handed to another one as well.
const rideFor = 10 * time.Second

// gone is how many fires of e the client has already. The caller holds mu.
func (b *box) gone(e *row.Entry) int {
	if o := b.out[e.N]; o != nil && o.written {
		return min(o.count, e.Count)
	}
	return 0
}

// arrival tells of e without what the client has already. The caller holds mu.
func (b *box) arrival(e *row.Entry) Arrival {
	a := Arrival{ID: e.N, Timer: e.ID, Skill: e.Skill, Message: e.Message, Fire: e.Fire, Count: e.Count, Missed: e.Missed, Last: e.Last.UTC(), Told: b.told[e.N].fire == e.Fire}
	if o := b.out[e.N]; o != nil && o.written {
		a.Count, a.Missed = a.Count-o.count, max(0, a.Missed-o.missed)
	}
	return a
}

// Waiting reports whether there may be something for scope. It takes no time,
// and says yes too often.
func (t *Timers) Waiting(s sdk.Scope) bool { return t.waiting.Load() != 0 || scopeOf(s).Outlives() }

// Take hands out what waits for a session, for an answer to its client, and how
// many fires it lost. written, which is not nil if there is anything, is called
// when the answer was written, or could not be: until then, and after a failure,
// all of it still waits. It may not be called at all.
func (t *Timers) Take(ctx context.Context, s sdk.Scope) (out []Arrival, lost int, written func(ok bool)) {
	if !t.Waiting(s) {
		return nil, 0, nil
	}
	all, err := t.visit(ctx, scopeOf(s))
	defer all.release(t)
	if err != nil {
		t.o.Log.Warn("callbacks cannot be looked for", "err", err)
	}
	may := t.may(all, s)
	var carried []func(bool)
	bytes := 0
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.o.Clock.Elapsed()
	for _, b := range all {
		for i := range b.row.Inbox {
			e := &b.row.Inbox[i]
			o := b.out[e.N]
			if !may[e.Skill] || o != nil && (o.written || now-o.at < rideFor) {
				continue
			}
			if bytes += len(e.Message); len(out) == maxRide || len(out) > 0 && bytes > rideBytes {
				break
			}
			out = append(out, b.arrival(e))
			o = &outgoing{count: e.Count, missed: e.Missed, at: now}
			b.out[e.N] = o
			carried = append(carried, func(ok bool) { t.carried(b, e.N, o, ok) })
		}
		lost += b.row.Dropped
	}
	if carried == nil {
		return nil, 0, nil
	}
	return out, lost, func(ok bool) {
		for _, f := range carried {
			f(ok)
		}
	}
}

// visit returns what there is for a session whose client is there.
func (t *Timers) visit(ctx context.Context, s row.Scope) (boxes, error) {
	failed := t.come(ctx, s)
	if s.Outlives() {
		failed = cmp.Or(failed, t.lookFor(ctx, s))
	}
	return t.of(s), failed
}

// lookFor looks at what other hosts do for a session, unless that was done
// lately.
func (t *Timers) lookFor(ctx context.Context, s row.Scope) error {
	now := t.o.Clock.Elapsed()
	t.mu.Lock()
	at, blank := t.blank[s]
	t.mu.Unlock()
	if blank && now-at < lookEvery {
		return nil
	}
	own := t.hold(s.Key())
	defer t.release(own)
	if err := t.settle(ctx, own, s, lookEvery); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.blank) >= maxPresent {
		clear(t.blank)
	}
	if delete(t.blank, s); own.row.Empty() {
		t.blank[s] = now
	}
	return nil
}

// come notes that a session is there, and gives it what others have left.
func (t *Timers) come(ctx context.Context, s row.Scope) error {
	t.mu.Lock()
	left := t.left[s.Family()]
	t.note(s)
	t.mu.Unlock()
	if left {
		return t.adopt(ctx, s)
	}
	return nil
}

// may asks of each skill that has something in the boxes whether it may reach
// scope.
func (t *Timers) may(all boxes, s sdk.Scope) map[string]bool {
	may := map[string]bool{}
	t.mu.Lock()
	for _, b := range all {
		for i := range b.row.Inbox {
			may[b.row.Inbox[i].Skill] = t.o.May == nil
		}
	}
	t.mu.Unlock()
	if t.o.May != nil {
		for skill := range may {
			may[skill] = t.o.May(skill, s)
		}
	}
	return may
}

// carried notes what became of an answer with an entry in it.
func (t *Timers) carried(b *box, n int64, o *outgoing, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case b.out[n] != o: // another answer has carried it meanwhile
	case ok:
		o.written = true
		t.ring()
	default:
		delete(b.out, n)
	}
}

// deliver takes out of the rows what clients have. What cannot be written now is
// tried again, and until then not handed out.
func (t *Timers) deliver(ctx context.Context) {
	now := t.o.Clock.Elapsed()
	all := t.held(func(b *box) bool {
		for _, o := range b.out {
			if o.written && b.again <= now {
				return true
			}
		}
		return false
	})
	defer all.release(t)
	for _, b := range all {
		err := t.change(ctx, b, func(r *row.Row) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			for n, o := range b.out {
				if o.stored = o.written; o.stored {
					r.Took(n, o.count, o.missed)
				}
			}
			return nil
		})
		if err != nil {
			t.mu.Lock()
			for _, o := range b.out {
				o.stored = false
			}
			b.again = now + tryAgain
			t.mu.Unlock()
		}
		if err != nil {
			t.o.Log.Warn("a delivered callback cannot be noted as such", "err", err)
		}
	}
}

// Inbox returns what a skill's timers have fired in a session and nobody has,
// the oldest first, and how many fires were lost.
func (t *Timers) Inbox(ctx context.Context, o Owner) (out []Arrival, lost int, err error) {
	if err := o.check(); err != nil {
		return nil, 0, err
	}
	all, err := t.boxesOf(ctx, o.scope())
	defer all.release(t)
	if err != nil {
		return nil, 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out = []Arrival{}
	for _, b := range all {
		for i := range b.row.Inbox {
			if e := &b.row.Inbox[i]; e.Skill == o.Skill && b.gone(e) < e.Count {
				out = append(out, b.arrival(e))
			}
		}
		lost += b.row.Dropped
	}
	slices.SortStableFunc(out, func(a, b Arrival) int { return a.Last.Compare(b.Last) })
	return out, lost, nil
}

// Acknowledge takes entries out of the inbox, and returns how many there were.
func (t *Timers) Acknowledge(ctx context.Context, o Owner, ids []int64) (n int, err error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	all, err := t.boxesOf(ctx, o.scope())
	defer all.release(t)
	if err != nil {
		return 0, err
	}
	for _, b := range all {
		here := 0
		err := t.change(ctx, b, func(r *row.Row) error {
			here = 0
			for _, e := range slices.Clone(r.Inbox) {
				if e.Skill == o.Skill && slices.Contains(ids, e.N) {
					r.Took(e.N, e.Count, e.Missed)
					here++
				}
			}
			if here == 0 {
				return errSame
			}
			return nil
		})
		if err != nil {
			return n, err
		}
		n += here
	}
	return n, nil
}
