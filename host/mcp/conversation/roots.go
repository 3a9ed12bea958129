package conversation

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/sdk"
)

const (
	rootsPatience = 5 * time.Second // for the client's answer
	maxRoots      = 256
)

// roots are the places that a legacy client confines its server to. They are
// asked for when a call first needs them, and again when they have changed.
type roots struct {
	mu     sync.Mutex
	asking chan struct{} // closed when they are known; nil while nobody has asked
	known  []string      // URIs; nil if the client says nothing
	turn   int           // counts what was forgotten
}

// tellRoots notes in p whether the client has roots, which the SDK's own type
// does not decode.
func tellRoots(params raw, p *gosdk.InitializeParams) {
	var can struct {
		Capabilities struct {
			Roots *struct{} `json:"roots"`
		} `json:"capabilities"`
	}
	if p.Capabilities != nil && json.Unmarshal(params, &can) == nil && can.Capabilities.Roots != nil {
		p.Capabilities.RootsV2 = &gosdk.RootCapabilities{}
	}
}

// of returns the roots for a call, or nil if the client says nothing. It fails
// if the call was cancelled before they were known.
func (r *roots) of(c *call) (known []string, ok bool) {
	if c.era.Modern || !c.peer.Client.Roots {
		return nil, true
	}
	for {
		r.mu.Lock()
		mine, known, turn := r.asking, r.known, r.turn
		first := mine == nil
		if first {
			mine = make(chan struct{})
			r.asking = mine
		}
		r.mu.Unlock()
		switch {
		case first:
			c.outside(func() { known = r.learn(c, mine, turn) })
			return known, c.ctx.Err() == nil
		case isClosed(mine):
			return known, c.ctx.Err() == nil
		default:
			c.outside(func() {
				select {
				case <-mine:
				case <-c.ctx.Done():
				}
			})
		}
		if c.ctx.Err() != nil {
			return nil, false
		}
	}
}

// learn asks the client, and wakes those who wait. What a cancelled call did not
// hear, and what has changed meanwhile, the next one asks anew.
func (r *roots) learn(c *call, asking chan struct{}, turn int) (known []string) {
	known = c.askRoots()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.turn != turn:
	case c.ctx.Err() != nil:
		r.asking = nil
	default:
		r.known = known
	}
	close(asking)
	return known
}

// outside runs f, which waits for the client, without the slot of the call.
func (c *call) outside(f func()) {
	c.lane.Leave()
	f()
	c.lane.Reenter(c.ctx) // if not, the call was cancelled
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// forget makes the next call ask anew.
func (r *roots) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	r.asking, r.known = nil, nil
}

// askRoots asks the client. One that does not answer says nothing: its roots
// narrow what the operator allows, which holds without them.
func (c *call) askRoots() []string {
	ctx, cancel := context.WithTimeout(c.ctx, rootsPatience)
	defer cancel()
	answers, err := c.asks.ask(ctx, c.out, map[string]sdk.Question{"roots": {Kind: sdk.QuestionRoots}})
	if err != nil {
		c.room.o.Logger.Warn("the client does not tell its roots", "err", err)
		return nil
	}
	var list struct {
		Roots []struct {
			URI string `json:"uri"`
		} `json:"roots"`
	}
	if a := answers["roots"]; a.Action != "accept" || json.Unmarshal(a.Content, &list) != nil {
		c.room.o.Logger.Warn("the client does not tell its roots", "action", a.Action, "roots", len(list.Roots))
		return nil
	}
	if len(list.Roots) == 0 { // libraries say so for clients that never thought of roots
		return nil
	}
	out := []string{}
	for _, r := range list.Roots {
		if len(out) < maxRoots && len(r.URI) <= maxURI { // with fewer, less is allowed
			out = append(out, r.URI)
		}
	}
	if len(out) < len(list.Roots) {
		c.room.o.Logger.Warn("the client tells too many roots, or too long ones", "roots", len(list.Roots), "kept", len(out))
	}
	return out
}
