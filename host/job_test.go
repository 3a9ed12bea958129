package host

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

func TestJobsAsTasks(t *testing.T) {
	w := newWorld(t)
	h, other := w.openErrands(t), w.openErrands(t)
	scope := h.Scope()
	start := func(ctx context.Context) (*tasks.Running, string) {
		t.Helper()
		r, err := h.tasks.Begin(ctx, tasks.Spec{Owner: tasks.Owner{Caller: scope.Caller, Workspace: scope.Workspace, Session: scope.Session, Skill: "errand"}, Description: "d"})
		if err != nil {
			t.Fatal(err)
		}
		return r, h.JobID(scope, sdk.Event{Kind: sdk.EventJob, Job: r.ID(), Message: "errand"})
	}
	r, id := start(t.Context())
	r.Go(func(soft, _ context.Context) tasks.End {
		<-soft.Done()
		return tasks.End{Error: "stopped"}
	})
	if j, err := h.Job(t.Context(), scope, id); err != nil || j.Status != task.Working || j.ID != id || j.Message != "d" || !j.Expires.IsZero() {
		t.Fatalf("%+v %v", j, err)
	}
	if same := other.JobID(scope, sdk.Event{Job: r.ID(), Message: "errand"}); same != id {
		t.Errorf("another host calls it %s", same)
	}
	next, _ := start(t.Context())
	defer next.Discard()
	stranger, elsewhere := scope, scope
	stranger.Caller, elsewhere.Workspace = "mallory", "/"
	last := id[:len(id)-1] + string("AB"[strings.Count(id[len(id)-1:], "A")])
	for _, try := range []struct {
		name  string
		scope sdk.Scope
		id    string
	}{
		{"another_caller", stranger, id}, {"another_workspace", elsewhere, id}, {"the_number", scope, "1"}, {"no_name", scope, "job-1"}, {"empty_name", scope, "job-1-"},
		{"last_letter", scope, last}, {"next_job", scope, strings.Replace(id, "job-1-", "job-2-", 1)}, {"no_prefix", scope, strings.TrimPrefix(id, "job-")},
		{"another_spelling", scope, strings.Replace(id, "job-1-", "job-+1-", 1)}, {"lower_case", scope, strings.ToLower(id)}, {"empty", scope, ""},
	} {
		t.Run(try.name, func(t *testing.T) {
			if j, err := h.Job(t.Context(), try.scope, try.id); sdk.KindOf(err) != sdk.NotFound || j.ID != "" {
				t.Errorf("%+v %v", j, err)
			}
			if err := h.CancelJob(t.Context(), try.scope, try.id); sdk.KindOf(err) != sdk.NotFound {
				t.Error(err)
			}
		})
	}
	if err := h.CancelJob(t.Context(), scope, id); err != nil {
		t.Fatal(err)
	}
	if j, err := h.Job(t.Context(), scope, id); err != nil || j.Status != task.Cancelled {
		t.Errorf("%+v %v", j, err)
	}
	w.write(t, "policy.toml", "[skills.errand]\nallow = false\n")
	eventually(t, "who may not use the skill does not see its jobs", func() bool {
		_, err := h.Job(t.Context(), scope, id)
		return sdk.KindOf(err) == sdk.NotFound
	})
}

func TestJobTask(t *testing.T) {
	at := time.Unix(100, 0)
	for _, c := range []struct {
		name   string
		job    tasks.Job
		status task.Status
		text   string
		failed bool
	}{
		{"exited", tasks.Job{Status: tasks.Exited, Result: json.RawMessage(`{"exit_code":0}`)}, task.Completed, "", false},
		{"exited_with_text", tasks.Job{Status: tasks.Exited, Result: json.RawMessage(`"ok"`)}, task.Completed, "ok", false},
		{"failed", tasks.Job{Status: tasks.Exited, Result: json.RawMessage(`"no"`), Error: "no"}, task.Completed, "no", true},
		{"timed_out", tasks.Job{Status: tasks.TimedOut}, task.Completed, "limit: its time was over", true},
		{"killed", tasks.Job{Status: tasks.Killed}, task.Cancelled, "", false},
		{"lost", tasks.Job{Status: tasks.Lost, Error: "the host that ran it has ended"}, task.Failed, "", false},
		{"running", tasks.Job{Status: tasks.Active}, task.Working, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.job.StartedAt, c.job.EndedAt = at, at
			got := jobTask("id", c.job)
			text := ""
			if len(got.Result.Content) > 0 {
				text = got.Result.Content[0].Text
			}
			if got.Status != c.status || text != c.text || got.Result.Failed != c.failed || got.Expires.IsZero() != (c.status == task.Working) {
				t.Errorf("%+v", got)
			}
		})
	}
}
