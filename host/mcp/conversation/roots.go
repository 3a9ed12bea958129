package conversation

import (
	"context"
	"encoding/json"
	"sync"
	"time"

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

// of returns the roots for a call, or nil if the client says nothing.
func (r *roots) of(c *call) []string {
	if c.era.Modern || !c.peer.Client.Roots {
		return nil
	}
	r.mu.Lock()
	asking, turn := r.asking, r.turn
	if asking == nil {
		r.asking = make(chan struct{})
	}
	mine := r.asking
	r.mu.Unlock()
	if asking == nil {
		known := c.askRoots()
		r.mu.Lock()
		if r.turn == turn {
			r.known = known
		}
		r.mu.Unlock()
		close(mine)
		return known
	}
	select {
	case <-asking:
	case <-c.ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
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
	if a := answers["roots"]; a.Action != "accept" || json.Unmarshal(a.Content, &list) != nil || len(list.Roots) > maxRoots {
		c.room.o.Logger.Warn("the client does not tell its roots", "action", a.Action, "roots", len(list.Roots))
		return nil
	}
	out := []string{}
	for _, r := range list.Roots {
		out = append(out, r.URI)
	}
	return out
}
