package dispatch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// maxWaiting is how many calls of one skill may wait for a slot.
const maxWaiting = 256

// A gate holds the calls of one skill to its concurrency and its rate.
type gate struct {
	slots   chan struct{}
	waiting atomic.Int32
	rate    *rate.Limiter
	news    *rate.Limiter // of what its tools announce
}

// gate returns the gate of a skill. A changed skill, having another digest,
// gets a new one.
func (d *Dispatcher) gate(s *manifest.Skill) *gate {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	g, ok := d.state.gates[s.Home.Digest]
	if !ok {
		g = &gate{slots: make(chan struct{}, max(1, s.Limits.Concurrency)), news: rate.NewLimiter(newsRate, newsBurst)}
		if r := s.Limits.Rate; r.Calls > 0 {
			g.rate = rate.NewLimiter(rate.Limit(float64(r.Calls)/r.Per.Seconds()), r.Calls)
		}
		if d.state.gates == nil {
			d.state.gates = map[string]*gate{}
		}
		d.state.gates[s.Home.Digest] = g
	}
	return g
}

// admit holds the skill s to its rate.
func (g *gate) admit(s *manifest.Skill) error {
	if g.rate != nil && !g.rate.Allow() {
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("skill %q is called more often than its manifest allows", s.Name), Hint: "limits.rate in " + s.Home.File}
	}
	return nil
}

// nestedWait is how long a call that a tool makes waits for a slot. Its caller
// holds one, and tools that invoke each other may wait for each other.
const nestedWait = 2 * time.Second

// enter waits for a slot of the call's skill, which is given back by receiving
// from it. A call that a tool of the same skill makes, however far above, takes
// its ancestor's, which can lend it to one at a time: waiting for another slot
// could be waiting for oneself.
func (d *Dispatcher) enter(ctx context.Context, r *run) (slot chan struct{}, err error) {
	s := r.plan.Entry.Skill
	g := d.gate(s)
	if err := g.admit(s); err != nil {
		return nil, err
	}
	slots := g.slots
	for a := r.parent; a != nil; a = a.parent {
		if a.plan.Entry.Skill.Home.Digest == s.Home.Digest {
			slots = a.lend()
			break
		}
		if a.job != nil { // those above it have given theirs back
			break
		}
	}
	select {
	case slots <- struct{}{}:
		return slots, nil
	default:
	}
	if g.waiting.Add(1) > maxWaiting {
		g.waiting.Add(-1)
		return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("%d calls of skill %q are waiting already", maxWaiting, s.Name), Hint: "limits.concurrency in " + s.Home.File}
	}
	defer g.waiting.Add(-1)
	var tooLong <-chan time.Time
	if r.parent != nil && slots == g.slots {
		t := time.NewTimer(nestedWait)
		defer t.Stop()
		tooLong = t.C
	}
	select {
	case slots <- struct{}{}:
		return slots, nil
	case <-tooLong:
		return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("all slots of skill %q are taken; tools that invoke each other may be waiting for each other", s.Name), Hint: "limits.concurrency in " + s.Home.File}
	case <-ctx.Done():
		cause := context.Cause(ctx)
		if sdk.KindOf(cause) == sdk.Limit {
			return nil, cause
		}
		return nil, &sdk.Error{Kind: sdk.Canceled, What: "call", Err: cause}
	}
}

// lend returns the slot that r, which holds one of its skill's, lends to one
// descendant of the same skill at a time.
func (r *run) lend() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nested == nil {
		r.nested = make(chan struct{}, 1)
	}
	return r.nested
}

// Forget lets go of what is remembered of a skill that is gone.
func (d *Dispatcher) Forget(digest string) {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	delete(d.state.gates, digest)
	for k := range d.state.bound {
		if k.entry.Skill.Home.Digest == digest {
			delete(d.state.bound, k)
		}
	}
}

// callIDs makes the ids of calls: the process's random part and a number.
type callIDs struct {
	once sync.Once
	boot string
	n    atomic.Uint64
}

func (c *callIDs) next() string {
	c.once.Do(func() {
		var b [6]byte
		rand.Read(b[:])
		c.boot = hex.EncodeToString(b[:]) + "-"
	})
	var id [40]byte
	return string(strconv.AppendUint(append(id[:0], c.boot...), c.n.Add(1), 10))
}
