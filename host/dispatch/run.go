package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// A run is one call on its way through the corridor.
type run struct {
	d      *Dispatcher
	id     string
	parent *run
	plan   Plan
	emit   func(sdk.Event)
	began  time.Time
	clock  deadline
	grant  capability.Grant // of the job that runs
	nested chan struct{}    // of lend
	job    *background      // of a run that is a job
	asked  asked
	late   bool // the guest was out of time when it ended
	touched
	tmp private
}

// private is the call's own temporary directory.
type private struct {
	mu  sync.Mutex
	dir string
}

// event returns an audit event of type t with everything known of the call.
func (r *run) event(t audit.Type) audit.Event {
	c := r.plan.Call
	e := audit.Event{Type: t, Call: r.id, Trace: c.Trace, Caller: c.Scope.Caller, Client: c.Client.Name, Session: c.Scope.Session, Tool: c.Tool}
	if c.Kind != sdk.CallTool { // Tool is who serves it
		e.Note = string(c.Kind) + " " + c.Tool
	}
	if r.parent != nil {
		e.Parent = r.parent.id
	}
	if x := r.plan.Entry; x != nil {
		e.Skill, e.Digest, e.Runtime, e.Tool = r.plan.skill, x.Skill.Home.Digest, x.Skill.Runtime, x.Name
		if e.Skill == "" { // refused before it was bound
			e.Skill = x.Skill.Name + "@" + x.Skill.Version
		}
	}
	return e
}

// refuse records that the call did not run, and returns why. The reason goes
// to the caller even if it cannot be recorded: nothing has happened.
func (r *run) refuse(ctx context.Context, why error) error {
	e := r.event(audit.TypeRefuse)
	e.Decision, e.Params = "deny", r.plan.Call.Args
	describe(&e, why)
	if err := r.d.Audit.Append(ctx, e); err != nil {
		return errors.Join(why, fmt.Errorf("and the refusal could not be recorded: %w", err))
	}
	return why
}

// start records that the call is about to run. Without the record it does not.
func (r *run) start(ctx context.Context) error {
	e := r.event(audit.TypeStart)
	e.Decision, e.Params, e.Level = "allow", r.plan.Args, r.plan.Entry.Skill.Runtime
	if level := r.confined(); level != "" {
		e.Level += "/" + level
	}
	for _, note := range []string{r.job.note(), r.plan.heard()} {
		if note != "" {
			e.Note = strings.TrimPrefix(e.Note+", "+note, ", ")
		}
	}
	if err := r.d.Audit.Append(ctx, e); err != nil {
		return &sdk.Error{Kind: sdk.Unavailable, What: "the call was refused because it cannot be recorded", Err: err, Hint: "see skill doctor"}
	}
	return nil
}

// confined is the level that the call is run at, if that is enough, or "".
func (r *run) confined() string {
	if r.plan.Level == "" || r.d.Offers == nil {
		return r.plan.Level
	}
	return r.d.Offers()
}

// end records how the call ended and returns what the caller is told.
func (r *run) end(ctx context.Context, result sdk.Result, err error) (sdk.Result, error) {
	r.flush(ctx)
	result, err = r.explainDenials(result, err)
	e := r.event(audit.TypeEnd)
	e.Duration = time.Since(r.began)
	for i := range result.Content {
		e.Bytes += int64(len(result.Content[i].Text) + len(result.Content[i].Data))
	}
	e.Bytes += int64(len(result.Structured))
	switch {
	case err != nil:
		describe(&e, err)
	case result.Failed:
		e.Kind = sdk.Guest
	case len(result.Questions) > 0:
		e.Note = strings.TrimPrefix(e.Note+", asks the user", ", ")
	}
	if lost := r.d.Audit.Append(context.WithoutCancel(ctx), e); lost != nil {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Unavailable, What: "the call ran, but its end could not be recorded; it may have had its effect", Err: lost}
	}
	if err != nil {
		return result, err
	}
	return r.answerAddress(result) // after the record, which is the same for every way to the tool
}

// describe puts err into e.
func describe(e *audit.Event, err error) {
	e.Kind, e.Error = sdk.KindOf(err), err.Error()
	var se *sdk.Error
	if errors.As(err, &se) {
		e.Denied = se.Denial
	}
}

// execute leases the program and runs it under the call's deadline and grant.
func (r *run) execute(ctx context.Context) (result sdk.Result, err error) {
	if r.plan.known != nil {
		return *r.plan.known, nil
	}
	skill := r.plan.Entry.Skill
	program, release, err := r.d.Programs.Lease(ctx, skill)
	if err != nil {
		return sdk.Result{}, err
	}
	defer release()
	if err := r.replan(); err != nil { // compiling may have taken long
		return sdk.Result{}, err
	}
	hard := r.begin(ctx)
	defer r.clock.stop()
	defer r.watch()()
	defer r.removeTmp()
	job := r.work()
	defer func() {
		if p := recover(); p != nil {
			err = &sdk.Error{Kind: sdk.Internal, Op: "dispatch", What: fmt.Sprintf("panic: %v", p), Err: errors.New(string(debug.Stack()))}
		}
	}()
	result, err = program.Run(hard, job)
	r.failedByLaid(result, err)
	r.late = r.clock.out()
	if why := r.clock.revocation(); why != nil { // whatever the guest has made of it
		return sdk.Result{}, why
	}
	if err != nil {
		return sdk.Result{}, err
	}
	if r.plan.Entry.Output != nil && len(result.Structured) > 0 && !result.Failed && len(result.Questions) == 0 {
		if err := r.plan.Entry.Output.Check(result.Structured); err != nil {
			return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: "the tool's result is not what its output schema promises", Err: errors.New(err.Error())}
		}
	}
	if r.job != nil && len(result.Questions) > 0 {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: "a background job cannot ask the user anything"}
	}
	if result, err = r.serve(result); err != nil {
		return sdk.Result{}, err
	}
	return r.d.sealQuestions(r, result)
}

// begin starts the clock. A job's is its own; a call's ends with its parent's.
func (r *run) begin(ctx context.Context) (hard context.Context) {
	if r.job != nil {
		return r.clock.detached(ctx, &r.d.state.alarms, r.job)
	}
	return r.clock.begin(ctx, &r.d.state.alarms, &r.plan.Entry.Tool.Limits, r.parent)
}

// work is what the executor is given.
func (r *run) work() executor.Job {
	p := &r.plan
	grant := capability.NewGrant(p.Layers, r.see).WithLive(r.live)
	r.grant = grant
	return executor.Job{
		Input: sdk.Input{
			Tool: p.Entry.Tool.Name, Args: p.Args, Call: r.id, Scope: p.Call.Scope, Client: abilities(p.Call.Client, grant),
			Env: r.d.env(grant, p.Layers), Timeout: r.clock.budget, Answers: p.answer.answers, State: p.answer.state, Job: r.job.id(), Settings: p.set,
		},
		Grant:  grant,
		Limits: p.Entry.Tool.Limits,
		Level:  p.Level,
		Dirs:   executor.Dirs{Workspace: p.Call.Scope.Workspace, Skill: skillDir(p.Entry), Tmp: r.makeTmp},
		Soft:   &r.clock.soft,
		Ops:    (*asker)(r),
		Emit:   r.event2caller,
	}
}

// event2caller passes e on. Partial output shows that the tool is alive.
func (r *run) event2caller(e sdk.Event) {
	if e.Kind == sdk.EventPartial {
		r.clock.extend()
	}
	if r.emit != nil {
		r.emit(e)
	}
}

func (d *Dispatcher) owner(s *manifest.Skill) string {
	if d.Owner == nil {
		return s.Name
	}
	return d.Owner(s)
}

// skillDir is the skill's directory as capabilities name it.
func skillDir(e *catalog.Entry) string { return filepath.ToSlash(e.Skill.Home.Dir) }

// replan decides anew if the policy, or what lies over the session, has changed
// since the plan was made: a call that waited must not run under rules that are
// gone.
func (r *run) replan() error {
	if r.d.Policy() == r.plan.policy && !r.relaid() {
		return nil
	}
	if r.parent != nil {
		if err := r.parent.alive(); err != nil {
			return err
		}
	}
	plan, err := r.d.plan(r.plan.Call, r.parent, r.job)
	if err == nil {
		r.plan = plan
	}
	return err
}

// skill is whose tool r runs; nil of no run.
func (r *run) skill() *manifest.Skill {
	if r == nil {
		return nil
	}
	return r.plan.Entry.Skill
}

// mayInvoke asks the grant of the invoking tool, if there is one, about the tool
// that a name turned out to mean. The name as it was spelled has been asked
// about already; it may have been an address, or another spelling. A deny list
// holds however it spells the tool.
func (r *run) mayInvoke(e *catalog.Entry, spelled string) error {
	if r == nil {
		return nil
	}
	a := capability.Access{Kind: capability.Invoke, Verb: capability.Call, Target: e.Canonical()}
	if e.Canonical() != spelled {
		if err := r.grant.Check(a); err != nil {
			return err
		}
	}
	for _, name := range e.Spellings() {
		if err := r.grant.CheckAlias(a, name); err != nil {
			return err
		}
	}
	return nil
}

// invoke runs another tool for this one: with this call's layers on top of its
// own, and no more time than this call has left.
func (r *run) invoke(ctx context.Context, tool string, args json.RawMessage) (sdk.Result, error) {
	call := *r.plan.Call
	call.Kind, call.Tool, call.Args = sdk.CallTool, tool, args
	call.Answers, call.State, call.Narrow, call.Roots = nil, "", nil, nil // what narrows this call narrows that one as its parent's
	return r.d.call(ctx, &call, r, nil)
}

// env returns the environment variables that every layer grants.
func (d *Dispatcher) env(g capability.Grant, layers []capability.Layer) map[string]string {
	var env map[string]string
	for i := range layers {
		if !layers[i].Closed {
			continue
		}
		for _, c := range layers[i].Allow {
			a := capability.Access{Kind: capability.Env, Verb: capability.Read, Target: c.Pattern}
			if c.Kind != capability.Env || !g.Allows(a) { // the guest has not asked: it is no denial
				continue
			}
			if v, ok := d.Env(c.Pattern); ok && g.Check(a) == nil {
				if env == nil {
					env = map[string]string{}
				}
				env[c.Pattern] = v
			}
		}
	}
	return env
}

// makeTmp makes the call's private directory; executors call it on first use.
func (r *run) makeTmp() (string, error) {
	r.tmp.mu.Lock()
	defer r.tmp.mu.Unlock()
	if r.tmp.dir == "" {
		root, err := r.d.TmpRoot()
		if err != nil {
			return "", err
		}
		dir, err := os.MkdirTemp(root, "call-")
		if err != nil {
			return "", &sdk.Error{Kind: sdk.Unavailable, Op: "dispatch", What: "private temporary directory", Err: err}
		}
		r.tmp.dir = dir
	}
	return r.tmp.dir, nil
}

func (r *run) removeTmp() {
	r.tmp.mu.Lock()
	defer r.tmp.mu.Unlock()
	if r.tmp.dir != "" {
		_ = os.RemoveAll(r.tmp.dir) // what cannot be removed is swept when a host starts after this one has ended
		r.tmp.dir = ""
	}
}
