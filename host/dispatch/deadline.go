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
	soft, hard lazy
	from       context.Context // of the caller; set by begin and detached
	budget     time.Duration   // from begin to the soft end

	mu      sync.Mutex
	alarms  *alarms
	next    alarm // of soft, then of hard
	term    term
	deaf    []func() bool // no more to be told of what ends the call from outside; nil if nobody asked to be
	stopped bool
	revoked error // why the operator's new rules end the call
	gone    error // why nobody waits for it any more
}

// A term is how much time a call has.
type term struct {
	end     time.Time // of hard, as things stand
	last    time.Time // the hard end that nothing moves
	timeout time.Duration
	limits  *manifest.Limits // where that comes from
	job     bool
}

// late says which limit ended a call.
func (t *term) late() error {
	if t.job {
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the job did not finish within %v", t.timeout), Hint: "limits.max_timeout in its manifest bounds it"}
	}
	return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool did not finish in time: limits.timeout is %v, limits.max_timeout %v", t.limits.Timeout, t.limits.MaxTimeout), Hint: "in its manifest"}
}

// begin starts the clock and returns the hard context. A child's clock ends
// with its parent's: its ctx is the parent's soft one.
func (c *deadline) begin(ctx context.Context, alarms *alarms, l *manifest.Limits, parent *run) context.Context {
	c.mu.Lock() // ctx may be done already, and abandon on its way
	defer c.mu.Unlock()
	now := time.Now()
	c.term = term{last: now.Add(max(l.MaxTimeout, l.Timeout)), timeout: l.Timeout, limits: l}
	if parent != nil && parent.clock.term.last.Before(c.term.last) {
		c.term.last = parent.clock.term.last
		c.term.timeout = min(l.Timeout, c.term.last.Sub(now))
	}
	c.wind(ctx, alarms, now)
	return &c.hard
}

// wind makes the contexts, and sets the alarm that ends them.
func (c *deadline) wind(ctx context.Context, alarms *alarms, now time.Time) {
	c.from, c.soft.of, c.hard.of = ctx, c, c
	c.alarms, c.next.of = alarms, c
	c.budget = c.term.timeout - c.grace()
	c.term.end = now.Add(c.term.timeout)
	alarms.set(&c.next, now.Add(c.budget))
}

// detached starts the clock of a job, which nothing restarts and nobody's but
// its own ends. Who asks the job to stop ends it by force as well.
func (c *deadline) detached(ctx context.Context, alarms *alarms, b *background) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.term = term{last: now.Add(b.timeout), timeout: b.timeout, job: true}
	c.wind(ctx, alarms, now)
	c.deaf = []func() bool{
		context.AfterFunc(b.soft, func() { c.ask(context.Cause(b.soft)) }),
		context.AfterFunc(b.hard, func() { c.endAll(context.Cause(b.hard)) }),
	}
	return &c.hard
}

// listen makes the end of the caller's context the call's, at once: somebody
// waits for it.
func (c *deadline) listen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf == nil && !c.stopped {
		c.deaf = []func() bool{context.AfterFunc(c.from, func() { c.abandon(context.Cause(c.from)) })}
	}
}

// look is listen for those who only ask now and then.
func (c *deadline) look() {
	if c.from.Err() == nil {
		return
	}
	c.mu.Lock()
	unheard := c.deaf == nil
	c.mu.Unlock()
	if unheard {
		c.abandon(context.Cause(c.from))
	}
}

// endAll stops the guest.
func (c *deadline) endAll(cause error) {
	c.hard.end(cause)
	c.soft.end(cause)
}

// ring ends what the time has come of.
func (c *deadline) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopped:
	case c.gone != nil:
		c.endAll(c.gone)
	case c.soft.why() != nil:
		c.endAll(c.term.late())
	default:
		c.soft.end(c.term.late())
		c.alarms.set(&c.next, c.term.end)
	}
}

// ask makes the guest finish, in its own time.
func (c *deadline) ask(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.soft.end(cause)
		c.alarms.set(&c.next, c.term.end)
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
	c.endAll(why)
}

// revocation returns why the call was ended, if it was by revoke.
func (c *deadline) revocation() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revoked
}

// out reports whether the call has used up its time.
func (c *deadline) out() bool {
	c.look()
	return sdk.KindOf(c.soft.why()) == sdk.Limit
}

func (c *deadline) grace() time.Duration { return min(grace, c.term.timeout/10) }

// extend restarts the clock.
func (c *deadline) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.soft.why() != nil {
		return
	}
	c.term.end = time.Now().Add(c.term.timeout)
	if c.term.end.After(c.term.last) {
		c.term.end = c.term.last
	}
	c.alarms.set(&c.next, c.term.end.Add(-c.grace()))
}

// abandon ends the call because its caller is gone or its parent is out of time.
func (c *deadline) abandon(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.gone != nil {
		return
	}
	if sdk.KindOf(cause) != sdk.Limit {
		cause = context.Canceled
	}
	c.gone = cause
	c.soft.end(cause)
	c.alarms.set(&c.next, time.Now().Add(c.grace())) // it may be ringing; then the guest is stopped a little early
}

func (c *deadline) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for _, deaf := range c.deaf {
		deaf()
	}
	c.alarms.drop(&c.next)
	c.endAll(context.Canceled)
}
