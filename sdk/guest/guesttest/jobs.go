//go:build !wasip1

package guesttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// jobs are a Host's jobs and outputs. Host.mu guards all of it.
type jobs struct {
	all     []*job // by id, from 1
	running sync.WaitGroup
}

// A job is a job, or a call that has linked to its output.
type job struct {
	guest.Job
	call    bool
	output  []byte
	cursor  int64         // of reads that name none
	changed chan struct{} // closed when there is more, or it has ended
	stop    context.CancelCauseFunc
	stopped bool
}

// A caller is the Host of one call or job.
type caller struct {
	*Host
	in     sdk.Input
	output *job // what it writes; nil before it does
}

// Wait waits until all jobs have ended.
func (h *Host) Wait() { h.jobs.running.Wait() }

// Do implements guest.Host.
func (c *caller) Do(ctx context.Context, f sdk.Frame) ([]byte, error) {
	var r struct {
		Op          string          `json:"op"`
		ID          int64           `json:"id"`
		Args        json.RawMessage `json:"args"`
		Description string          `json:"description"`
		Timeout     int64           `json:"timeout_ms"`
		Cursor      *int64          `json:"cursor"`
		Max         int             `json:"max_bytes"`
		Wait        int64           `json:"wait_ms"`
		Signal      string          `json:"signal"`
		Grace       *int64          `json:"grace_ms"`
	}
	if err := json.Unmarshal(f.Header, &r); err != nil {
		return nil, err
	}
	switch r.Op {
	case "job.start":
		return c.start(r.Args, r.Description, time.Duration(r.Timeout)*time.Millisecond)
	case "job.list":
		return c.list()
	case "job.read":
		most := r.Max
		if most == 0 {
			most = 64 << 10
		}
		return c.read(ctx, r.ID, r.Cursor, most, time.Duration(r.Wait)*time.Millisecond)
	case "job.kill":
		grace := int64(2000)
		if r.Grace != nil {
			grace = *r.Grace
		}
		return c.kill(ctx, r.ID, r.Signal, time.Duration(grace)*time.Millisecond)
	case "output.write":
		if len(f.Blobs) != 1 {
			return nil, &sdk.Error{Kind: sdk.Invalid, Op: r.Op, What: "want one blob"}
		}
		return c.write(f.Blobs[0])
	case "output.link":
		return c.link()
	}
	return c.Host.Do(ctx, f)
}

// add makes a job. The Host is locked.
func (h *Host) add(j *job) *job {
	j.ID = int64(len(h.jobs.all) + 1)
	j.Status, j.StartedAt, j.changed = "running", h.now(), make(chan struct{})
	j.URI, j.Path = fmt.Sprintf("skill-output://%d", j.ID), fmt.Sprintf("/output/%d/output.log", j.ID)
	h.jobs.all = append(h.jobs.all, j)
	return j
}

func (h *Host) now() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}

func (h *Host) find(id int64) (*job, error) {
	if id < 1 || id > int64(len(h.jobs.all)) {
		return nil, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no job %d", id)}
	}
	return h.jobs.all[id-1], nil
}

// told is j as its readers see it.
func (j *job) told() guest.Job {
	out := j.Job
	out.Bytes = int64(len(j.output))
	out.Unread = out.Bytes - j.cursor
	return out
}

func (j *job) announce() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (c *caller) start(args json.RawMessage, description string, timeout time.Duration) ([]byte, error) {
	if c.in.Job != 0 {
		return nil, &sdk.Error{Kind: sdk.Limit, Op: "job.start", What: "a job may not start jobs"}
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	ctx, stop := context.WithCancelCause(context.Background())
	release := func() {}
	if timeout > 0 {
		ctx, release = context.WithTimeoutCause(ctx, timeout, &sdk.Error{Kind: sdk.Limit, What: "the job did not finish in time"})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.add(&job{Job: guest.Job{Description: description, Args: args}, stop: stop})
	told := j.told()
	run := &caller{Host: c.Host, in: c.in, output: j}
	run.in.Args, run.in.Job = args, j.ID
	c.jobs.running.Go(func() {
		defer release()
		defer stop(nil)
		result, err := guest.Run(ctx, run, run.in)
		c.finish(j, result, err, context.Cause(ctx))
	})
	return header(told)
}

// finish writes down how j has ended, unless it was given up.
func (h *Host) finish(j *job, r sdk.Result, err error, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if j.Status != "running" {
		return
	}
	var late *sdk.Error
	switch {
	case j.stopped:
		j.Status = "killed"
	case errors.As(cause, &late):
		j.Status = "timed_out"
	default:
		j.Status = "exited"
	}
	j.EndedAt, j.Result = h.now(), r.Structured
	text := ""
	for _, c := range r.Content {
		text += c.Text
	}
	if len(j.Result) == 0 && text != "" {
		j.Result, _ = json.Marshal(text) // a string: it cannot fail
	}
	switch {
	case err != nil:
		j.Error = err.Error()
	case r.Failed:
		j.Error = text
	}
	j.announce()
}

func (c *caller) list() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []guest.Job{}
	for _, j := range c.jobs.all {
		if !j.call {
			out = append(out, j.told())
		}
	}
	return header(map[string]any{"jobs": out})
}

func (c *caller) read(ctx context.Context, id int64, cursor *int64, most int, wait time.Duration) ([]byte, error) {
	late := time.NewTimer(wait)
	defer late.Stop()
	for waited := wait <= 0; ; {
		c.mu.Lock()
		j, err := c.find(id)
		if err != nil {
			c.mu.Unlock()
			return nil, err
		}
		out, err := j.piece(cursor, most)
		changed := j.changed
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if waited || out.EOF || len(out.Data) > 0 {
			return header(out, out.Data)
		}
		select {
		case <-changed:
		case <-late.C:
			waited = true
		case <-ctx.Done():
			return nil, &sdk.Error{Kind: sdk.Canceled, Op: "job.read", What: "the call is cancelled"}
		}
	}
}

// piece reads whole lines, or characters of a line that is longer than most.
func (j *job) piece(cursor *int64, most int) (guest.JobOutput, error) {
	from, end := j.cursor, int64(len(j.output))
	if cursor != nil {
		from = *cursor
	}
	if from < 0 || from > end {
		return guest.JobOutput{}, &sdk.Error{Kind: sdk.Invalid, Op: "job.read", What: fmt.Sprintf("cursor %d of %d bytes", from, end)}
	}
	data := j.output[from:min(end, from+int64(most))]
	over := j.Status != "running"
	if !over || from+int64(len(data)) < end {
		switch i := bytes.LastIndexByte(data, '\n'); {
		case i >= 0:
			data = data[:i+1]
		case len(data) < most:
			data = nil
		default:
			for n := 1; n < utf8.UTFMax && n < len(data); n++ {
				if tail := data[len(data)-n:]; utf8.RuneStart(tail[0]) {
					if !utf8.FullRune(tail) {
						data = data[:len(data)-n]
					}
					break
				}
			}
		}
	}
	next := from + int64(len(data))
	if cursor == nil {
		j.cursor = next
	}
	return guest.JobOutput{Job: j.told(), Data: data, Cursor: from, Next: next, EOF: over && next == end}, nil
}

// kill asks a job to stop. It cannot be ended by force here: after its grace it
// is given up, and counts as killed.
func (c *caller) kill(ctx context.Context, id int64, signal string, grace time.Duration) ([]byte, error) {
	if signal == "" {
		signal = "TERM"
	}
	if signal == "KILL" {
		grace = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j, err := c.find(id)
	if err != nil {
		return nil, err
	}
	if j.call {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "job.kill", What: fmt.Sprintf("%d is a call, and no job", id)}
	}
	if j.Status != "running" {
		return header(j.told())
	}
	j.stopped = true
	j.stop(&sdk.Stop{Signal: signal, Grace: grace})
	late := time.NewTimer(grace)
	defer late.Stop()
	for j.Status == "running" {
		changed := j.changed
		c.mu.Unlock()
		over := false
		select {
		case <-changed:
		case <-late.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		c.mu.Lock()
		if over && j.Status == "running" {
			j.Status, j.EndedAt = "killed", c.now()
			j.announce()
		}
	}
	return header(j.told())
}

func (c *caller) write(p []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.output == nil {
		c.output = &job{call: true, changed: make(chan struct{})}
	}
	if c.output.ID != 0 && c.output.Status != "running" {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "output.write", What: "the output has ended"}
	}
	c.output.output = append(c.output.output, p...)
	c.output.announce()
	return header(map[string]any{"bytes": len(c.output.output)})
}

func (c *caller) link() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.output == nil {
		c.output = &job{call: true}
	}
	if c.output.ID == 0 {
		c.add(c.output)
	}
	t := c.output.told()
	return header(guest.Output{ID: t.ID, URI: t.URI, Path: t.Path, Bytes: t.Bytes})
}

// end ends what a call has written.
func (c *caller) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.output; o != nil && o.call && o.ID != 0 {
		o.Status, o.EndedAt = "exited", c.now()
		o.announce()
	}
}

// header makes the frame of a reply.
func header(v any, blobs ...[]byte) ([]byte, error) {
	h, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return sdk.AppendFrame(nil, h, blobs...), nil
}
