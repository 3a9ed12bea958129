package dispatch

import (
	"context"
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

	mu        sync.Mutex
	endSoft   context.CancelCauseFunc
	endHard   context.CancelCauseFunc
	softTimer *time.Timer
	hardTimer *time.Timer
	last      time.Time // the hard end that nothing moves
	timeout   time.Duration
	leave     func() bool
	stopped   bool
}

var errTimeout = &sdk.Error{Kind: sdk.Limit, What: "the tool did not finish in time", Hint: "limits.timeout and limits.max_timeout in its manifest"}

// begin starts the clock and returns the hard context. A child's clock ends
// with its parent's: its ctx is the parent's soft one.
func (c *deadline) begin(ctx context.Context, l manifest.Limits, parent *run) context.Context {
	hard, endHard := context.WithCancelCause(context.WithoutCancel(ctx))
	soft, endSoft := context.WithCancelCause(hard)
	c.mu.Lock() // ctx may be done already, and abandon on its way
	defer c.mu.Unlock()
	c.soft, c.endSoft, c.endHard, c.timeout = soft, endSoft, endHard, l.Timeout
	now := time.Now()
	c.last = now.Add(max(l.MaxTimeout, l.Timeout))
	if parent != nil && parent.clock.last.Before(c.last) {
		c.last = parent.clock.last
		c.timeout = min(c.timeout, c.last.Sub(now))
	}
	c.budget = c.timeout - c.grace()
	c.softTimer = time.AfterFunc(c.budget, func() { endSoft(errTimeout) })
	c.hardTimer = time.AfterFunc(c.timeout, func() { endHard(errTimeout) })
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
	left := min(c.timeout, time.Until(c.last))
	c.softTimer.Reset(max(0, left-c.grace()))
	c.hardTimer.Reset(max(0, left))
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
	c.softTimer.Stop()
	c.hardTimer.Stop()
	c.hardTimer = time.AfterFunc(c.grace(), func() { c.endHard(cause) })
}

func (c *deadline) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.leave()
	c.softTimer.Stop()
	c.hardTimer.Stop()
	c.endSoft(context.Canceled)
	c.endHard(context.Canceled)
}
