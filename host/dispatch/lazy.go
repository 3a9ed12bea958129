package dispatch

import (
	"context"
	"sync"
	"time"
)

// A lazy is one of the two contexts of a call. Most calls are over before
// anybody asks theirs for more than Err, so that what costs, a channel, a place
// for children and to hear of the caller's end, is made when it is asked for. It
// is the standard library's own, so that contexts derived from it are what they
// always are.
type lazy struct {
	of *deadline

	mu     sync.Mutex
	made   context.Context // nil until somebody needs it
	cancel context.CancelCauseFunc
	cause  error // nil until it has ended
}

// end ends it for that reason, unless it has ended already.
func (c *lazy) end(cause error) {
	c.mu.Lock()
	cancel := c.cancel
	if c.cause != nil {
		cancel = nil
	} else {
		c.cause = cause
	}
	c.mu.Unlock()
	if cancel != nil { // it calls others, who may look here
		cancel(cause)
	}
}

// why returns the reason that it was ended for, or nil.
func (c *lazy) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// make returns the standard library's part of it.
func (c *lazy) make() context.Context {
	c.mu.Lock()
	made := c.made
	if made == nil {
		c.made, c.cancel = context.WithCancelCause(context.WithoutCancel(c.of.from))
		if made = c.made; c.cause != nil {
			c.cancel(c.cause)
		}
	}
	c.mu.Unlock()
	c.of.listen()
	return made
}

// Deadline says that there is none that others could go by: it moves.
func (c *lazy) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is the standard library's.
func (c *lazy) Done() <-chan struct{} { return c.make().Done() }

// Err is context.Canceled once it has ended; context.Cause has the reason.
func (c *lazy) Err() error {
	c.of.look()
	if c.why() != nil {
		return context.Canceled
	}
	return nil
}

// Value is the standard library's, which finds its own parts this way.
func (c *lazy) Value(key any) any { return c.make().Value(key) }
