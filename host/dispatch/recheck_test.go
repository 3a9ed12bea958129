package dispatch

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

var native = strings.Replace(slow, `runtime = "wasm"`, `runtime = "plugin"`, 1)

// The least level of confinement: what the operator says, else what the
// manifest does; nothing for what is no native process.
func TestLevel(t *testing.T) {
	for name, c := range map[string]struct{ text, policy, level, recorded string }{
		"manifest":     {native + "[sandbox]\nrequire = \"strict\"\n", "", "strict", "plugin/strict"},
		"default":      {native, "", "landlock", "plugin/landlock"},
		"all skills":   {native, "[defaults]\nsandbox = \"strict\"\n", "strict", "plugin/strict"},
		"this skill":   {native, "[defaults]\nsandbox = \"strict\"\n[skills.one]\nsandbox = \"none\"\n", "none", "plugin/none"},
		"another":      {native, "[skills.two]\nsandbox = \"none\"\n", "landlock", "plugin/landlock"},
		"of itself":    {native + "[sandbox]\nrequire = \"none\"\n", "", "landlock", "plugin/landlock"}, // none is the operator's word
		"not a native": {manifestText, "[defaults]\nsandbox = \"strict\"\n", "", "wasm"},
	} {
		t.Run(name, func(t *testing.T) {
			h := houseOf(t, c.text)
			if c.level != "" {
				h.Programs = programs{fake: h.guest, fixed: "one two guest"}
			}
			h.setPolicy(t, c.policy)
			var got []string
			var mu sync.Mutex
			h.starter(start, func(_ context.Context, j executor.Job) (sdk.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, j.Level)
				return sdk.Text("ok"), nil
			})
			if plan, err := h.Plan(sdk.Call{Tool: "one-t", Scope: h.scope}); err != nil || plan.Level != c.level {
				t.Errorf("planned %q, %v", plan.Level, err)
			}
			if _, err := h.do(t, "one-t", `{}`); err != nil {
				t.Fatal(err)
			}
			h.ended(t, 1)
			if !slices.Equal(got, []string{c.level}) {
				t.Errorf("level %q, want %q", got, c.level)
			}
			for _, e := range h.log.all() {
				if e.Type == audit.TypeStart && e.Level != c.recorded {
					t.Errorf("recorded as %q, want %q", e.Level, c.recorded)
				}
			}
		})
	}
}

// The record has the level that a call is run at, which is what the machine
// offers, and not what is asked for at least.
func TestLevelRecorded(t *testing.T) {
	for name, c := range map[string]struct{ offer, recorded string }{
		"better":     {"strict", "plugin/strict"},
		"the same":   {"landlock", "plugin/landlock"},
		"not enough": {"none", "plugin/none"}, // the executor refuses it
		"nothing":    {"", "plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			h := houseOf(t, native)
			h.Programs = programs{fake: h.guest, fixed: "one"}
			h.Offers = func() string { return c.offer }
			if _, err := h.do(t, "one-t", `{}`); err != nil {
				t.Fatal(err)
			}
			for _, e := range h.log.all() {
				if e.Type == audit.TypeStart && e.Level != c.recorded {
					t.Errorf("recorded as %q, want %q", e.Level, c.recorded)
				}
			}
		})
	}
}

// What the operator changes while a call runs ends it, if it cannot be held to
// the change.
func TestRecheck(t *testing.T) {
	const before = "[skills.one.capabilities]\nfilesystem = [\"write:${workspace}\", \"read:${workspace}/x?\"]\nnetwork = [\"example.com\"]\n"
	for name, c := range map[string]struct {
		after string
		fixed bool
		job   bool
		says  string // "" if it goes on
	}{
		"nothing":                 {before, true, false, ""},
		"a comment":               {"# a\n\n" + before, true, false, ""},
		"another order":           {"[skills.one.capabilities]\nnetwork = [\"example.com\"]\nfilesystem = [\"read:${workspace}/x?\", \"write:${workspace}\"]\n", true, false, ""},
		"the network":             {strings.Replace(before, "example.com", "example.org", 1), true, false, ""},
		"another skill":           {before + "[skills.two.deny]\nfilesystem = [\"read:/etc\"]\n", true, false, ""},
		"a list":                  {strings.Replace(before, "write:${workspace}\"", "read:${workspace}\"", 1), true, false, "policy.toml:2"},
		"a deny":                  {before + "[skills.one.deny]\nfilesystem = [\"read:${workspace}/in\"]\n", true, false, "policy.toml:5"},
		"a deny of all":           {before + "[defaults.deny]\nexec = [\"git\"]\n", true, false, "policy.toml:5"},
		"the environment":         {before + "env = []\n", true, false, "policy.toml:1"},
		"programs":                {before + "exec = []\n", true, false, "policy.toml:1"},
		"a rule that is gone":     {"", true, false, "policy.toml:1"},
		"the tool":                {before + "[skills.one.tools.one-t]\nallow = false\n", true, false, "policy.toml:5"},
		"the caller":              {before + "[callers.\"local:me\"]\nallow = false\n", true, false, "policy.toml:5"},
		"a higher level":          {before + "[skills.one]\nsandbox = \"strict\"\n", true, false, "policy.toml:5"},
		"a lower level":           {before + "[skills.one]\nsandbox = \"none\"\n", true, false, ""},
		"dynamic, a deny":         {before + "[skills.one.deny]\nfilesystem = [\"read:${workspace}/in\"]\n", false, false, ""},
		"dynamic, the tool":       {before + "[skills.one]\nallow = false\n", false, false, ""},
		"job":                     {before, true, true, ""},
		"job, a deny":             {before + "[skills.one.deny]\nfilesystem = [\"read:${workspace}/in\"]\n", true, true, "policy.toml:5"},
		"job, dynamic, a deny":    {before + "[skills.one.deny]\nfilesystem = [\"read:${workspace}/in\"]\n", false, true, ""},
		"job, dynamic, the skill": {before + "[skills.one]\nallow = false\n", false, true, "policy.toml:5"},
	} {
		t.Run(name, func(t *testing.T) {
			h := houseOf(t, native)
			if c.fixed {
				h.Programs = programs{fake: h.guest, fixed: "one"}
			}
			var now atomic.Pointer[policy.Policy]
			set := func(text string) {
				h.setPolicy(t, text)
				now.Store(h.policy)
			}
			set(before)
			h.Policy = now.Load
			returned := make(chan struct{}) // the starter, which would be ended as well
			body := func(ctx context.Context, j executor.Job) (sdk.Result, error) {
				if j.Input.Job != 0 {
					<-returned
				}
				set(c.after)
				h.Recheck()
				if (ctx.Err() != nil) != (c.says != "") || ctx.Err() != nil && j.Soft.Err() == nil {
					t.Errorf("the guest is stopped: %v", context.Cause(ctx))
				}
				return sdk.Text("whatever"), nil // a guest may not notice
			}
			var err error
			if c.job {
				h.starter(start, body)
				if _, err := h.do(t, "one-t", `{}`); err != nil {
					t.Fatal(err)
				}
				close(returned)
				j := h.ended(t, 1)
				if want := map[bool]tasks.Status{true: tasks.Killed, false: tasks.Exited}[c.says != ""]; j.Status != want || strings.Contains(j.Error, "policy.toml") {
					t.Errorf("%+v", j)
				}
				if e := h.log.jobEnd(t); e.Error != "" {
					err = &sdk.Error{Kind: e.Kind, What: e.Error}
				}
			} else {
				h.guest.run = body
				_, err = h.do(t, "one-t", `{}`)
			}
			switch {
			case c.says == "" && err != nil:
				t.Errorf("ended: %v", err)
			case c.says != "" && (sdk.KindOf(err) != sdk.Denied || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v, want %q", err, c.says)
			}
			if len(h.state.watched) != 0 {
				t.Errorf("%d are still watched", len(h.state.watched))
			}
		})
	}
}

// What a tool that has invoked it is denied ends a native call too, and so does
// what the starter of a job is.
func TestRecheckLooksAtParents(t *testing.T) {
	h := houseOf(t, native)
	h.Programs = programs{fake: h.guest, fixed: "two"}
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		if j.Input.Tool == "one-t" {
			return h.viaOps(ctx, t, j, "two-t")
		}
		h.setPolicy(t, "[skills.one.deny]\nfilesystem = [\"read:${workspace}/in\"]\n")
		h.Recheck()
		if ctx.Err() == nil {
			t.Error("the child goes on")
		}
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{}`); sdk.KindOf(err) != sdk.Denied {
		t.Error(err)
	}
}

// A change between the decision and the run is not missed.
func TestRecheckBeforeTheRun(t *testing.T) {
	h := houseOf(t, native)
	h.Programs = programs{fake: h.guest, fixed: "one"}
	plan, err := h.Plan(sdk.Call{Tool: "one-t", Scope: h.scope})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{d: h.Dispatcher, plan: plan}
	hard := r.begin(t.Context())
	defer r.clock.stop()
	h.setPolicy(t, "[skills.one.deny]\nfilesystem = [\"read:${workspace}/in\"]\n")
	defer r.watch()()
	if hard.Err() == nil || sdk.KindOf(r.clock.revocation()) != sdk.Denied {
		t.Errorf("it runs: %v", r.clock.revocation())
	}
}
