package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

// Bounds of what job operations take.
const (
	maxDescription = 1 << 10
	maxJobTime     = 24 * time.Hour
	maxGrace       = time.Minute
	defaultGrace   = 2 * time.Second
)

// A JobStart says what a job is to do.
type JobStart struct {
	Args        json.RawMessage // a JSON object, or nil
	Description string
	Timeout     time.Duration // 0: what the tool may take
}

// owner is whose jobs the call may see, or an error if nobody keeps jobs.
func (j *job) owner() (tasks.Owner, error) {
	if j.Jobs == nil {
		return tasks.Owner{}, &sdk.Error{Kind: sdk.Unavailable, What: "this host keeps no jobs"}
	}
	return tasks.Owner{Caller: j.Scope.Caller, Workspace: j.Scope.Workspace, Session: j.Scope.Session, Skill: j.Skill}, nil
}

// kept is err without its cause, which names files of the host.
func kept(err error) error {
	var e *sdk.Error
	if errors.As(err, &e) && e.Kind == sdk.Unavailable {
		return &sdk.Error{Kind: e.Kind, What: e.What, Hint: e.Hint}
	}
	return err
}

// span reads a member that is a number of milliseconds.
func span(name string, ms *int64, absent, least, most time.Duration) (time.Duration, error) {
	if ms == nil {
		return absent, nil
	}
	if *ms < least.Milliseconds() || *ms > most.Milliseconds() {
		return 0, invalid(name, fmt.Sprintf("want %d to %d", least.Milliseconds(), most.Milliseconds()))
	}
	return time.Duration(*ms) * time.Millisecond, nil
}

// jobStart performs "job.start". Whether the call may start a job, and under
// which layers it runs, is decided behind Binding.StartJob.
func jobStart(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		Args        json.RawMessage `json:"args"`
		Description string          `json:"description"`
		Timeout     *int64          `json:"timeout_ms"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	if args := bytes.TrimSpace(m.Args); len(args) > 0 && args[0] != '{' {
		return nil, invalid("args", "want a JSON object")
	}
	if len(m.Description) > maxDescription {
		return nil, invalid("description", fmt.Sprintf("want at most %d bytes", maxDescription))
	}
	timeout, err := span("timeout_ms", m.Timeout, 0, time.Millisecond, maxJobTime)
	if err != nil {
		return nil, err
	}
	if _, err := j.owner(); err != nil {
		return nil, err
	}
	if j.StartJob == nil {
		return nil, &sdk.Error{Kind: sdk.Denied, What: "a job", Hint: "this call may not start jobs"}
	}
	started, within, err := j.StartJob(ctx, JobStart{m.Args, m.Description, timeout})
	if err != nil {
		return nil, passedOn(err, "the job")
	}
	return reply(struct {
		tasks.Job
		Timeout int64 `json:"timeout_ms"`
	}{started, within.Milliseconds()})
}

func jobList(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	if err := decode(f, &struct{ header }{}, 0); err != nil {
		return nil, err
	}
	o, err := j.owner()
	if err != nil {
		return nil, err
	}
	jobs, err := j.Jobs.List(ctx, o)
	if err != nil {
		return nil, kept(err)
	}
	if jobs == nil {
		jobs = []tasks.Job{}
	}
	return reply(struct {
		Jobs []tasks.Job `json:"jobs"`
	}{jobs})
}

func jobRead(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		ID     int64  `json:"id"`
		Cursor *int64 `json:"cursor"`
		Max    *int   `json:"max_bytes"`
		Wait   *int64 `json:"wait_ms"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	most := tasks.DefaultRead
	if m.Max != nil {
		most = *m.Max
	}
	if most < tasks.MinRead || most > tasks.MaxRead {
		return nil, invalid("max_bytes", fmt.Sprintf("want %d to %d", tasks.MinRead, tasks.MaxRead))
	}
	wait, err := span("wait_ms", m.Wait, 0, 0, tasks.MaxWait)
	if err != nil {
		return nil, err
	}
	o, err := j.owner()
	if err != nil {
		return nil, err
	}
	p, err := j.Jobs.Read(ctx, o, m.ID, tasks.Reading{Cursor: m.Cursor, Max: most, Wait: wait})
	if err != nil {
		return nil, kept(err)
	}
	return reply(p, p.Data)
}

func jobKill(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		ID     int64  `json:"id"`
		Signal string `json:"signal"`
		Grace  *int64 `json:"grace_ms"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	switch m.Signal {
	case "":
		m.Signal = "TERM"
	case "TERM", "INT", "HUP", "KILL":
	default:
		return nil, invalid(fmt.Sprintf("signal %.16q", m.Signal), `want "TERM", "INT", "HUP" or "KILL"`)
	}
	grace, err := span("grace_ms", m.Grace, defaultGrace, 0, maxGrace)
	if err != nil {
		return nil, err
	}
	o, err := j.owner()
	if err != nil {
		return nil, err
	}
	was, now, err := j.Jobs.Kill(ctx, o, m.ID, m.Signal, grace)
	if err != nil {
		return nil, kept(err)
	}
	return reply(struct {
		tasks.Job
		Was tasks.Status `json:"was"`
	}{now, was})
}
