package timer

import (
	"context"
	"time"

	"github.com/skillhost/skill/host/tasks/timer/row"
)

const (
	scanEvery = time.Minute            // how often is looked for what dead hosts have left
	lookEvery = 2 * time.Second        // and at what other hosts do for a session that they share
	wallEvery = 5 * time.Second        // and at the wall clock, which may jump
	pushEvery = 250 * time.Millisecond // and whether a session is idle that is to be told something
	tryAgain  = time.Second            // after a failure of the store
)

// loop does what is due, until Close.
func (t *Timers) loop() {
	for {
		wait := t.step(t.ctx)
		select {
		case <-t.ctx.Done():
			return
		case <-t.wake:
		case <-t.o.Clock.After(wait):
		}
	}
}

// step does what is due now, and returns how long there is nothing to do.
func (t *Timers) step(ctx context.Context) (wait time.Duration) {
	t.deliver(ctx)
	t.fireAll(ctx)
	wait = t.lookAround(ctx)
	if t.tellEars() {
		wait = min(wait, pushEvery)
	}
	return min(wait, t.next())
}

// fireAll fires the timers of this process that are due.
func (t *Timers) fireAll(ctx context.Context) {
	now, wall := t.o.Clock.Elapsed(), t.o.Clock.Now()
	due := t.held(func(b *box) bool {
		at, ok := b.next(now, wall)
		return ok && at <= now && b.again <= now
	})
	defer due.release(t)
	for _, b := range due {
		if err := t.fire(ctx, b); err != nil {
			t.o.Log.Warn("a callback cannot fire", "err", err)
			t.mu.Lock()
			b.again = now + tryAgain
			t.mu.Unlock()
		}
	}
}

// next returns when the first timer of this process is due, by Elapsed. What is
// durable obeys the wall clock. The caller holds mu.
func (b *box) next(now time.Duration, wall time.Time) (at time.Duration, ok bool) {
	for i := range b.row.Timers {
		x := &b.row.Timers[i]
		a, mine := b.armed[x.N]
		if !mine {
			continue
		}
		if x.Durable {
			a.at = now + x.Due.Sub(wall)
			if x.Due.Sub(wall) > x.Period() { // the clock was put back
				a.at = now
			}
		}
		if !ok || a.at < at {
			at, ok = a.at, true
		}
	}
	return at, ok
}

// fire fires what is due in a row: whose row it is by then is found out by the
// write.
func (t *Timers) fire(ctx context.Context, b *box) error {
	mine, err := t.o.Boots.Self()
	if err != nil {
		return err
	}
	return t.change(ctx, b, func(r *row.Row) error {
		now, wall := t.o.Clock.Elapsed(), t.o.Clock.Now()
		t.mu.Lock()
		at := b.armed
		t.mu.Unlock()
		did := false
		rest := r.Timers[:0:0]
		for i := range r.Timers {
			x := &r.Timers[i]
			if a, ok := at[x.N]; ok && x.Boot == mine && a.fires == x.Fires {
				did = r.Turn(x, now-a.at, wall) || did
			}
			if x.Left != 0 {
				rest = append(rest, *x)
			}
		}
		if r.Timers = rest; !did {
			return errSame
		}
		return nil
	})
}

// lookAround looks at what other hosts do, where that is due, and returns when
// it is next.
func (t *Timers) lookAround(ctx context.Context) (wait time.Duration) {
	now := t.o.Clock.Elapsed()
	t.mu.Lock()
	serves, since := t.life == serving, now-t.scanned
	var shared []row.Scope
	for at, k := range t.talks {
		if len(k.ears) > 0 && at.Outlives() {
			shared = append(shared, at)
		}
	}
	if serves && since >= scanEvery {
		t.scanned, since = now, 0
	} else if !serves {
		since = -1
	}
	t.mu.Unlock()
	if since == 0 {
		if err := t.scan(ctx); err != nil && ctx.Err() == nil { // else the host is closing
			t.o.Log.Warn("what other hosts have left of callbacks cannot be looked for", "err", err)
		}
	}
	for _, s := range shared {
		if err := t.lookFor(ctx, s); err != nil && ctx.Err() == nil {
			t.o.Log.Warn("callbacks cannot be looked for", "err", err)
		}
	}
	wait = scanEvery
	if serves {
		wait = scanEvery - since
	}
	if len(shared) > 0 {
		wait = min(wait, lookEvery)
	}
	return max(wait, 0)
}

// next returns how long there is nothing to fire or to note.
func (t *Timers) next() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, wall := t.o.Clock.Elapsed(), t.o.Clock.Now()
	wait := scanEvery
	for _, b := range t.boxes {
		for _, o := range b.out {
			if o.written {
				wait = min(wait, b.again-now)
			}
		}
		if at, ok := b.next(now, wall); ok {
			wait = min(wait, max(at, b.again)-now)
		}
		for i := range b.row.Timers {
			if x := &b.row.Timers[i]; x.Durable {
				wait = min(wait, wallEvery)
			}
		}
	}
	return max(wait, 0)
}
