package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/ops"
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

	mu       sync.Mutex
	accesses []access
	denials  []*sdk.Error // the first few
	tmp      string
}

// event returns an audit event of type t with everything known of the call.
func (r *run) event(t audit.Type) audit.Event {
	c := r.plan.Call
	e := audit.Event{Type: t, Call: r.id, Trace: c.Trace, Caller: c.Scope.Caller, Client: c.Client.Name, Session: c.Scope.Session, Tool: c.Tool}
	if r.parent != nil {
		e.Parent = r.parent.id
	}
	if x := r.plan.Entry; x != nil {
		e.Skill, e.Digest, e.Runtime, e.Tool = x.Skill.Name+"@"+x.Skill.Version, x.Skill.Home.Digest, x.Skill.Runtime, x.Name
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
	if err := r.d.Audit.Append(ctx, e); err != nil {
		return &sdk.Error{Kind: sdk.Unavailable, What: "the call was refused because it cannot be recorded", Err: err, Hint: "see skill doctor"}
	}
	return nil
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
		e.Note = "asks the user"
	}
	if lost := r.d.Audit.Append(context.WithoutCancel(ctx), e); lost != nil {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Unavailable, What: "the call ran, but its end could not be recorded; it may have had its effect", Err: lost}
	}
	return result, err
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
	skill := r.plan.Entry.Skill
	program, release, err := r.d.Programs.Lease(ctx, skill)
	if err != nil {
		return sdk.Result{}, err
	}
	defer release()
	hard := r.clock.begin(ctx, r.plan.Entry.Tool.Limits, r.parent)
	defer r.clock.stop()
	defer r.removeTmp()
	job := r.job()
	defer func() {
		if p := recover(); p != nil {
			err = &sdk.Error{Kind: sdk.Internal, Op: "dispatch", What: fmt.Sprintf("panic: %v", p), Err: errors.New(string(debug.Stack()))}
		}
	}()
	result, err = program.Run(hard, job)
	if err != nil {
		return sdk.Result{}, err
	}
	if r.plan.Entry.Output != nil && len(result.Structured) > 0 && !result.Failed && len(result.Questions) == 0 {
		if err := r.plan.Entry.Output.Check(result.Structured); err != nil {
			return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: "the tool's result is not what its output schema promises", Err: errors.New(err.Error())}
		}
	}
	return r.d.sealQuestions(r, result)
}

func (r *run) job() executor.Job {
	p := &r.plan
	grant := capability.NewGrant(p.Layers, r.see).WithLive(r.live)
	return executor.Job{
		Input: sdk.Input{
			Tool: p.Entry.Tool.Name, Args: p.Args, Call: r.id, Scope: p.Call.Scope, Client: p.Call.Client,
			Env: r.d.env(grant, p.Layers), Timeout: r.clock.budget, Answers: p.answer.answers, State: p.answer.state,
		},
		Grant:  grant,
		Limits: p.Entry.Tool.Limits,
		Dirs:   executor.Dirs{Workspace: p.Call.Scope.Workspace, Skill: p.Entry.Skill.Home.Dir, Tmp: r.makeTmp},
		Soft:   r.clock.soft,
		Ops: r.d.Ops.Bind(ops.Binding{
			Grant: grant, Scope: p.Call.Scope, Skill: p.Entry.Skill.Name, Limits: p.Entry.Tool.Limits,
			Secrets: r.d.Secrets(p.policy, p.Entry.Skill), Invoke: r.invoke,
		}),
		Emit: r.event2caller,
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

// invoke runs another tool for this one: with this call's layers on top of its
// own, and no more time than this call has left.
func (r *run) invoke(ctx context.Context, tool string, args json.RawMessage) (sdk.Result, error) {
	call := *r.plan.Call
	call.Tool, call.Args, call.Answers, call.State, call.Narrow = tool, args, nil, "", nil
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
			if c.Kind != capability.Env || g.Check(capability.Access{Kind: capability.Env, Verb: capability.Read, Target: c.Pattern}) != nil {
				continue
			}
			if v, ok := d.Env(c.Pattern); ok {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tmp == "" {
		dir, err := os.MkdirTemp(r.d.TmpDir, "call-")
		if err != nil {
			return "", &sdk.Error{Kind: sdk.Unavailable, Op: "dispatch", What: "private temporary directory", Err: err}
		}
		r.tmp = dir
	}
	return r.tmp, nil
}

func (r *run) removeTmp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tmp != "" {
		_ = os.RemoveAll(r.tmp) // what cannot be removed is swept at the next start
		r.tmp = ""
	}
}
