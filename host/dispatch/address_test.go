package dispatch

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

// TestAddressed: what InvokeSkill answers keeps its own output schema, whatever
// the tool answers, and says which tool it was and what that one was denied.
func TestAddressed(t *testing.T) {
	h := newHouse(t)
	via, err := h.Catalog.Lookup("InvokeSkill")
	if err != nil || via.Output == nil {
		t.Fatal("InvokeSkill promises nothing: ", err)
	}
	for name, c := range map[string]struct {
		result sdk.Result
		touch  bool
		want   string // the member "result"
	}{
		"structured": {sdk.Result{Structured: json.RawMessage(`{"n":1}`)}, false, `{"n":1}`},
		"text":       {sdk.Text("ok"), false, ``},
		"failed":     {sdk.Result{Failed: true, Structured: json.RawMessage(`[1]`)}, false, `[1]`},
		"denied":     {sdk.Text("ok"), true, ``},
	} {
		h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
			if c.touch {
				_ = j.Grant.Check(capability.Access{Kind: capability.Filesystem, Verb: capability.Read, Target: "/etc/shadow"})
			}
			return c.result, nil
		}
		r, err := h.do(t, "InvokeSkill", `{"skill_name":"guest","tool":"t"}`)
		if err != nil {
			t.Fatal(name, err)
		}
		if err := via.Output.Check(r.Structured); err != nil {
			t.Errorf("%s: %v in %s", name, err, r.Structured)
		}
		var got addressed
		if err := json.Unmarshal(r.Structured, &got); err != nil || got.Kind != "tool" || got.Skill != "guest" || got.Tool != "t" || got.Digest == "" || string(got.Result) != c.want {
			t.Errorf("%s: %s", name, r.Structured)
		}
		var want []denied
		if c.touch {
			want = []denied{{"filesystem.read", "/etc/shadow"}}
		}
		if !reflect.DeepEqual(got.Denied, want) {
			t.Errorf("%s: denied %v", name, got.Denied)
		}
		if direct, err := h.do(t, "guest.t", `{}`); err != nil || string(direct.Structured) != string(c.result.Structured) {
			t.Errorf("%s: called by its name: %s, %v", name, direct.Structured, err)
		}
	}
}
