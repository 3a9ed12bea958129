package host

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

var _ conversation.Jobber = (*Host)(nil)

// jobKey names background jobs for clients: a job's number can be guessed, its
// name as a task cannot. The names are made anew each time, and kept nowhere.
type jobKey struct {
	mu  sync.Mutex
	key []byte
}

// of returns the key, which the first host of the user makes.
func (k *jobKey) of(s store.Store) ([]byte, error) {
	const bucket = "host.jobs"
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil {
		return k.key, nil
	}
	key := make([]byte, 32)
	rand.Read(key)
	_, err := s.Put(context.Background(), bucket, "key", key, 0)
	if errors.Is(err, store.ErrConflict) {
		key, _, err = s.Get(context.Background(), bucket, "key")
	}
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "host", What: "the key that names jobs", Err: err}
	}
	k.key = key
	return key, nil
}

const jobPrefix = "job-"

// jobName is the name of a skill's job as a task.
func jobName(key []byte, scope sdk.Scope, owner string, id int64) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{scope.Caller, scope.Workspace, owner, strconv.FormatInt(id, 10)} {
		fmt.Fprintf(mac, "%d:%s,", len(part), part)
	}
	return fmt.Sprintf("%s%d-%s", jobPrefix, id, base32.StdEncoding.EncodeToString(mac.Sum(nil)[:20]))
}

// JobID names the job that e tells of as a task.
func (h *Host) JobID(scope sdk.Scope, e sdk.Event) string {
	key, err := h.jobs.of(h.store)
	if err != nil {
		h.say(err)
		return ""
	}
	return jobName(key, scope, e.Message, e.Job)
}

// findJob returns whose job is called name, and its number. Only those of the
// caller of scope are ever compared.
func (h *Host) findJob(scope sdk.Scope, name string) (tasks.Owner, int64, error) {
	none := &sdk.Error{Kind: sdk.NotFound, Op: "task", What: "there is no such task", Hint: "it never was, is another caller's, or has expired"}
	number, _, ok := strings.Cut(strings.TrimPrefix(name, jobPrefix), "-")
	id, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || !strings.HasPrefix(name, jobPrefix) {
		return tasks.Owner{}, 0, none
	}
	key, err := h.jobs.of(h.store)
	if err != nil {
		return tasks.Owner{}, 0, err
	}
	for _, s := range h.Catalog.Skills() {
		owner := h.owner(s)
		if hmac.Equal([]byte(jobName(key, scope, owner, id)), []byte(name)) && h.Dispatcher.VisibleSkill(s, scope) {
			return tasks.Owner{Caller: scope.Caller, Workspace: scope.Workspace, Session: scope.Session, Skill: owner}, id, nil
		}
	}
	return tasks.Owner{}, 0, none
}

// keptJobs is how long at least a job can be asked for after its end.
const keptJobs = 8 * time.Hour

// Job tells how the job is that is called id as a task.
func (h *Host) Job(ctx context.Context, scope sdk.Scope, id string) (conversation.Job, error) {
	owner, n, err := h.findJob(scope, id)
	if err != nil {
		return conversation.Job{}, err
	}
	start := int64(0)
	p, err := h.tasks.Read(ctx, owner, n, tasks.Reading{Cursor: &start, Max: tasks.MinRead})
	if err != nil {
		return conversation.Job{}, err
	}
	return jobTask(id, p.Job), nil
}

// jobTask is a job as a task.
func jobTask(id string, j tasks.Job) conversation.Job {
	out := conversation.Job{Task: task.Task{ID: id, Status: task.Completed, Message: j.Error, Created: j.StartedAt, Updated: j.EndedAt, Expires: j.EndedAt.Add(keptJobs)}}
	switch j.Status {
	case tasks.Active:
		out.Status, out.Message, out.Updated, out.Expires = task.Working, j.Description, j.StartedAt, time.Time{}
		return out
	case tasks.Killed:
		out.Status = task.Cancelled
		return out
	case tasks.Lost:
		out.Status = task.Failed
		return out
	}
	var said string
	if json.Unmarshal(j.Result, &said) != nil && len(j.Result) > 0 {
		out.Result.Structured = j.Result
	}
	text := []string{}
	for _, s := range []string{said, j.Error} {
		if s != "" && !(len(text) > 0 && text[0] == s) {
			text = append(text, s)
		}
	}
	if j.Status == tasks.TimedOut {
		text = append(text, "limit: its time was over")
	}
	if len(text) > 0 {
		out.Result.Content = sdk.Text(strings.Join(text, "\n")).Content
	}
	out.Result.Failed = j.Error != "" || j.Status == tasks.TimedOut
	return out
}

// jobGrace is how long a job may take to end that its client cancels.
const jobGrace = 2 * time.Second

// CancelJob ends a job, as KillBgTask does.
func (h *Host) CancelJob(ctx context.Context, scope sdk.Scope, id string) error {
	owner, n, err := h.findJob(scope, id)
	if err != nil {
		return err
	}
	_, _, err = h.tasks.Kill(ctx, owner, n, "TERM", jobGrace)
	return err
}
