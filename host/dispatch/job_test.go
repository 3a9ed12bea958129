package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

// op performs an operation as a guest does, and reads its reply into into.
func op(ctx context.Context, j executor.Job, header string, into any, blobs ...[]byte) error {
	f, err := sdk.ParseFrame(sdk.AppendFrame(nil, []byte(header), blobs...))
	if err != nil {
		return err
	}
	b, err := j.Ops.Do(ctx, f)
	if err != nil {
		return err
	}
	if f, err = sdk.ParseFrame(b); err != nil {
		return err
	}
	var h struct {
		Error *sdk.Error `json:"error"`
	}
	if err := json.Unmarshal(f.Header, &h); err != nil {
		return err
	}
	if h.Error != nil {
		return h.Error
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(f.Header, into)
}

// starter makes the guest start a job with the arguments of header, which does
// what job says.
func (h *house) starter(header string, job func(ctx context.Context, j executor.Job) (sdk.Result, error)) {
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		if j.Input.Job != 0 {
			return job(ctx, j)
		}
		return sdk.Text("started"), op(ctx, j, header, nil)
	}
}

func (h *house) owner(skill string) tasks.Owner {
	return tasks.Owner{Caller: h.scope.Caller, Workspace: h.scope.Workspace, Session: h.scope.Session, Skill: skill}
}

// ended waits until a job of skill one has ended, and returns it.
func (h *house) ended(t testing.TB, id int64) tasks.Job {
	t.Helper()
	for range 100 {
		p, err := h.Tasks.Read(t.Context(), h.owner("one"), id, tasks.Reading{Max: 1024, Wait: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if p.EOF {
			return p.Job
		}
	}
	t.Fatal("the job goes on")
	return tasks.Job{}
}

func (l *journal) all() []audit.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// jobEnd returns the end of the job, which may be before its starter's.
func (l *journal) jobEnd(t testing.TB) audit.Event {
	t.Helper()
	for _, e := range l.all() {
		if e.Type == audit.TypeEnd && e.Parent != "" {
			return e
		}
	}
	t.Fatal("the end of the job is not recorded")
	return audit.Event{}
}

// ok is a job that ends at once.
func ok(context.Context, executor.Job) (sdk.Result, error) { return sdk.Text("done"), nil }

// slow is a manifest for tests that time must not end.
var slow = strings.NewReplacer(`"150ms"`, `"30s"`, `"600ms"`, `"1m"`).Replace(manifestText)

const start = `{"op":"job.start","args":{"a":"job"},"description":"d"}`

// A job is a second run of the tool that goes on after the first: decided,
// recorded and confined like a call of its own.
func TestJob(t *testing.T) {
	h := newHouse(t)
	goOn := make(chan struct{})
	h.starter(start, func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		<-goOn
		if j.Input.Tool != "one-t" || j.Input.Job != 1 || string(j.Input.Args) != `{"a":"job"}` || j.Input.Client.Form || j.Input.Scope != h.scope || ctx.Err() != nil || j.Soft.Err() != nil {
			t.Errorf("%+v, %v, %v", j.Input, ctx.Err(), j.Soft.Err())
		}
		if budget := j.Input.Timeout; budget < 500*time.Millisecond || budget > 600*time.Millisecond {
			t.Errorf("it may take %v, want max_timeout", budget)
		}
		if err := j.Grant.Check(read(h.scope.Workspace + "/x")); sdk.KindOf(err) != sdk.Denied {
			t.Errorf("job_widens: it may read what its starter may not: %v", err)
		}
		if err := j.Grant.Check(read(h.scope.Workspace + "/in/x")); err != nil {
			t.Error(err)
		}
		j.Emit(sdk.Event{Kind: sdk.EventPartial})
		return sdk.Result{Structured: json.RawMessage(`{"n":7}`)}, op(ctx, j, `{"op":"output.write"}`, nil, []byte("hello\n"))
	})
	ctx, cancel := context.WithCancel(t.Context())
	var emitted []sdk.Event
	call := sdk.Call{Tool: "one-t", Scope: h.scope, Client: sdk.Client{Form: true}, Narrow: json.RawMessage(`{"filesystem":["read:${workspace}/in"]}`)}
	if r, err := h.Call(ctx, call, func(e sdk.Event) { emitted = append(emitted, e) }); err != nil || r.Content[0].Text != "started" {
		t.Fatal(r, err)
	}
	cancel() // the client goes away
	close(goOn)
	j := h.ended(t, 1)
	if j.Status != tasks.Exited || string(j.Result) != `{"n":7}` || j.Bytes != 6 || j.Description != "d" || string(j.Args) != `{"a":"job"}` || j.Error != "" ||
		len(emitted) != 1 || emitted[0].Kind != sdk.EventJob || emitted[0].Job != 1 || emitted[0].Message != "one" { // nothing of what the job says
		t.Errorf("%+v, %+v", j, emitted)
	}
	var ids, parents, notes []string
	for _, e := range h.log.all() {
		switch e.Type {
		case audit.TypeStart:
			ids, parents, notes = append(ids, e.Call), append(parents, e.Parent), append(notes, e.Note)
		case audit.TypeEnd:
			ids = append(ids, "end "+e.Call)
		}
	}
	if len(ids) != 4 || ids[2] != "end "+ids[0] || ids[3] != "end "+ids[1] || parents[0] != "" || parents[1] != ids[0] || notes[0] != "" || notes[1] != "job 1" {
		t.Errorf("%q, parents %q, notes %q", ids, parents, notes)
	}
}

// What a job must not be is refused before it is one, and recorded.
func TestJobRefused(t *testing.T) {
	for name, c := range map[string]struct {
		header string
		before func(h *house)
		kind   sdk.Kind
		record string
	}{
		"wrong arguments":    {`{"op":"job.start","args":{"a":1}}`, nil, sdk.Invalid, "refuse"},
		"unknown arguments":  {`{"op":"job.start","args":{"z":"1"}}`, nil, sdk.Invalid, "refuse"},
		"skill taken away":   {start, func(h *house) { h.Catalog.Replace(nil) }, sdk.Unavailable, "refuse"},
		"not to be recorded": {start, func(h *house) { h.log.fail = func(audit.Event) error { return errors.New("disk full") } }, sdk.Unavailable, ""},
		"too many": {start, func(h *house) {
			for range 32 {
				r, err := h.Tasks.Begin(context.Background(), tasks.Spec{Owner: h.owner("one")})
				if err != nil {
					panic(err)
				}
				r.Go(func(soft, _ context.Context) tasks.End { <-soft.Done(); return tasks.End{} })
			}
		}, sdk.Limit, "refuse"},
	} {
		t.Run(name, func(t *testing.T) {
			h := houseOf(t, slow)
			var got error
			h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
				if j.Input.Job != 0 {
					t.Error("the job ran")
				}
				if c.before != nil {
					c.before(h)
				}
				before := len(h.log.all())
				got = op(ctx, j, c.header, nil)
				if last := h.log.all(); c.record != "" && (len(last) == before || string(last[len(last)-1].Type) != c.record || last[len(last)-1].Parent != j.Input.Call) {
					t.Errorf("recorded %+v", last[before:])
				}
				h.log.mu.Lock()
				h.log.fail = nil
				h.log.mu.Unlock()
				return sdk.Text("ok"), nil
			}
			if _, err := h.do(t, "one-t", `{}`); err != nil {
				t.Fatal(err)
			}
			if sdk.KindOf(got) != c.kind {
				t.Errorf("%v, want %s", got, c.kind)
			}
			jobs, err := h.Tasks.List(t.Context(), h.owner("one"))
			if want := map[bool]int{true: 32}[name == "too many"]; err != nil || len(jobs) != want {
				t.Errorf("%d jobs, %v", len(jobs), err)
			}
		})
	}
}

func TestJobStartsNoJob(t *testing.T) {
	h := newHouse(t)
	var direct, nested error
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		switch {
		case j.Input.Tool == "two-t":
			nested = op(ctx, j, start, nil)
		case j.Input.Job != 0:
			direct = op(ctx, j, start, nil)
			return h.viaOps(ctx, t, j, "two-t")
		default:
			return sdk.Text("started"), op(ctx, j, start, nil)
		}
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	h.ended(t, 1)
	for _, err := range []error{direct, nested} {
		if sdk.KindOf(err) != sdk.Limit || !strings.Contains(err.Error(), "may not start jobs") {
			t.Errorf("job_for_ever: %v", err)
		}
	}
}

// Jobs hold none of the slots of their skill, so that it can be called while
// they run, and what they invoke holds one of its own skill's.
func TestJobsHoldNoSlot(t *testing.T) {
	h := houseOf(t, slow)
	var group sync.WaitGroup
	group.Add(5)
	all := make(chan struct{})
	go func() { group.Wait(); close(all) }()
	var nested atomic.Int32
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		switch {
		case j.Input.Job != 0:
			if _, err := h.viaOps(ctx, t, j, "one-narrow"); err != nil {
				t.Error(err)
			}
			group.Done()
			<-all
			return sdk.Text("ok"), nil
		case j.Input.Tool == "one-narrow":
			nested.Add(1)
			return sdk.Text("ok"), nil
		}
		return sdk.Text("started"), op(ctx, j, start, nil)
	}
	for range 5 {
		if _, err := h.do(t, "one-t", `{}`); err != nil {
			t.Fatal(err)
		}
	}
	for id := range int64(5) {
		if j := h.ended(t, id+1); j.Status != tasks.Exited {
			t.Errorf("%+v", j)
		}
	}
	if nested.Load() != 5 {
		t.Error(nested.Load())
	}
}

// What a job invokes cannot use the slot of a call that has ended, however it
// is related to it.
func TestJobBorrowsNoSlotOfTheDead(t *testing.T) {
	h := houseOf(t, slow)
	full, let := make(chan struct{}), make(chan struct{})
	var busy atomic.Int32
	var invoked error
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		switch {
		case j.Input.Tool == "two-t": // invokes one-t, which starts the job
			return h.viaOps(ctx, t, j, "one-t")
		case j.Input.Job != 0:
			<-full
			_, invoked = h.viaOps(ctx, t, j, "two-narrow")
			return sdk.Text("ok"), nil
		case j.Input.Tool == "two-narrow":
			switch busy.Add(1) {
			case 1:
			case 2:
				close(full)
			default:
				return sdk.Text("a third one"), nil
			}
			<-let
			return sdk.Text("ok"), nil
		}
		return sdk.Text("started"), op(ctx, j, start, nil)
	}
	if _, err := h.do(t, "two-t", `{}`); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 2 { // take both slots of skill two
		group.Go(func() {
			call := sdk.Call{Tool: "two-narrow", Scope: h.scope}
			if _, err := h.Call(t.Context(), call, nil); err != nil {
				t.Error(err)
			}
		})
	}
	h.ended(t, 1)
	close(let)
	group.Wait()
	if sdk.KindOf(invoked) != sdk.Limit || busy.Load() != 2 {
		t.Errorf("%d ran, %v", busy.Load(), invoked)
	}
}

func TestJobIsHeldToTheRate(t *testing.T) {
	h := houseOf(t, strings.Replace(manifestText, "[limits]\n", "[limits]\nrate = \"1/h\"\n", 1))
	var err error
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		err = op(ctx, j, start, nil)
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	if sdk.KindOf(err) != sdk.Limit {
		t.Error(err)
	}
}

// How a job ends, and what is told of it to the skill.
func TestJobEnds(t *testing.T) {
	wait := func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		<-ctx.Done()
		return sdk.Result{}, fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	long := `{"op":"job.start"}`
	for name, c := range map[string]struct {
		header string
		run    func(context.Context, executor.Job) (sdk.Result, error)
		kill   string
		status tasks.Status
		result string
		says   string
		kind   sdk.Kind // in the audit log
	}{
		"text":         {long, ok, "", tasks.Exited, `"done"`, "", ""},
		"max_timeout":  {long, wait, "", tasks.TimedOut, "", "within 600ms", sdk.Limit},
		"its own time": {`{"op":"job.start","timeout_ms":100}`, wait, "", tasks.TimedOut, "", "within 100ms", sdk.Limit},
		"no more time": {`{"op":"job.start","timeout_ms":5000}`, wait, "", tasks.TimedOut, "", "within 600ms", sdk.Limit},
		"killed":       {long, wait, "KILL", tasks.Killed, "", "", sdk.Canceled},
		"after its time": {`{"op":"job.start","timeout_ms":100}`, func(ctx context.Context, j executor.Job) (sdk.Result, error) {
			<-j.Soft.Done()
			return sdk.Text("partial"), nil
		}, "", tasks.TimedOut, `"partial"`, "", ""},
		"asked": {long, func(ctx context.Context, j executor.Job) (sdk.Result, error) {
			<-j.Soft.Done()
			var s *sdk.Stop
			if !errors.As(context.Cause(j.Soft), &s) || s.Signal != "INT" || s.Grace != 30*time.Second || ctx.Err() != nil {
				return sdk.Result{}, fmt.Errorf("asked to stop by %v", context.Cause(j.Soft))
			}
			return sdk.Text("bye"), nil
		}, "INT", tasks.Killed, `"bye"`, "", ""},
		"failed": {long, func(context.Context, executor.Job) (sdk.Result, error) { return sdk.Result{Failed: true}, nil }, "", tasks.Exited, "", "reports a failure", sdk.Guest},
		"failed so": {long, func(context.Context, executor.Job) (sdk.Result, error) {
			r := sdk.Text("exit 1")
			r.Failed = true
			return r, nil
		}, "", tasks.Exited, `"exit 1"`, "exit 1", sdk.Guest},
		"denied": {long, func(_ context.Context, j executor.Job) (sdk.Result, error) {
			return sdk.Result{}, j.Grant.Check(read("/etc/passwd"))
		}, "", tasks.Exited, "", "denied: filesystem.read /etc/passwd", sdk.Denied},
		"a bug": {long, func(context.Context, executor.Job) (sdk.Result, error) { panic("at /home/ann") }, "", tasks.Exited, "", "the host failed", sdk.Internal},
		"asks": {long, func(context.Context, executor.Job) (sdk.Result, error) {
			return sdk.Result{Questions: map[string]sdk.Question{"q": {Kind: sdk.QuestionForm}}}, nil
		}, "", tasks.Exited, "", "cannot ask", sdk.Guest},
		"a broken promise": {long, func(context.Context, executor.Job) (sdk.Result, error) {
			return sdk.Result{Structured: json.RawMessage(`{"n":"x"}`)}, nil
		}, "", tasks.Exited, "", "output schema", sdk.Guest},
	} {
		t.Run(name, func(t *testing.T) {
			h := houseOf(t, strings.Replace(manifestText, `timeout = "150ms"`, `timeout = "600ms"`, 1))
			h.starter(c.header, c.run)
			if _, err := h.do(t, "one-t", `{}`); err != nil {
				t.Fatal(err)
			}
			if c.kill != "" {
				if _, _, err := h.Tasks.Kill(t.Context(), h.owner("one"), 1, c.kill, 30*time.Second); err != nil {
					t.Fatal(err)
				}
			}
			j := h.ended(t, 1)
			if j.Status != c.status || string(j.Result) != c.result || !strings.Contains(j.Error, c.says) || c.says == "" && j.Error != "" {
				t.Errorf("%s, result %s, error %q", j.Status, j.Result, j.Error)
			}
			for _, hidden := range []string{"policy.toml", "[capabilities]", "/home/ann", "manifest:"} {
				if strings.Contains(j.Error, hidden) {
					t.Errorf("the guest is told %q", j.Error)
				}
			}
			if e := h.log.jobEnd(t); e.Kind != c.kind {
				t.Errorf("recorded as %q: %s", e.Kind, e.Error)
			}
		})
	}
}
