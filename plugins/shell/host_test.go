package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

// fakeHost is a host in memory with jobs and logs, as docs/ops.md says of them.
type fakeHost struct {
	guesttest.Host
	dir   string // the workspace
	proxy string
	env   map[string]string

	mu   sync.Mutex
	jobs []*fakeJob // by id, from 1
	runs sync.WaitGroup
}

type fakeJob struct {
	guest.Job
	log     []byte
	read    int64
	lost    int64 // bytes from the start that are no longer kept
	kept    bool  // a call's output
	cancel  context.CancelCauseFunc
	ended   chan struct{}
	changed chan struct{} // closed and replaced when something is written
	result  sdk.Result
}

func newHost(t *testing.T) *fakeHost {
	h := &fakeHost{dir: t.TempDir()}
	t.Cleanup(func() {
		h.mu.Lock()
		for _, j := range h.jobs {
			if j.cancel != nil {
				j.cancel(&sdk.Stop{Signal: "KILL"})
			}
		}
		h.mu.Unlock()
		h.runs.Wait()
	})
	return h
}

// call calls a tool and decodes its structured content into out.
func (h *fakeHost) call(ctx context.Context, tool string, args, out any) (sdk.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return sdk.Result{}, err
	}
	own := &fakeJob{ended: make(chan struct{}), changed: make(chan struct{})}
	r, err := guest.Run(ctx, &callHost{h, tool, own}, h.input(tool, raw, 0))
	if err == nil && out != nil {
		err = json.Unmarshal(r.Structured, out)
	}
	return r, err
}

func (h *fakeHost) input(tool string, args json.RawMessage, job int64) sdk.Input {
	return sdk.Input{Tool: tool, Args: args, Job: job, Proxy: h.proxy, Env: h.env, Scope: sdk.Scope{Caller: "local:test", Workspace: h.dir, Session: "s"}}
}

// callHost is what one call or job sees of the host.
type callHost struct {
	*fakeHost
	tool string
	job  *fakeJob
}

func (c *callHost) Do(ctx context.Context, f sdk.Frame) ([]byte, error) {
	var q struct {
		Op          string          `json:"op"`
		ID          int64           `json:"id"`
		Args        json.RawMessage `json:"args"`
		Description string          `json:"description"`
		Timeout     int64           `json:"timeout_ms"`
		Cursor      *int64          `json:"cursor"`
		Max         int64           `json:"max_bytes"`
		Wait        int64           `json:"wait_ms"`
		Signal      string          `json:"signal"`
		Grace       int64           `json:"grace_ms"`
	}
	if err := json.Unmarshal(f.Header, &q); err != nil {
		return nil, err
	}
	switch q.Op {
	case "job.start":
		return reply(c.start(q.Args, q.Description, q.Timeout))
	case "job.list":
		c.mu.Lock()
		defer c.mu.Unlock()
		jobs := []guest.Job{}
		for _, j := range c.jobs {
			if !j.kept {
				jobs = append(jobs, j.now())
			}
		}
		return reply(map[string]any{"jobs": jobs})
	case "output.write":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.job.write(f.Blobs[0])
		return reply(struct{}{})
	case "output.link":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.job.kept, c.job.Status = true, "exited"
		c.add(c.job)
		close(c.job.ended)
		return reply(guest.Output{ID: c.job.ID, URI: c.job.URI, Path: c.job.Path, Bytes: int64(len(c.job.log))})
	case "job.read", "job.kill":
		c.mu.Lock()
		if q.ID < 1 || q.ID > int64(len(c.jobs)) {
			c.mu.Unlock()
			return nil, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no job %d", q.ID)}
		}
		j := c.jobs[q.ID-1]
		c.mu.Unlock()
		if q.Op == "job.kill" {
			j.cancel(&sdk.Stop{Signal: q.Signal, Grace: time.Duration(q.Grace) * time.Millisecond})
			<-j.ended
			c.mu.Lock()
			defer c.mu.Unlock()
			return reply(j.now())
		}
		return c.readJob(ctx, j, q.Cursor, q.Max, time.Duration(q.Wait)*time.Millisecond)
	}
	return c.Host.Do(ctx, f)
}

func reply(v any, blobs ...[]byte) ([]byte, error) {
	b, err := json.Marshal(v)
	return sdk.AppendFrame(nil, b, blobs...), err
}

func (h *fakeHost) add(j *fakeJob) {
	h.jobs = append(h.jobs, j)
	j.ID = int64(len(h.jobs))
	j.URI, j.Path = fmt.Sprintf("skill-output://%d", j.ID), fmt.Sprintf("/logs/%d", j.ID)
}

func (j *fakeJob) write(b []byte) {
	j.log = append(j.log, b...)
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *fakeJob) now() guest.Job {
	out := j.Job
	out.Bytes, out.Unread = int64(len(j.log)), int64(len(j.log))-j.read
	return out
}

func (c *callHost) start(args json.RawMessage, description string, timeout int64) guest.Job {
	j := &fakeJob{ended: make(chan struct{}), changed: make(chan struct{})}
	j.Args, j.Description, j.Status, j.StartedAt = args, description, "running", time.Now()
	ctx, cancel := context.WithCancelCause(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(j)
	j.cancel = cancel
	over := time.AfterFunc(time.Duration(timeout)*time.Millisecond, func() { cancel(context.DeadlineExceeded) })
	c.runs.Go(func() {
		r, err := guest.Run(ctx, &callHost{c.fakeHost, c.tool, j}, c.input(c.tool, args, j.ID))
		over.Stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		defer close(j.ended)
		j.result, j.Result, j.EndedAt, j.Status = r, r.Structured, time.Now(), "exited"
		switch {
		case err != nil:
			j.Error = err.Error()
		case r.Failed: // as the real host does
			j.Error = r.Content[0].Text
		}
		switch cause := context.Cause(ctx); cause.(type) {
		case nil:
		case *sdk.Stop:
			j.Status = "killed"
		default:
			j.Status = "timed_out"
		}
	})
	return j.now()
}

func (h *fakeHost) readJob(ctx context.Context, j *fakeJob, cursor *int64, most int64, wait time.Duration) ([]byte, error) {
	if most < 16 || most > 1<<20 || wait > time.Minute || cursor != nil && *cursor < 0 {
		return nil, &sdk.Error{Kind: sdk.Invalid, What: "max_bytes, wait_ms or cursor"}
	}
	late := time.After(wait)
	for {
		h.mu.Lock()
		from := j.read
		if cursor != nil {
			from = *cursor
		}
		from = min(from, int64(len(j.log)))
		dropped := max(j.lost-from, 0)
		from += dropped
		data := j.log[from:min(from+most, int64(len(j.log)))]
		over := j.Status != "running"
		if last := from+int64(len(data)) == int64(len(j.log)); !over || !last { // whole lines
			if nl := bytes.LastIndexByte(data, '\n'); nl >= 0 || last {
				data = data[:nl+1]
			}
		}
		changed := j.changed
		next := from + int64(len(data))
		if len(data) > 0 || over || wait <= 0 {
			if cursor == nil {
				j.read = next
			}
			out := guest.JobOutput{Job: j.now(), Cursor: from, Next: next, Dropped: dropped, EOF: over && next == int64(len(j.log))}
			data = slices.Clone(data)
			h.mu.Unlock()
			return reply(out, data)
		}
		h.mu.Unlock()
		select {
		case <-changed:
		case <-j.ended:
		case <-late:
			wait = 0
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ok calls a tool that is not to fail.
func ok[T any](t *testing.T, h *fakeHost, tool string, args any) (T, string) {
	t.Helper()
	var out T
	r, err := h.call(t.Context(), tool, args, &out)
	if err != nil || r.Failed {
		t.Fatalf("%s %v: %v\n%+v", tool, args, err, r)
	}
	return out, r.Content[0].Text
}

// bad calls a tool that is to fail.
func bad[T any](t *testing.T, h *fakeHost, tool string, args any) (T, string) {
	t.Helper()
	var out T
	r, err := h.call(t.Context(), tool, args, &out)
	if err != nil || !r.Failed {
		t.Fatalf("%s %v: %v\n%+v", tool, args, err, r)
	}
	return out, r.Content[0].Text
}

// refused calls a tool that is to refuse its arguments.
func refused(t *testing.T, h *fakeHost, tool string, args any, want string) {
	t.Helper()
	r, err := h.call(t.Context(), tool, args, nil)
	if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %v: %v, want %q\n%+v", tool, args, err, want, r)
	}
}

type arg = map[string]any
