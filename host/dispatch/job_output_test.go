package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

// The host closes: its jobs end, and are recorded.
func TestJobEndsWithTheHost(t *testing.T) {
	h := newHouse(t)
	h.starter(start, func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		<-j.Soft.Done()
		return sdk.Text("bye"), nil
	})
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	if err := h.Tasks.Close(); err != nil {
		t.Fatal(err)
	}
	if got := h.log.types(); strings.Count(got, "start") != 2 || strings.Count(got, "end") != 2 {
		t.Errorf("records %q", got)
	}
	if j := h.ended(t, 1); j.Status != tasks.Killed || j.Error != "the host shut down" {
		t.Errorf("%+v", j)
	}
}

// What a call writes can be read after it, if the call has linked to it.
func TestCallOutput(t *testing.T) {
	for name, c := range map[string]struct {
		link   bool
		err    error
		status tasks.Status
	}{
		"linked":   {true, nil, tasks.Exited},
		"failed":   {true, &sdk.Error{Kind: sdk.Guest, What: "exit 1"}, tasks.Exited},
		"canceled": {true, context.Canceled, tasks.Killed},
		"not":      {false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			var link tasks.Link
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h.guest.run = func(hard context.Context, j executor.Job) (sdk.Result, error) {
				if err := op(hard, j, `{"op":"output.write"}`, nil, make([]byte, 100_000)); err != nil {
					t.Error(err)
				}
				if c.link {
					if err := op(hard, j, `{"op":"output.link"}`, &link); err != nil {
						t.Error(err)
					}
				}
				if errors.Is(c.err, context.Canceled) {
					cancel()
					<-hard.Done()
					return sdk.Result{}, &sdk.Error{Kind: sdk.Canceled, What: "canceled", Err: context.Cause(hard)}
				}
				return sdk.Text("ok"), c.err
			}
			if _, err := h.Call(ctx, sdk.Call{Tool: "one-t", Scope: h.scope}, nil); (err == nil) != (c.err == nil) {
				t.Fatal(err)
			}
			if !c.link {
				_, err := h.Tasks.Read(t.Context(), h.owner("one"), 1, tasks.Reading{Max: 16})
				if sdk.KindOf(err) != sdk.NotFound {
					t.Error(err)
				}
				return
			}
			p, err := h.Tasks.Read(t.Context(), h.owner("one"), link.ID, tasks.Reading{Max: 1 << 20})
			if err != nil || p.Status != c.status || !p.EOF || p.Bytes != 100_000 {
				t.Errorf("%+v, %v", p.Job, err)
			}
		})
	}
}

// A host without a room for jobs says so.
func TestNoTasks(t *testing.T) {
	h := newHouse(t)
	kept := h.Tasks
	h.Tasks = nil
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		for _, header := range []string{start, `{"op":"job.list"}`, `{"op":"output.link"}`} {
			if err := op(ctx, j, header, nil); sdk.KindOf(err) != sdk.Unavailable {
				t.Errorf("%s: %v", header, err)
			}
		}
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Error(err)
	}
	h.Tasks = kept
}
