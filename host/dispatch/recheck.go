package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

// Recheck ends what runs under rules that the operator has taken back and that
// it does not ask about by itself: a native call, which is held to the files,
// programs and environment that it started with, once those have changed or its
// tool is no longer allowed, and a job whose tool is no longer allowed. The host
// calls it when the policy has changed.
func (d *Dispatcher) Recheck() {
	d.state.mu.Lock()
	running := slices.Collect(maps.Keys(d.state.watched))
	d.state.mu.Unlock()
	for _, r := range running {
		r.recheck()
	}
}

// watch makes Recheck look at r until unwatch, if there is need to. The plan of
// r does not change any more; that it still holds is looked at once more.
func (r *run) watch() (unwatch func()) {
	if r.job == nil && !r.d.Programs.Fixed(r.plan.Entry.Skill) {
		return func() {}
	}
	s := &r.d.state
	s.mu.Lock()
	if s.watched == nil {
		s.watched = map[*run]struct{}{}
	}
	s.watched[r] = struct{}{}
	s.mu.Unlock()
	r.recheck()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watched, r)
	}
}

func (r *run) recheck() {
	if err := r.covered(); err != nil {
		r.clock.revoke(err)
	}
}

// covered says why today's policy no longer covers r. What a tool that invoked
// r, or started it, is denied, r is denied as well.
func (r *run) covered() error {
	today, fixed := r.d.Policy(), r.d.Programs.Fixed(r.plan.Entry.Skill)
	for a := r; a != nil; a = a.parent {
		if err := a.unchanged(today, fixed); err != nil {
			return err
		}
	}
	if old := r.plan.Level; fixed && today != r.plan.policy {
		d := today.Authorize(request(r.plan.Entry, r.plan.Call.Scope))
		if now := r.d.level(r.plan.Entry, d); slices.Index(levels, now) > slices.Index(levels, old) {
			return changed(d.SandboxPos, fmt.Sprintf("a level of %q is not enough any more, it has to be %q", old, now))
		}
	}
	return nil
}

// levels are the levels of confinement, from the least.
var levels = []string{"none", "landlock", "strict"}

// unchanged is covered for one of the runs that r is held to.
func (r *run) unchanged(today *policy.Policy, fixed bool) error {
	if today == r.plan.policy {
		return nil
	}
	e, scope := r.plan.Entry, r.plan.Call.Scope
	if via := r.plan.Via; via != nil {
		if err := today.Authorize(request(via, scope)).Err(); err != nil {
			return err
		}
	}
	now := today.Authorize(request(e, scope))
	if err := now.Err(); err != nil {
		return err
	}
	if !fixed {
		return nil
	}
	rules := func(p *policy.Policy, d policy.Decision) []capability.Layer {
		all := r.d.operator(e, scope, d)
		if r.d.Hidden != nil {
			all = append(all, r.d.Hidden(p))
		}
		return all
	}
	was := r.plan.policy.Authorize(request(e, scope))
	return differ(rules(r.plan.policy, was), rules(today, now))
}

// differ returns an error that names a line, unless both lists come to the same
// rules for files, programs and the environment.
func differ(was, now []capability.Layer) error {
	old, entries := map[string]capability.Pos{}, map[string]bool{}
	for i := range was {
		text, parts := fixedRules(&was[i])
		old[text] = was[i].Pos
		for part := range parts {
			entries[part] = true
		}
	}
	delete(old, "")
	left := maps.Clone(old)
	for i := range now {
		text, parts := fixedRules(&now[i])
		delete(left, text)
		if _, ok := old[text]; ok || text == "" {
			continue
		}
		at := now[i].Pos
		for _, part := range slices.Sorted(maps.Keys(parts)) {
			if pos := parts[part]; !entries[part] && pos.File != "" {
				at = pos
				break
			}
		}
		return changed(at, "the rules are other ones now")
	}
	for _, text := range slices.Sorted(maps.Keys(left)) {
		return changed(left[text], "the rules that were there are gone")
	}
	return nil
}

// fixedRules writes out what l says of topics that a native call cannot be held
// to anew, "" if nothing, and where each part of it is written.
func fixedRules(l *capability.Layer) (text string, parts map[string]capability.Pos) {
	parts = map[string]capability.Pos{}
	for _, t := range l.Speaks {
		if isFixed(t.Kind) {
			parts["speaks "+string(t.Kind)+" "+string(t.Verb)] = capability.Pos{}
		}
	}
	for list, set := range map[string]capability.Set{"allow": l.Allow, "deny": l.Deny} {
		for _, c := range set {
			if isFixed(c.Kind) {
				parts[list+" "+string(c.Kind)+" "+string(c.Verb)+" "+c.Entry()] = c.Pos
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(parts)), "\n"), parts
}

func isFixed(k capability.Kind) bool {
	return k == capability.Filesystem || k == capability.Exec || k == capability.Env
}

// changed is the error of a call that the operator's change at pos ends.
func changed(pos capability.Pos, how string) error {
	hint := how
	if pos.File != "" {
		hint = pos.String() + ": " + how
	}
	return &sdk.Error{Kind: sdk.Denied, What: "the operator has changed the rules that this call ran under", Hint: hint + "; a native tool keeps those it was started with, so it was ended: call it again",
		Denial: &sdk.Denial{Capability: "call", Layer: "operator", File: pos.File, Line: pos.Line}}
}
