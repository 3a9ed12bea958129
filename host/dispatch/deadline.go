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
	leave    func()
	stopped  bool
	revoked  error // why the operator's new rules end the call
}

// timeoutError says which limit ended a call.
func timeoutError(l manifest.Limits) error {
	return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool did not finish in time: limits.timeout is %v, limits.max_timeout %v", l.Timeout, l.MaxTimeout), Hint: "in its manifest"}
}

// begin starts the clock and returns the hard context. A child's clock ends
// with its parent's: its ctx is the parent's soft one.
func (c *deadline) begin(ctx context.Context, alarms *alarms, l manifest.Limits, parent *run) context.Context {
	c.mu.Lock() // ctx may be done already, and abandon on its way
	defer c.mu.Unlock()
	now := time.Now()
	c.timeout, c.last = l.Timeout, now.Add(max(l.MaxTimeout, l.Timeout))
	if parent != nil && parent.clock.last.Before(c.last) {
		c.last = parent.clock.last
		c.timeout = min(c.timeout, c.last.Sub(now))
	}
	hard := c.wind(ctx, alarms, now, func() error { return timeoutError(l) })
	unhook := context.AfterFunc(ctx, func() { c.abandon(context.Cause(ctx)) })
	c.leave = func() { unhook() }
	return hard
}

// wind makes the contexts, and sets the alarms that end them for the reason that
// late returns.
func (c *deadline) wind(ctx context.Context, alarms *alarms, now time.Time, late func() error) context.Context {
	hard, endHard := context.WithCancelCause(context.WithoutCancel(ctx))
	soft, endSoft := context.WithCancelCause(hard)
	c.alarms, c.soft, c.endSoft, c.endHard = alarms, soft, endSoft, endHard
	c.budget = c.timeout - c.grace()
	c.softEnds.ring = func() { endSoft(late()) }
	c.hardEnds.ring = func() { endHard(late()) }
	alarms.set(&c.softEnds, now.Add(c.budget))
	alarms.set(&c.hardEnds, now.Add(c.timeout))
	return hard
}

// detached starts the clock of a job, which nothing restarts and nobody's but
// its own ends. Who asks the job to stop ends it by force as well.
func (c *deadline) detached(ctx context.Context, alarms *alarms, b *background) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.timeout, c.last = b.timeout, now.Add(b.timeout)
	hard := c.wind(ctx, alarms, now, func() error {
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the job did not finish within %v", b.timeout), Hint: "limits.max_timeout in its manifest bounds it"}
	})
	asked := context.AfterFunc(b.soft, func() { c.ask(context.Cause(b.soft)) })
	forced := context.AfterFunc(b.hard, func() { c.endHard(context.Cause(b.hard)) })
	c.leave = func() { asked(); forced() }
	return hard
}

// ask makes the guest finish, in its own time.
func (c *deadline) ask(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.endSoft(cause)
		c.alarms.drop(&c.softEnds)
	}
}

// revoke ends the call at once.
func (c *deadline) revoke(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.revoked != nil {
		return
	}
	c.revoked = why
	c.endHard(why) // and soft with it
}

// revocation returns why the call was ended, if it was by revoke.
func (c *deadline) revocation() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revoked
}

// out reports whether the call has used up its time.
func (c *deadline) out() bool {
	return c.soft.Err() != nil && sdk.KindOf(context.Cause(c.soft)) == sdk.Limit
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
