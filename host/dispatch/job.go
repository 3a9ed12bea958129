package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/ops"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

// background is what makes a run a job: it goes on after its parent has ended.
type background struct {
	running    *tasks.Running
	timeout    time.Duration
	soft, hard context.Context // of running
}

func (b *background) id() int64 {
	if b == nil {
		return 0
	}
	return b.running.ID()
}

// note is what the audit log says of a job.
func (b *background) note() string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf("job %d", b.id())
}

func (r *run) taskOwner() tasks.Owner {
	s := r.plan.Call.Scope
	return tasks.Owner{Caller: s.Caller, Workspace: s.Workspace, Session: s.Session, Skill: r.d.owner(r.plan.Entry.Skill)}
}

// offered fails if e has been taken away, or replaced by another version.
func (d *Dispatcher) offered(e *catalog.Entry) error {
	now := d.Catalog.Of(e.Skill.Name)
	if slices.ContainsFunc(now, func(x *catalog.Entry) bool {
		return x.Tool.Name == e.Tool.Name && x.Skill.Home.Digest == e.Skill.Home.Digest
	}) {
		return nil
	}
	return &sdk.Error{Kind: sdk.Unavailable, What: fmt.Sprintf("skill %q has changed while the call ran", e.Skill.Name), Hint: "call the tool again"}
}

// startJob runs the tool of r again, with other arguments and under no more
// than r's grant, and returns before it has ended. It is a call like any other:
// decided, recorded and confined. It holds no slot of the skill, because it may
// run for hours; how many jobs there are is bounded by itself.
func (r *run) startJob(ctx context.Context, s ops.JobStart) (tasks.Job, time.Duration, error) {
	for a := r; a != nil; a = a.parent {
		if a.job != nil {
			return tasks.Job{}, 0, &sdk.Error{Kind: sdk.Limit, What: "a job may not start jobs"}
		}
	}
	l := r.plan.Entry.Tool.Limits
	b := &background{timeout: max(l.MaxTimeout, l.Timeout)}
	if s.Timeout > 0 {
		b.timeout = min(b.timeout, s.Timeout)
	}
	call := *r.plan.Call
	call.Kind, call.Tool, call.Args = sdk.CallTool, r.plan.Entry.Canonical(), s.Args
	call.Answers, call.State, call.Narrow, call.Roots = nil, "", nil, nil // what narrows this call narrows the job as its parent's
	call.Client = sdk.Client{Name: call.Client.Name}                      // nobody is there to be asked
	job := &run{d: r.d, id: r.d.state.calls.next(), parent: r, began: time.Now()}
	plan, err := r.d.plan(&call, r, b)
	job.plan = plan
	if err == nil {
		err = r.d.gate(plan.Entry.Skill).admit(plan.Entry.Skill)
	}
	if err == nil {
		b.running, err = r.d.Tasks.Begin(ctx, tasks.Spec{Owner: job.taskOwner(), By: r.id, Description: s.Description, Args: plan.Args})
	}
	if err != nil {
		return tasks.Job{}, 0, job.refuse(ctx, err)
	}
	job.job, job.asked.output = b, b.running.Output()
	if err := job.start(ctx); err != nil {
		b.running.Discard()
		return tasks.Job{}, 0, err
	}
	told := b.running.Job()
	r.event2caller(sdk.Event{Kind: sdk.EventJob, Job: told.ID, Message: job.taskOwner().Skill})
	b.running.Go(func(soft, hard context.Context) tasks.End {
		b.soft, b.hard = soft, hard
		result, err := job.execute(soft)
		result, err = job.end(soft, result, err)
		return job.outcome(result, err)
	})
	return told, b.timeout, nil
}

// maxText is how much of a job's text is kept, bytes, where it has no
// structured content.
const maxText = 8 << 10

// outcome is what is kept of how a job ended, for the skill to read.
func (r *run) outcome(result sdk.Result, err error) tasks.End {
	e := tasks.End{TimedOut: r.late, Killed: r.clock.revocation() != nil}
	if err != nil {
		e.Error = hushed(err)
		return e
	}
	var text strings.Builder
	for _, c := range result.Content {
		if c.Type == sdk.TypeText && text.Len() < maxText {
			text.WriteString(c.Text[:min(len(c.Text), maxText-text.Len())])
		}
	}
	said := strings.ToValidUTF8(text.String(), "")
	if e.Result = result.Structured; len(e.Result) == 0 && said != "" {
		e.Result, _ = json.Marshal(said) // a string: it cannot fail
	}
	if result.Failed {
		e.Error = cmp.Or(said, "the tool reports a failure")
	}
	return e
}

// hushed is what a guest may learn of err: no rules, and no places of files.
func hushed(err error) string {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return "the host failed"
	}
	switch e.Kind {
	case sdk.Canceled: // whoever asked for it knows
		return ""
	case sdk.Denied:
		if e.Denial != nil && e.Denial.Resource != "" {
			return "denied: " + e.Denial.Capability + " " + e.Denial.Resource
		}
		return "denied: the operator does not allow it any more"
	case sdk.Unavailable:
		return "the tool cannot run at present"
	case sdk.Internal:
		return "the host failed"
	}
	if e.Err != nil {
		return e.What + ": " + e.Err.Error()
	}
	return e.What
}
