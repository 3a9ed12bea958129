package dispatch

import (
	"context"
	"sync"

	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/ops"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

// asked is what the guest of a run may ask of the host, bound when it first
// does: most guests never ask.
type asked struct {
	mu     sync.Mutex
	ops    executor.Ops  // nil until then
	output *tasks.Output // what the guest has written; nil until then, but of a job, and if nobody keeps it
	over   bool          // output has ended, or will when it is made
}

// An asker is a run as its guest sees it (executor.Ops).
type asker run

// Do performs one operation.
func (a *asker) Do(ctx context.Context, request sdk.Frame) ([]byte, error) {
	return (*run)(a).ops().Do(ctx, request)
}

// Knows reports whether there is an operation op.
func (a *asker) Knows(op string) bool {
	k, ok := (*run)(a).ops().(interface{ Knows(op string) bool })
	return ok && k.Knows(op)
}

// ops are the operations of r, whose grant was made already.
func (r *run) ops() executor.Ops {
	a := &r.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ops != nil {
		return a.ops
	}
	if a.output == nil && r.d.Tasks != nil {
		a.output = r.d.Tasks.Output(tasks.Spec{Owner: r.taskOwner(), By: r.id})
		if a.over {
			a.output.End(tasks.End{})
		}
	}
	e, scope := r.plan.Entry, r.plan.Call.Scope
	a.ops = r.d.Ops.Bind(ops.Binding{
		Grant: r.grant, Scope: scope, Skill: r.d.owner(e.Skill), Limits: e.Tool.Limits,
		Secrets: func() egress.Secrets { return r.d.Secrets(r.d.Policy(), e.Skill) }, Live: r.alive, Invoke: r.invoke,
		Jobs: r.d.Tasks, StartJob: r.startJob, Output: a.output, Announce: r.announce, Layers: pushed{r}, Timers: r.d.Timers,
	})
	return a.ops
}

// endOutput ends what a call has written: it stays if the call has linked to it.
func (r *run) endOutput(err error) {
	a := &r.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.output != nil {
		a.output.End(tasks.End{TimedOut: r.late, Killed: sdk.KindOf(err) == sdk.Canceled || r.clock.revocation() != nil})
	}
}
