package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// maxTargets bounds how many targets of one topic, allowed or denied, a call
// has recorded one by one; further ones are recorded as a count. Each topic has
// its own, so that touching many files cannot hide a connection or a denial.
const maxTargets = 1000

// maxDenials is how many denials of a call are told to its caller.
const maxDenials = 3

// touched is what a call has tried to touch.
type touched struct {
	mu      sync.Mutex
	rows    map[row]*tally
	denials []*sdk.Error // the first few
}

// A row is what is recorded once. The row of targets beyond maxTargets has none.
type row struct {
	topic  capability.Topic
	target string
	denied bool
}

// A tally counts a row's touches, or the rows of a topic.
type tally struct{ touches, targets int }

// count returns the row that a touch belongs to, and whether it is to be
// recorded now.
func (t *touched) count(a capability.Access, denied bool) (r row, now bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[row]*tally{}
	}
	r = row{capability.Topic{Kind: a.Kind, Verb: a.Verb}, a.Target, denied}
	if n := t.rows[r]; n != nil {
		n.touches++
		return r, false
	}
	rest := row{topic: r.topic, denied: denied}
	all := t.rows[rest]
	if all == nil {
		all = new(tally)
		t.rows[rest] = all
	}
	if all.targets == maxTargets {
		all.touches++
		return rest, false
	}
	all.targets++
	t.rows[r] = &tally{touches: 1}
	return r, true
}

// see records a. The first touch of a target is written at once, so that it
// is there if the host dies; repetitions are counted and written at the end.
func (r *run) see(a capability.Access, err error) {
	row, now := r.count(a, err != nil)
	if !now {
		return
	}
	e := r.accessEvent(row)
	if err != nil {
		describe(&e, err)
		r.remember(err)
		r.refusedByLaid(err)
	}
	// An access that cannot be recorded still has its call's start on record,
	// and the failure latches: the next call is refused.
	_ = r.d.Audit.Append(context.Background(), e)
}

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
// another way is no use, only the host knows. A tool that invoked this one is a
// guest too: the operator's rules are none of its business.
func (r *run) explainDenials(result sdk.Result, err error) (sdk.Result, error) {
	r.mu.Lock()
	denials := r.denials
	r.mu.Unlock()
	if len(denials) == 0 {
		return result, err
	}
	if r.job != nil { // whoever reads its row is a guest; the audit log has them
		return result, err
	}
	if r.parent != nil {
		for _, d := range denials {
			r.parent.remember(d)
		}
		return result, err
	}
	var text strings.Builder
	var last *sdk.Error
	for _, d := range denials {
		if !errors.As(err, &last) || last != d { // it says so itself
			fmt.Fprintf(&text, "denied: %s%s\n", d.Error(), r.command(d))
		}
	}
	told := strings.TrimSpace(text.String())
	switch {
	case told == "":
	case err == nil && result.Failed:
		result.Content = append(result.Content, sdk.Content{Type: sdk.TypeText, Text: told})
	case sdk.KindOf(err) == sdk.Guest || sdk.KindOf(err) == sdk.Denied: // why it failed, it knows best; this may be why
		return result, &sdk.Error{Kind: sdk.KindOf(err), What: err.Error() + "\n" + told, Denial: denials[0].Denial}
	}
	return result, err
}

// command returns how the operator would allow by a command what they have not
// allowed, for those who do not edit files.
func (r *run) command(d *sdk.Error) string {
	name := r.plan.Entry.Skill.Name
	if d.Denial == nil || d.Denial.Entry == "" || d.Denial.Capability != string(capability.Network)+"."+string(capability.Connect) ||
		!strings.Contains(d.Hint, "[skills."+capability.QuoteKey(name)+".capabilities]") {
		return "" // it is not this list that refuses
	}
	return fmt.Sprintf("; or run: skill allow %s --network '%s'", name, d.Denial.Entry)
}

func (r *run) accessEvent(x row) audit.Event {
	e := audit.Event{Type: audit.TypeAccess, Call: r.id, Caller: r.plan.Call.Scope.Caller, Skill: r.plan.Entry.Skill.Name, Tool: r.plan.Entry.Name,
		Decision: "allow", Access: string(x.topic.Kind) + "." + string(x.topic.Verb), Target: x.target}
	if x.denied {
		e.Decision = "deny"
	}
	return e
}

// flush writes the counts of what was touched more than once, and of the
// targets beyond maxTargets.
func (r *run) flush(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x, n := range r.rows {
		e := r.accessEvent(x)
		switch {
		case x.target == "" && n.touches > 0:
			e.Target = fmt.Sprintf("(beyond the first %d targets)", maxTargets)
		case x.target == "" || n.touches < 2:
			continue
		}
		e.Count = n.touches
		_ = r.d.Audit.Append(context.WithoutCancel(ctx), e)
	}
}

// live asks today's policy about a, if it is no longer the one that the call
// began under: what the operator revokes is revoked for running calls too, and
// for those that a revoked tool has invoked.
func (r *run) live(a capability.Access) error {
	if today := r.d.Policy(); today != r.plan.policy {
		b, err := r.d.bind(today, r.plan.Entry, r.plan.Via, r.plan.Call.Scope)
		if err != nil {
			return err
		}
		if err := capability.NewGrant(b.layers, nil).Check(a); err != nil {
			return err
		}
	}
	if r.parent != nil {
		return r.parent.live(a)
	}
	return nil
}

// alive reports whether the operator still lets the call's tool run.
func (r *run) alive() error {
	if today := r.d.Policy(); today != r.plan.policy {
		if err := today.Authorize(request(r.plan.Entry, r.plan.Call.Scope)).Err(); err != nil {
			return err
		}
	}
	if r.parent != nil {
		return r.parent.alive()
	}
	return nil
}
