package conversation

import (
	"context"
	"slices"
	"sync"

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

// maxJobs bounds how many of its jobs a result names: the last ones. No more of
// a caller's run at once.
const maxJobs = 32

// andJob returns jobs with one more; "" is none. It changes no list that it is
// given: an answer may be written from it.
func andJob(jobs []string, id string) []string {
	if id == "" {
		return jobs
	}
	return append(slices.Clone(jobs[max(0, len(jobs)-maxJobs+1):]), id)
}

// jobs are the ids of the jobs that one errand has started.
type jobs struct {
	mu  sync.Mutex
	ids []string
}

func (j *jobs) add(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ids = andJob(j.ids, id)
}

func (j *jobs) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ids
}

// jobID is the id, as a task, of the job that e tells of; empty if there are no
// tasks here.
func (r *Room) jobID(scope sdk.Scope, e sdk.Event) string {
	if j, ok := r.b.(Jobber); ok && r.o.Tasks != nil {
		return j.JobID(scope, e)
	}
	return ""
}

// started notes the job that a call has started, for a client that can ask for it.
func (c *call) started(e sdk.Event) {
	if c.era.Modern && c.peer.HasTasks() {
		c.era.Jobs = andJob(c.era.Jobs, c.room.jobID(c.scope, e))
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
