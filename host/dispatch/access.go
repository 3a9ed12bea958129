package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// maxAccesses bounds how many different targets of one call are recorded one
// by one. A guest that touches more is recorded as a count.
const maxAccesses = 1000

// An access is a target that a call has touched, and how often.
type access struct {
	what   capability.Access
	denied bool
	count  int
}

// see records a. The first touch of a target is written at once, so that it
// is there if the host dies; repetitions are counted and written at the end.
func (r *run) see(a capability.Access, err error) {
	a.Net = nil // belongs to the caller
	r.mu.Lock()
	for i := range r.accesses {
		if x := &r.accesses[i]; x.what == a && x.denied == (err != nil) {
			x.count++
			r.mu.Unlock()
			return
		}
	}
	if len(r.accesses) >= maxAccesses {
		if len(r.accesses) == maxAccesses {
			r.accesses = append(r.accesses, access{what: capability.Access{Kind: a.Kind, Verb: a.Verb, Target: "(more targets)"}})
		}
		r.accesses[maxAccesses].count++
		r.mu.Unlock()
		return
	}
	r.accesses = append(r.accesses, access{a, err != nil, 1})
	r.mu.Unlock()
	e := r.accessEvent(a, err != nil)
	if err != nil {
		describe(&e, err)
		r.remember(err)
	}
	// An access that cannot be recorded still has its call's start on record,
	// and the failure latches: the next call is refused.
	_ = r.d.Audit.Append(context.Background(), e)
}

// maxDenials is how many denials of a call are told to its caller.
const maxDenials = 3

func (r *run) remember(err error) {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.denials) < maxDenials {
		r.denials = append(r.denials, e)
	}
}

// explainDenials adds to the failure of a tool what it was denied. A guest sees
// an error number at most; what the operator can do about it, and that trying
// another way is no use, only the host knows.
func (r *run) explainDenials(result sdk.Result, err error) (sdk.Result, error) {
	r.mu.Lock()
	denials := r.denials
	r.mu.Unlock()
	if len(denials) == 0 {
		return result, err
	}
	var text strings.Builder
	for _, d := range denials {
		fmt.Fprintf(&text, "denied: %s\n", d.Error())
	}
	switch {
	case err == nil && result.Failed:
		result.Content = append(result.Content, sdk.Content{Type: sdk.TypeText, Text: strings.TrimSpace(text.String())})
	case err != nil && sdk.KindOf(err) == sdk.Guest:
		return result, &sdk.Error{Kind: sdk.Denied, What: strings.TrimSpace(text.String()), Err: err, Denial: denials[0].Denial}
	}
	return result, err
}

func (r *run) accessEvent(a capability.Access, denied bool) audit.Event {
	e := audit.Event{Type: audit.TypeAccess, Call: r.id, Skill: r.plan.Entry.Skill.Name, Tool: r.plan.Entry.Name, Decision: "allow",
		Access: string(a.Kind) + "." + string(a.Verb), Target: a.Target}
	if denied {
		e.Decision = "deny"
	}
	return e
}

// flush writes the counts of the targets that were touched more than once.
func (r *run) flush(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.accesses {
		x := &r.accesses[i]
		if x.count < 2 && i < maxAccesses {
			continue
		}
		e := r.accessEvent(x.what, x.denied)
		e.Count = x.count
		_ = r.d.Audit.Append(context.WithoutCancel(ctx), e)
	}
}

// live asks today's policy about a, if it is no longer the one that the call
// began under: what the operator revokes is revoked for running calls too.
func (r *run) live(a capability.Access) error {
	today := r.d.Policy()
	if today == r.plan.policy {
		return nil
	}
	b, err := r.d.bind(today, r.plan.Entry, r.plan.Via, r.plan.Call.Scope)
	if err != nil {
		return err
	}
	return capability.NewGrant(b.layers, nil).Check(a)
}
