package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// grace is how long before the hard deadline a guest is asked to finish, and
// how long it has after its caller went away.
const grace = 500 * time.Millisecond

// A deadline is the clock of one call. The soft context ends first: the guest
// is asked to finish and its operations stop. The hard one stops the guest.
// Partial output restarts the clock, up to MaxTimeout in all.
type deadline struct {
	soft   context.Context
	budget time.Duration // from begin to the soft end

	mu       sync.Mutex
	alarms   *alarms
	endSoft  context.CancelCauseFunc
	endHard  context.CancelCauseFunc
	softEnds alarm
	hardEnds alarm
	last     time.Time // the hard end that nothing moves
	timeout  time.Duration
	leave    func() bool
	stopped  bool
}

// timeoutError says which limit ended a call.
func timeoutError(l manifest.Limits) error {
	return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool did not finish in time: limits.timeout is %v, limits.max_timeout %v", l.Timeout, l.MaxTimeout), Hint: "in its manifest"}
}

// begin starts the clock and returns the hard context. A child's clock ends
// with its parent's: its ctx is the parent's soft one.
func (c *deadline) begin(ctx context.Context, alarms *alarms, l manifest.Limits, parent *run) context.Context {
	hard, endHard := context.WithCancelCause(context.WithoutCancel(ctx))
	soft, endSoft := context.WithCancelCause(hard)
	c.mu.Lock() // ctx may be done already, and abandon on its way
	defer c.mu.Unlock()
	c.alarms, c.soft, c.endSoft, c.endHard, c.timeout = alarms, soft, endSoft, endHard, l.Timeout
	now := time.Now()
	c.last = now.Add(max(l.MaxTimeout, l.Timeout))
	if parent != nil && parent.clock.last.Before(c.last) {
		c.last = parent.clock.last
		c.timeout = min(c.timeout, c.last.Sub(now))
	}
	c.budget = c.timeout - c.grace()
	c.softEnds.ring = func() { endSoft(timeoutError(l)) }
	c.hardEnds.ring = func() { endHard(timeoutError(l)) }
	alarms.set(&c.softEnds, now.Add(c.budget))
	alarms.set(&c.hardEnds, now.Add(c.timeout))
	c.leave = context.AfterFunc(ctx, func() { c.abandon(context.Cause(ctx)) })
	return hard
}

func (c *deadline) grace() time.Duration { return min(grace, c.timeout/10) }

// extend restarts the clock.
func (c *deadline) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.soft.Err() != nil {
		return
	}
	end := time.Now().Add(c.timeout)
	if end.After(c.last) {
		end = c.last
	}
	c.alarms.set(&c.softEnds, end.Add(-c.grace()))
	c.alarms.set(&c.hardEnds, end)
}

// abandon ends the call because its caller is gone or its parent is out of time.
func (c *deadline) abandon(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	if sdk.KindOf(cause) != sdk.Limit {
		cause = context.Canceled
	}
	c.endSoft(cause)
	c.alarms.drop(&c.softEnds)
	c.alarms.drop(&c.hardEnds) // it may be ringing; then the guest is stopped a little early
	c.hardEnds = alarm{ring: func() { c.endHard(cause) }}
	c.alarms.set(&c.hardEnds, time.Now().Add(c.grace()))
}

func (c *deadline) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.leave()
	c.alarms.drop(&c.softEnds)
	c.alarms.drop(&c.hardEnds)
	c.endSoft(context.Canceled)
	c.endHard(context.Canceled)
}
