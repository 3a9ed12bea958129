// Package dispatch is the corridor: it takes one call through resolve,
// authorise, validate, record, run, record. It is the only way to run a tool.
// It knows no protocol, no runtime and no file format.
package dispatch

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/ops"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/session"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/host/tasks/timer"
	"github.com/skillhost/skill/sdk"
)

// A Dispatcher takes calls through the corridor. All fields are set before the
// first call and not changed afterwards.
type Dispatcher struct {
	Catalog  *catalog.Catalog
	Policy   func() *policy.Policy // the current snapshot
	Shipped  *policy.Policy        // what built-ins are held to where Policy is silent about them
	File     string                // of the policy, for hints
	Session  func(sdk.Scope) (capability.Layer, error)
	Programs Programs
	Audit    audit.Log
	Ops      *ops.Table
	Tasks    *tasks.Tasks    // background jobs and output; nil keeps none
	Timers   *timer.Timers   // what comes back to a session later; nil keeps none
	Laid     *session.Layers // what skills lay over sessions; nil: no skill may
	Sealer   *Sealer
	Secrets  func(*policy.Policy, *manifest.Skill) egress.Secrets
	Hidden   func(*policy.Policy) capability.Layer          // what no tool may read: the sources of secrets; nil hides nothing
	Offers   func() string                                  // the level of confinement that this machine runs native skills at; nil: what is required of it
	Changed  func(*manifest.Skill, Change)                  // is told what a running tool announces; nil: announcing is refused
	Owner    func(*manifest.Skill) string                   // whose state a skill's is; nil means its name
	TmpRoot  func() (string, error)                         // where private temporary directories are made
	Realpath func(string) (string, error)                   // resolves links; fails if the path does not exist
	Home     string                                         // the user's home directory, or "": real, with slashes
	Account  string                                         // that of the user's account, likewise
	Env      func(name string) (value string, ok bool)      // the host's environment
	Settings func(*manifest.Skill) (json.RawMessage, error) // what the operator set for a skill, checked; nil: nothing

	state state
}

// Programs leases loaded skills. A Program stays usable until release.
type Programs interface {
	Lease(ctx context.Context, s *manifest.Skill) (p executor.Program, release func(), err error)

	// Fixed reports whether the guests of s are held to rules that are fixed
	// when a run starts, as native ones are.
	Fixed(s *manifest.Skill) bool
}

// state is what the Dispatcher remembers between calls.
type state struct {
	mu      sync.Mutex
	bound   map[boundKey]*bound // of boundTo
	boundTo *policy.Policy
	gates   map[string]*gate
	calls   callIDs
	alarms  alarms
	watched map[*run]struct{} // what Recheck looks at
}

// Call takes call through the corridor. emit is told of progress, partial
// content and logs before Call returns; it may be nil.
func (d *Dispatcher) Call(ctx context.Context, call sdk.Call, emit func(sdk.Event)) (sdk.Result, error) {
	return d.call(ctx, &call, nil, emit)
}

// call is Call with the run that invoked it, if another tool did.
func (d *Dispatcher) call(ctx context.Context, call *sdk.Call, parent *run, emit func(sdk.Event)) (sdk.Result, error) {
	r := run{d: d, id: d.state.calls.next(), parent: parent, emit: emit, began: time.Now()}
	plan, err := d.plan(call, parent, nil)
	r.plan = plan
	if err != nil {
		return sdk.Result{}, r.refuse(ctx, err)
	}
	slot, err := d.enter(ctx, &r)
	if err != nil {
		return sdk.Result{}, r.refuse(ctx, err)
	}
	defer func() { <-slot }()
	if err := r.replan(); err != nil { // it may have waited long
		return sdk.Result{}, r.refuse(ctx, err)
	}
	if err := r.start(ctx); err != nil {
		return sdk.Result{}, err
	}
	if err := d.Sealer.use(r.plan.answer); err != nil {
		return r.end(ctx, sdk.Result{}, err)
	}
	result, err := r.execute(ctx)
	r.endOutput(err)
	return r.end(ctx, result, err)
}

// A Plan is what a call would do. Nothing has been run.
type Plan struct {
	Call   *sdk.Call
	Entry  *catalog.Entry
	Via    *catalog.Entry  // the address tool that was called, or nil
	Args   json.RawMessage // for Entry
	Layers []capability.Layer
	Level  string // native runtimes: the least confinement
	policy *policy.Policy
	skill  string         // name@version
	laid   *session.Stack // what skills have laid over the session
	known  *sdk.Result    // that needs no run, or nil
	mime   string         // of the resource that is read
	answer answered
	set    json.RawMessage // what the operator set for the skill
}

// Plan decides call without running anything: the call's tool, its arguments'
// validity, and the layers of its grant. On an error the Plan holds what was
// found so far, for "skill explain".
func (d *Dispatcher) Plan(call sdk.Call) (Plan, error) { return d.plan(&call, nil, nil) }

// plan is Plan for a call that parent makes, if it is not nil. For a job, which
// runs the tool of its parent again, nothing is resolved or invoked.
func (d *Dispatcher) plan(call *sdk.Call, parent *run, job *background) (Plan, error) {
	p := Plan{Call: call, policy: d.Policy()}
	found, err := d.find(call, p.policy, parent, job)
	p.Entry, p.Via, p.Args, p.known, p.mime = found.Entry, found.Via, found.Args, found.Answer, found.MIME
	if err != nil {
		return p, err
	}
	b, err := d.bind(p.policy, p.Entry, p.Via, call.Scope)
	p.Layers, p.Level, p.skill = b.layers, b.level, b.skill
	if err != nil {
		return p, err
	}
	if err := p.lay(d); err != nil {
		return p, err
	}
	if err := p.narrow(d, parent); err != nil {
		return p, err
	}
	if p.known == nil && d.Settings != nil {
		if p.set, err = d.Settings(p.Entry.Skill); err != nil {
			return p, err
		}
	}
	// After the policy, so that who may not call a tool learns nothing of it.
	if err := found.Check(); err != nil {
		return p, err
	}
	return p, d.open(&p)
}

// find resolves call, which parent makes if it is not nil, again as the job.
func (d *Dispatcher) find(call *sdk.Call, p *policy.Policy, parent *run, job *background) (found catalog.Resolved, err error) {
	if job != nil {
		found.Entry, found.Args = parent.plan.Entry, call.Args
		err = d.offered(found.Entry)
	} else {
		v := catalog.Viewer{Skill: parent.skill(), May: func(e *catalog.Entry) bool { return p.Authorize(request(e, call.Scope)).Allowed }}
		found, err = d.Catalog.Resolve(call, v)
		if err == nil {
			err = parent.mayInvoke(found.Entry, call.Tool)
		}
	}
	if len(found.Args) == 0 {
		found.Args = json.RawMessage("{}")
	}
	return found, err
}

// Names reports whether call names something that its caller may call.
func (d *Dispatcher) Names(call *sdk.Call) bool {
	found, err := d.find(call, d.Policy(), nil, nil)
	return err == nil && d.Visible(found.Entry, call.Scope) && (found.Via == nil || d.Visible(found.Via, call.Scope))
}

// Visible reports whether entry may be listed for scope: whether the operator
// lets this caller call it at all.
func (d *Dispatcher) Visible(e *catalog.Entry, scope sdk.Scope) bool {
	return d.Policy().Authorize(request(e, scope)).Allowed
}

// VisibleSkill reports whether the operator lets the caller of scope call any
// of the skill's tools, or read any of its resources and prompts.
func (d *Dispatcher) VisibleSkill(s *manifest.Skill, scope sdk.Scope) bool {
	return slices.ContainsFunc(d.Catalog.Of(s.Name), func(e *catalog.Entry) bool { return d.Visible(e, scope) }) ||
		slices.ContainsFunc(d.Catalog.OffersOf(s.Name), func(o *catalog.Offer) bool { return d.Visible(o.Entry, scope) })
}

// Layers returns what stands between a call of e and the machine, without any
// arguments.
func (d *Dispatcher) Layers(e *catalog.Entry, scope sdk.Scope) ([]capability.Layer, error) {
	b, err := d.bind(d.Policy(), e, nil, scope)
	if err != nil {
		return b.layers, err
	}
	p := Plan{Call: &sdk.Call{Scope: scope}, Entry: e, Layers: b.layers}
	err = p.lay(d)
	return p.Layers, err
}

func request(e *catalog.Entry, scope sdk.Scope) policy.Request {
	s := e.Skill
	return policy.Request{Caller: scope.Caller, Rights: scope.Rights, Skill: s.Name, Digest: s.Home.Digest, Builtin: s.Home.Builtin, Tool: e.Tool.Name, Needs: s.Needs}
}
