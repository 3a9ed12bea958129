package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/session"
	"github.com/skillhost/skill/sdk"
)

// maxDepth is how deep tools may invoke tools. Landlock, which native runtimes
// stack one rule set per layer in, allows 16.
const maxDepth = 4

// maxBound bounds the table of bound layers; past it the table starts afresh.
const maxBound = 4096

// boundKey names everything that the layers of a call depend on, so that
// layers are resolved against the file system once and not at every call.
type boundKey struct {
	policy    *policy.Policy
	entry     *catalog.Entry
	via       *catalog.Entry
	caller    string
	rights    string
	workspace string
}

// bound is the outcome of authorising and binding, good or bad.
type bound struct {
	layers  []capability.Layer
	skill   string // name@version
	level   string // native runtimes: the least confinement
	mayGrow bool   // a path that was allowed with "?" may come to exist
}

// bind authorises and returns the manifest's, the operator's and the session's
// layers with their paths resolved.
func (d *Dispatcher) bind(p *policy.Policy, e, via *catalog.Entry, scope sdk.Scope) (*bound, error) {
	k := boundKey{p, e, via, scope.Caller, scope.Rights, scope.Workspace}
	d.state.mu.Lock()
	b, ok := d.state.bound[k]
	d.state.mu.Unlock()
	if ok {
		return b, nil
	}
	b, err := d.layers(p, e, via, scope)
	if err != nil { // not remembered: a missing path may appear
		return b, err
	}
	if b.mayGrow {
		return b, nil
	}
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	if d.state.boundTo != p || len(d.state.bound) >= maxBound { // an old policy's are of no use
		d.state.bound, d.state.boundTo = map[boundKey]*bound{}, p
	}
	d.state.bound[k] = b
	return b, nil
}

func (d *Dispatcher) layers(p *policy.Policy, e, via *catalog.Entry, scope sdk.Scope) (*bound, error) {
	b := &bound{skill: e.Skill.Name + "@" + e.Skill.Version}
	if via != nil {
		if err := p.Authorize(request(via, scope)).Err(); err != nil {
			return b, err
		}
	}
	decision := p.Authorize(request(e, scope))
	if err := decision.Err(); err != nil {
		return b, err
	}
	b.level = d.level(e, decision)
	all := []capability.Layer{e.Skill.Needs}
	for _, l := range e.Narrow() {
		all = append(all, *l)
	}
	all = append(all, d.operator(e, scope, decision)...)
	session, err := d.Session(scope)
	if err != nil {
		return b, err
	}
	all = append(all, session)
	if d.Hidden != nil {
		if l := d.Hidden(p); len(l.Deny) > 0 {
			all = append(all, l)
		}
	}
	vars := d.vars(e, scope)
	for _, l := range all {
		b.mayGrow = b.mayGrow || l.MayGrow()
		if l, err = l.Bind(vars, d.Realpath); err != nil {
			return b, err
		}
		b.layers = append(b.layers, l)
	}
	return b, nil
}

// operator returns the operator's layers as they are written: what is shipped
// for built-ins where decision is silent, and decision's own.
func (d *Dispatcher) operator(e *catalog.Entry, scope sdk.Scope, decision policy.Decision) []capability.Layer {
	var all []capability.Layer
	if e.Skill.Home.Builtin {
		for _, l := range d.Shipped.Layers(request(e, scope)) { // it names no callers, and holds for all
			all = append(all, d.unlessSaid(l, decision.Layers, e.Skill.Name))
		}
	}
	return append(all, decision.Layers...)
}

// level returns the least confinement that a native tool runs under: what the
// operator says, else what its manifest does, which cannot do without. It is ""
// for other runtimes.
func (d *Dispatcher) level(e *catalog.Entry, decision policy.Decision) string {
	if !d.Programs.Fixed(e.Skill) {
		return ""
	}
	if decision.Sandbox == "" && e.Skill.Sandbox.Require == "none" {
		return "landlock"
	}
	return cmp.Or(decision.Sandbox, e.Skill.Sandbox.Require)
}

// unlessSaid returns the shipped layer without the topics that the operator
// has written a list about for this very skill.
func (d *Dispatcher) unlessSaid(shipped capability.Layer, operator []capability.Layer, skill string) capability.Layer {
	shipped.Name = "operator"
	shipped.Table = fmt.Sprintf("[skills.%s.capabilities] of %s", skill, d.File)
	shipped.Speaks = slices.DeleteFunc(slices.Clone(shipped.Speaks), func(t capability.Topic) bool {
		return slices.ContainsFunc(operator, func(l capability.Layer) bool {
			return strings.HasPrefix(l.Table, "[skills.") && slices.Contains(l.Speaks, t)
		})
	})
	return shipped
}

// vars are the directories that entries of e's layers may name.
func (d *Dispatcher) vars(e *catalog.Entry, scope sdk.Scope) capability.Vars {
	return capability.Vars{Workspace: scope.Workspace, SkillDir: skillDir(e), Home: d.Home, Account: d.Account}
}

// narrow adds the call's own layer, its client's roots and those of the tools that invoked it: a
// tool passes on no more than it has.
func (p *Plan) narrow(d *Dispatcher, parent *run) error {
	if len(p.Call.Narrow) > 0 {
		l, err := session.Narrowing(p.Call.Narrow)
		if err != nil {
			return err
		}
		l, err = l.Bind(d.vars(p.Entry, p.Call.Scope), d.Realpath)
		if err != nil {
			return err
		}
		p.Layers = append(slices.Clip(p.Layers), l)
	}
	if p.Call.Roots != nil {
		p.Layers = append(slices.Clip(p.Layers), rootsLayer(p.Call.Roots, d.Realpath))
	}
	for a, depth := parent, 1; a != nil; a, depth = a.parent, depth+1 {
		if depth >= maxDepth {
			return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("tools may invoke tools %d deep", maxDepth)}
		}
		for _, l := range a.plan.Layers {
			if !slices.ContainsFunc(p.Layers, func(have capability.Layer) bool { return same(have, l) }) {
				p.Layers = append(slices.Clip(p.Layers), l)
			}
		}
	}
	return nil
}

// same reports whether two layers are one and the same list. Lists are never
// changed after they were made, so it is enough to compare where they are.
func same(a, b capability.Layer) bool {
	return a.Name == b.Name && a.Closed == b.Closed && sameSet(a.Allow, b.Allow) && sameSet(a.Deny, b.Deny) && slices.Equal(a.Speaks, b.Speaks)
}

func sameSet(a, b capability.Set) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
