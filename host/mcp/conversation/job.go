package conversation

import (
	"context"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/sdk"
)

// A Jobber is a Backend whose tools start background jobs, which clients can
// look after as tasks: a result names the job that its call has started.
type Jobber interface {
	// JobID returns the id, as a task, of the job that e tells of; empty if it
	// has none.
	JobID(scope sdk.Scope, e sdk.Event) string

	// Job tells how a job is; kind NotFound if scope has none of that id.
	Job(ctx context.Context, scope sdk.Scope, id string) (Job, error)

	// CancelJob ends a job, as Job finds it.
	CancelJob(ctx context.Context, scope sdk.Scope, id string) error
}

// A Job is a background job as a task.
type Job struct {
	task.Task            // without a Body
	Result    sdk.Result // if it is completed
}

// started notes the job that a call has started. Of several it is the last.
func (c *call) started(e sdk.Event) {
	if j, ok := c.room.b.(Jobber); ok && c.room.o.Tasks != nil && c.era.Modern && c.peer.HasTasks() {
		c.era.Job = j.JobID(c.scope, e)
	}
}

// job tells of a job as of a task; none is the error if there is none.
func (c *call) job(id string, none error) (task.Task, error) {
	b, ok := c.room.b.(Jobber)
	if !ok {
		return task.Task{}, none
	}
	j, err := b.Job(c.ctx, c.scope, id)
	if err == nil && j.Status == task.Completed {
		j.Body = message.TaskBody(c.era.Result(nil, &j.Result))
	}
	return j.Task, err
}
