package dispatch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

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
}

// gate returns the gate of a skill. A changed skill, having another digest,
// gets a new one.
func (d *Dispatcher) gate(s *manifest.Skill) *gate {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	g, ok := d.state.gates[s.Home.Digest]
	if !ok {
		g = &gate{slots: make(chan struct{}, max(1, s.Limits.Concurrency))}
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

// enter waits for a slot of the call's skill. A call that a tool of the same
// skill makes takes none: its ancestor holds one until it is done, and waiting
// for it would be waiting for oneself.
func (d *Dispatcher) enter(ctx context.Context, r *run) (leave func(), err error) {
	s := r.plan.Entry.Skill
	g := d.gate(s)
	if g.rate != nil && !g.rate.Allow() {
		return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("skill %q is called more often than its manifest allows", s.Name), Hint: "limits.rate in " + s.Home.File}
	}
	for a := r.parent; a != nil; a = a.parent {
		if a.plan.Entry.Skill.Home.Digest == s.Home.Digest {
			return func() {}, nil
		}
	}
	select {
	case g.slots <- struct{}{}:
		return g.leave, nil
	default:
	}
	if g.waiting.Add(1) > maxWaiting {
		g.waiting.Add(-1)
		return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("%d calls of skill %q are waiting already", maxWaiting, s.Name), Hint: "limits.concurrency in " + s.Home.File}
	}
	defer g.waiting.Add(-1)
	select {
	case g.slots <- struct{}{}:
		return g.leave, nil
	case <-ctx.Done():
		return nil, &sdk.Error{Kind: sdk.Canceled, What: "call", Err: context.Cause(ctx)}
	}
}

func (g *gate) leave() { <-g.slots }

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
	return c.boot + strconv.FormatUint(c.n.Add(1), 10)
}
