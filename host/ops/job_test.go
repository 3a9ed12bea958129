package ops

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

// withJobs is a binding whose jobs do what run does.
func withJobs(t testing.TB, run func(r *tasks.Running, soft context.Context) tasks.End) Binding {
	t.Helper()
	b := anyone("a")
	b.Jobs = tasks.New(tasks.Options{Store: &memory{}, Dir: filepath.Join(t.TempDir(), "tasks"),
		Boots: boot.New(func() (string, error) { return "b1", nil }, func(string) (bool, error) { return true, nil })})
	t.Cleanup(func() {
		if err := b.Jobs.Close(); err != nil {
			t.Error(err)
		}
	})
	o := tasks.Owner{Caller: b.Scope.Caller, Workspace: b.Scope.Workspace, Session: b.Scope.Session, Skill: b.Skill}
	b.Output = b.Jobs.Output(tasks.Spec{Owner: o})
	b.StartJob = func(ctx context.Context, s JobStart) (tasks.Job, time.Duration, error) {
		r, err := b.Jobs.Begin(ctx, tasks.Spec{Owner: o, Description: s.Description, Args: s.Args})
		if err != nil {
			return tasks.Job{}, 0, err
		}
		r.Go(func(soft, _ context.Context) tasks.End { return run(r, soft) })
		return r.Job(), max(s.Timeout, time.Second), nil
	}
	return b
}

func TestJobs(t *testing.T) {
	tab, _ := newTable(t)
	b := withJobs(t, func(r *tasks.Running, soft context.Context) tasks.End {
		_, _, _ = r.Output().Append(context.Background(), []byte("hello\n"))
		<-soft.Done()
		return tasks.End{Result: json.RawMessage(`{"signal":"TERM"}`)}
	})
	o := tab.Bind(b)
	ask(t, o, `{"op":"job.list"}`).is(t, `{"jobs":[]}`)
	started := ask(t, o, `{"op":"job.start","args":{"x":1},"description":"d","timeout_ms":5000}`)
	if started.h["id"] != 1.0 || started.h["status"] != "running" || started.h["timeout_ms"] != 5000.0 || started.h["uri"] != "skill-output://1" {
		t.Fatal(started)
	}
	got := ask(t, o, `{"op":"job.read","id":1,"wait_ms":60000}`)
	if got.err != nil || string(got.blobs[0]) != "hello\n" || got.h["next"] != 6.0 || got.h["cursor"] != 0.0 || got.h["eof"] != false || got.h["dropped"] != 0.0 {
		t.Fatal(got)
	}
	if got := ask(t, o, `{"op":"job.read","id":1,"cursor":0,"max_bytes":16}`); string(got.blobs[0]) != "hello\n" || got.h["unread"] != 0.0 {
		t.Error(got)
	}
	killed := ask(t, o, `{"op":"job.kill","id":1,"grace_ms":60000}`)
	if killed.h["was"] != "running" || killed.h["status"] != "killed" || quote(killed.h["result"]) != `{"signal":"TERM"}` {
		t.Error(killed)
	}
	jobs := ask(t, o, `{"op":"job.list"}`).h["jobs"].([]any)
	if j := jobs[0].(map[string]any); len(jobs) != 1 || j["status"] != "killed" || quote(j["args"]) != `{"x":1}` || j["description"] != "d" {
		t.Error(jobs)
	}
	ask(t, o, `{"op":"job.read","id":2}`).fails(t, sdk.NotFound, "no job 2")
	other := b
	other.Skill = "b"
	ask(t, tab.Bind(other), `{"op":"job.read","id":1}`).fails(t, sdk.NotFound, "no job 1")
	ask(t, tab.Bind(other), `{"op":"job.kill","id":1}`).fails(t, sdk.NotFound)
}

func TestMalformedJobRequests(t *testing.T) {
	tab, _ := newTable(t)
	b := withJobs(t, func(*tasks.Running, context.Context) tasks.End { return tasks.End{} })
	blob := []byte("x")
	for _, c := range []struct {
		header string
		blobs  [][]byte
	}{
		{`{"op":"job.start","args":[]}`, nil}, {`{"op":"job.start","args":"{}"}`, nil}, {`{"op":"job.start","tool":"x"}`, nil}, {`{"op":"job.start"}`, [][]byte{blob}},
		{`{"op":"job.start","timeout_ms":0}`, nil}, {`{"op":"job.start","timeout_ms":86400001}`, nil}, {`{"op":"job.start","timeout_ms":9223372036854775807}`, nil},
		{`{"op":"job.start","description":"` + strings.Repeat("d", maxDescription+1) + `"}`, nil},
		{`{"op":"job.list","status":"running"}`, nil},
		{`{"op":"job.read","id":"1"}`, nil}, {`{"op":"job.read","id":1,"max_bytes":15}`, nil}, {`{"op":"job.read","id":1,"max_bytes":1048577}`, nil}, {`{"op":"job.read","id":1,"wait_ms":-1}`, nil}, {`{"op":"job.read","id":1,"wait_ms":60001}`, nil},
		{`{"op":"job.kill","id":1,"signal":"SIGTERM"}`, nil}, {`{"op":"job.kill","id":1,"signal":"USR1"}`, nil}, {`{"op":"job.kill","id":1,"grace_ms":60001}`, nil}, {`{"op":"job.kill","id":1,"grace_ms":-1}`, nil},
		{`{"op":"output.write"}`, nil}, {`{"op":"output.write"}`, [][]byte{blob, blob}}, {`{"op":"output.write","data":"x"}`, [][]byte{blob}},
		{`{"op":"output.link"}`, [][]byte{blob}}, {`{"op":"output.link","id":1}`, nil},
	} {
		a := ask(t, tab.Bind(b), c.header, c.blobs...)
		if a.err == nil || a.err.Kind != sdk.Invalid || a.err.Op == "" {
			t.Errorf("%.100s with %d blobs: %v %v", c.header, len(c.blobs), a.h, a.err)
		}
	}
	o := tasks.Owner{Caller: b.Scope.Caller, Workspace: b.Scope.Workspace, Session: b.Scope.Session, Skill: b.Skill}
	if jobs, err := b.Jobs.List(t.Context(), o); err != nil || len(jobs) != 0 {
		t.Errorf("started %v, %v", jobs, err)
	}
}

func TestOutput(t *testing.T) {
	tab, _ := newTable(t)
	b := withJobs(t, nil)
	o := tab.Bind(b)
	ask(t, o, `{"op":"output.write"}`, []byte("one\n")).is(t, `{"bytes":4}`)
	link := ask(t, o, `{"op":"output.link"}`)
	if link.h["id"] != 1.0 || link.h["uri"] != "skill-output://1" || link.h["bytes"] != 4.0 {
		t.Fatal(link)
	}
	ask(t, o, `{"op":"output.write"}`, []byte("two\n")).is(t, `{"bytes":8}`)
	if got := ask(t, o, `{"op":"job.read","id":1}`); string(got.blobs[0]) != "one\ntwo\n" || got.h["eof"] != false {
		t.Error(got)
	}
	ask(t, o, `{"op":"job.kill","id":1}`).fails(t, sdk.Invalid, "no job")
	ask(t, o, `{"op":"job.list"}`).is(t, `{"jobs":[]}`)
	b.Output.End(tasks.End{})
	ask(t, o, `{"op":"output.write"}`, []byte("x")).fails(t, sdk.Invalid, "has ended")
	if got := ask(t, o, `{"op":"job.read","id":1}`); got.h["eof"] != true || got.h["status"] != "exited" {
		t.Error(got)
	}
}

// A guest that is being stopped can still say what it has to say, and pays
// nothing for it.
func TestLastWords(t *testing.T) {
	tab, _ := newTable(t)
	o := tab.Bind(withJobs(t, nil))
	for range Budget {
		ask(t, o, `{"op":"time"}`)
	}
	ask(t, o, `{"op":"time"}`).fails(t, sdk.Limit)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&sdk.Stop{Signal: "TERM"})
	askCtx(t, ctx, o, `{"op":"output.write"}`, []byte("bye\n")).is(t, `{"bytes":4}`)
	link := askCtx(t, ctx, tab.Bind(withJobs(t, nil)), `{"op":"output.link"}`)
	if link.err != nil || link.h["id"] != 1.0 {
		t.Error(link)
	}
	askCtx(t, ctx, tab.Bind(withJobs(t, nil)), `{"op":"job.list"}`).fails(t, sdk.Canceled)
}

func TestNoJobs(t *testing.T) {
	tab, _ := newTable(t)
	for _, h := range []string{`{"op":"job.start"}`, `{"op":"job.list"}`, `{"op":"job.read","id":1}`, `{"op":"job.kill","id":1}`, `{"op":"output.link"}`} {
		ask(t, tab.Bind(anyone("a")), h).fails(t, sdk.Unavailable, "keeps no")
	}
	ask(t, tab.Bind(anyone("a")), `{"op":"output.write"}`, nil).fails(t, sdk.Unavailable)
	b := withJobs(t, nil)
	b.StartJob = nil
	ask(t, tab.Bind(b), `{"op":"job.start"}`).fails(t, sdk.Denied)
}

// What refuses a job, and where its files are, is none of the guest's business.
func TestJobErrorsAreBare(t *testing.T) {
	tab, _ := newTable(t)
	b := withJobs(t, func(*tasks.Running, context.Context) tasks.End { return tasks.End{} })
	o := tab.Bind(b)
	start := b.StartJob
	b.StartJob = func(context.Context, JobStart) (tasks.Job, time.Duration, error) {
		return tasks.Job{}, 0, &sdk.Error{Kind: sdk.Denied, What: "the operator does not allow this call", Hint: "/home/ann/policy.toml:7", Denial: &sdk.Denial{Capability: "call", Layer: "operator", File: "/home/ann/policy.toml", Line: 7}}
	}
	if a := ask(t, tab.Bind(b), `{"op":"job.start"}`); a.err == nil || a.err.Kind != sdk.Denied || strings.Contains(quote(a.h), "policy.toml") {
		t.Error(a)
	}
	b.StartJob = start
	link := ask(t, o, `{"op":"output.link"}`)
	folder := filepath.Dir(link.h["path"].(string))
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	ask(t, o, `{"op":"output.write"}`, []byte("x\n"))
	b.Output.End(tasks.End{})
	if a := ask(t, o, `{"op":"job.read","id":1}`); a.err == nil || strings.Contains(a.err.Error(), folder) {
		t.Errorf("%v", a.err)
	}
	if err := kept(errors.New("x")); err.Error() != "x" {
		t.Error(err)
	}
}
