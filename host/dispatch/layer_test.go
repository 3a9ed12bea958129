package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/session"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// planMode is a layer as plan mode lays it.
const planMode = `{"op":"layer.push","name":"plan mode","why":"plan 7; PlanMode exit ends it",` +
	`"layer":{"filesystem.write":["write:${workspace}/plan.md","write:${tmp}"],"network":[],"builtin":{"two":{"network":null},"guest":{"network":null}}}}`

// laidHouse is a house whose skills may lay layers over sessions.
func laidHouse(t testing.TB, text string) *house {
	t.Helper()
	h := houseOf(t, text)
	h.Laid = session.NewLayers(session.LayerOptions{Store: h.store, Realpath: filepath.EvalSymlinks})
	if err := os.WriteFile(filepath.Join(h.scope.Workspace, "plan.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// does makes tool perform an operation, and returns its error.
func (h *house) does(t testing.TB, tool, header string, into any) error {
	t.Helper()
	was := h.guest.run
	defer func() { h.guest.run = was }()
	var failed error
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		failed = op(ctx, j, header, into)
		return sdk.Text("done"), nil
	}
	if _, err := h.do(t, tool, `{}`); err != nil {
		return err
	}
	return failed
}

func write(path string) capability.Access {
	return capability.Access{Kind: capability.Filesystem, Verb: capability.Write, Target: path}
}

var example = capability.Access{Kind: capability.Network, Verb: capability.Connect, Net: &capability.Net{Scheme: "https", Host: "example.com", Port: 443}}

// rights writes which of three accesses j has: the plan, another file, the
// network.
func (h *house) rights(j executor.Job) string {
	out := ""
	for name, a := range map[string]capability.Access{"p": write(h.scope.Workspace + "/plan.md"), "w": write(h.scope.Workspace + "/x"), "n": example} {
		if j.Grant.Allows(a) {
			out += name
		}
	}
	for _, known := range []string{"pwn", "pw", "pn", "wn", "p", "w", "n"} { // in one order
		if len(known) == len(out) && strings.Trim(out, known) == "" {
			return known
		}
	}
	return out
}

// TestLayerOnEveryWay: a layer lies under every call of the session, whatever
// way it comes.
func TestLayerOnEveryWay(t *testing.T) {
	text := strings.NewReplacer("[capabilities]", "[resources.doc]\nuri = \"doc://x\"\ntool = \"t\"\n[prompts.chat]\ntool = \"t\"\n[capabilities]").Replace(slow)
	h := laidHouse(t, text)
	seen := map[string]string{}
	note := func(way string) func(context.Context, executor.Job) (sdk.Result, error) {
		return func(_ context.Context, j executor.Job) (sdk.Result, error) {
			seen[way] = h.rights(j)
			return sdk.Text("ok"), nil
		}
	}
	running, before := make(chan struct{}), make(chan struct{})
	h.starter(start, func(ctx context.Context, j executor.Job) (sdk.Result, error) { // a job from before
		close(running)
		<-before
		seen["job from before"] = h.rights(j)
		return sdk.Text("ok"), op(ctx, j, `{"op":"invoke","tool":"two-t"}`, nil)
	})
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	<-running
	var reply struct{ Running int }
	if err := h.does(t, "one-t", planMode, &reply); err != nil {
		t.Fatal(err)
	}
	if reply.Running != 1 {
		t.Errorf("%d jobs go on, want 1", reply.Running)
	}
	h.guest.run = note("what the job invokes")
	close(before)
	h.ended(t, 1)
	h.guest.run = note("call")
	for way, call := range map[string]sdk.Call{
		"call":              {Tool: "one-t"},
		"folder skill":      {Tool: "guest.t"},
		"InvokeSkill":       {Tool: "InvokeSkill", Args: json.RawMessage(`{"skill_name":"guest","tool":"t"}`)},
		"resource":          {Kind: sdk.CallResource, Tool: "doc://x"},
		"prompt":            {Kind: sdk.CallPrompt, Tool: "guest.chat"},
		"built-in with own": {Tool: "two-t"},
		"narrowed":          {Tool: "one-t", Narrow: json.RawMessage(`{"filesystem":["write:${workspace}"],"network":["*"]}`)},
		"other rights":      {Tool: "one-t", Scope: sdk.Scope{Rights: "all"}},
	} {
		call.Scope = sdk.Scope{Caller: h.scope.Caller, Workspace: h.scope.Workspace, Session: h.scope.Session, Rights: call.Scope.Rights}
		h.guest.run = note(way)
		if _, err := h.Call(t.Context(), call, nil); err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		if j.Input.Tool == "two-t" {
			return note("nested")(ctx, j)
		}
		return sdk.Text("ok"), op(ctx, j, `{"op":"invoke","tool":"two-t"}`, nil)
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	h.starter(start, note("job"))
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	h.ended(t, 2) // only then another guest runs
	other := h.scope
	other.Session = "s2"
	h.guest.run = note("another session")
	if _, err := h.Call(t.Context(), sdk.Call{Tool: "one-t", Scope: other}, nil); err != nil {
		t.Fatal(err)
	}
	for way, want := range map[string]string{
		"call": "p", "folder skill": "p", "InvokeSkill": "p", "resource": "p", "prompt": "p", "narrowed": "p", "other rights": "p", "nested": "p", "job": "p",
		"what the job invokes": "pn",  // of two, to which the layer leaves the network
		"built-in with own":    "pn",  //
		"job from before":      "pwn", // it keeps what it began with
		"another session":      "pwn",
	} {
		if seen[way] != want {
			t.Errorf("layer_not_under: %s: %q, want %q", way, seen[way], want)
		}
	}
}

// TestLayerEnds: only the skill that has laid a layer takes it away.
func TestLayerEnds(t *testing.T) {
	h := laidHouse(t, slow)
	if err := h.does(t, "one-t", planMode, nil); err != nil {
		t.Fatal(err)
	}
	var popped struct{ Popped bool }
	var list struct {
		Layers []struct {
			Name, Why string
			Layer     json.RawMessage
			Refused   int
		}
		Others int
	}
	const pop = `{"op":"layer.pop","name":"plan mode"}`
	if err := h.does(t, "two-t", pop, &popped); err != nil || popped.Popped {
		t.Errorf("layer_pop_of_other: %v, %v", popped, err)
	}
	if err := h.does(t, "two-t", `{"op":"layer.list"}`, &list); err != nil || len(list.Layers) != 0 || list.Others != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		err := j.Grant.Check(write(h.scope.Workspace + "/x"))
		return sdk.Result{Failed: err != nil, Content: sdk.Text("it did not work").Content}, nil
	}
	r, err := h.do(t, "two-t", `{}`)
	if err != nil || !r.Failed || !strings.Contains(r.Content[len(r.Content)-1].Text, `refused by layer "plan mode" of one, which says "plan 7; PlanMode exit ends it"`) {
		t.Errorf("the model is not told why: %+v, %v", r, err)
	}
	if err := h.does(t, "one-t", `{"op":"layer.list"}`, &list); err != nil || len(list.Layers) != 1 || list.Others != 0 || list.Layers[0].Refused != 1 || !strings.Contains(string(list.Layers[0].Layer), "plan.md") {
		t.Errorf("%+v, %v", list, err)
	}
	if err := h.does(t, "one-t", pop, &popped); err != nil || !popped.Popped {
		t.Errorf("its own: %v, %v", popped, err)
	}
	if r, err := h.do(t, "two-t", `{}`); err != nil || r.Failed {
		t.Errorf("after its end: %+v, %v", r, err)
	}
}

// TestLayerRecorded: what changes the rules of a session is on record, or it
// does not happen.
func TestLayerRecorded(t *testing.T) {
	h := laidHouse(t, slow)
	h.log.fail = func(e audit.Event) error {
		if strings.HasPrefix(e.Access, "layer.") {
			return errors.New("the disk is full")
		}
		return nil
	}
	if err := h.does(t, "one-t", planMode, nil); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("layer_unrecorded: %v", err)
	}
	if s, err := h.Laid.Of(h.scope); s != nil || err != nil {
		t.Errorf("layer_unrecorded: it lies there: %v, %v", s, err)
	}
	h.log.fail = nil
	for _, header := range []string{planMode, `{"op":"layer.pop","name":"plan mode"}`} {
		if err := h.does(t, "one-t", header, nil); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range h.log.all() {
		if strings.HasPrefix(e.Access, "layer.") {
			got = append(got, e.Access+" "+e.Target+" "+e.Note+" of "+e.Skill+" in "+e.Session)
		}
	}
	if want := "layer.push plan mode plan 7; PlanMode exit ends it of one in s1|layer.pop plan mode  of one in s1"; strings.Join(got, "|") != want {
		t.Errorf("recorded %q", got)
	}
}

// TestLayerWhileWaiting: a call that waits for a slot while a layer is laid runs
// under it.
func TestLayerWhileWaiting(t *testing.T) {
	h := laidHouse(t, slow)
	goOn, running := make(chan struct{}), make(chan struct{}, 3)
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		switch {
		case j.Input.Tool == "two-t":
			return sdk.Text("ok"), op(ctx, j, planMode, nil)
		case string(j.Input.Args) == `{"a":"late"}`:
			return sdk.Text(h.rights(j)), nil
		}
		running <- struct{}{}
		<-goOn
		return sdk.Text("ok"), nil
	}
	done := make(chan error, 2)
	for range 2 { // as many as there are slots
		go func() {
			_, err := h.Call(context.Background(), sdk.Call{Tool: "one-t", Scope: h.scope}, nil)
			done <- err
		}()
		<-running
	}
	late := make(chan string, 1)
	go func() {
		r, err := h.Call(context.Background(), sdk.Call{Tool: "one-t", Args: json.RawMessage(`{"a":"late"}`), Scope: h.scope}, nil)
		if err != nil {
			late <- err.Error()
			return
		}
		late <- r.Content[0].Text
	}()
	one := h.Catalog.Of("one")[0].Skill
	for h.gate(one).waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := h.do(t, "two-t", `{}`); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := <-late; got != "p" {
		t.Errorf("layer_while_waiting: the call that waited had %q", got)
	}
}

// TestLayerUnknown: where it cannot be told what lies over a session, no call
// runs, and nothing is planned.
func TestLayerUnknown(t *testing.T) {
	h := laidHouse(t, slow)
	h.scope.Session = "task:x"
	if err := h.does(t, "one-t", planMode, nil); err != nil {
		t.Fatal(err)
	}
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) { return sdk.Text(h.rights(j)), nil }
	if r, err := h.do(t, "one-t", `{}`); err != nil || r.Content[0].Text != "p" {
		t.Errorf("%+v, %v", r, err)
	}
	h.Laid = session.NewLayers(session.LayerOptions{Store: h.store, Realpath: filepath.EvalSymlinks}) // another host
	if r, err := h.do(t, "one-t", `{}`); err != nil || r.Content[0].Text != "p" {
		t.Errorf("layer_lost_by_restart: %+v, %v", r, err)
	}
	plan, err := h.Plan(sdk.Call{Tool: "one-t", Scope: h.scope})
	if err != nil || plan.Layers[len(plan.Layers)-1].Name != `layer "plan mode" of one` {
		t.Errorf("%+v, %v", plan.Layers, err)
	}
	layers, err := h.Layers(plan.Entry, h.scope)
	if err != nil || layers[len(layers)-1].Name != `layer "plan mode" of one` {
		t.Errorf("%+v, %v", layers, err)
	}
	h.Laid = session.NewLayers(session.LayerOptions{Store: failing{h.store}, Realpath: filepath.EvalSymlinks})
	ran := false
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) { ran = true; return sdk.Text("ok"), nil }
	if _, err := h.do(t, "one-t", `{}`); sdk.KindOf(err) != sdk.Unavailable || ran {
		t.Errorf("layer_store_down: %v, ran: %v", err, ran)
	}
	if _, err := h.Layers(plan.Entry, h.scope); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("layer_store_down: %v", err)
	}
	h.Laid = nil
	if err := h.does(t, "one-t", planMode, nil); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("a host without layers: %v", err)
	}
}

// A failing store answers no Get.
type failing struct{ store.Store }

func (failing) Get(context.Context, string, string) ([]byte, int64, error) {
	return nil, 0, errors.New("gone")
}

// TestLayerTwice: a tool that another one invokes has a layer once.
func TestLayerTwice(t *testing.T) {
	h := laidHouse(t, slow)
	if err := h.does(t, "one-t", planMode, nil); err != nil {
		t.Fatal(err)
	}
	n := 0
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		if j.Input.Tool == "t" {
			for _, l := range j.Grant.Layers() {
				if l.Pushed {
					n++
				}
			}
			return sdk.Text("ok"), nil
		}
		return sdk.Text("ok"), op(ctx, j, `{"op":"invoke","tool":"guest.t"}`, nil)
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil || n != 1 {
		t.Errorf("%d times, %v", n, err)
	}
}

// TestLayerOfNative: what the kernel refuses a program is counted by what the
// executor says of it.
func TestLayerOfNative(t *testing.T) {
	h := laidHouse(t, slow)
	h.Programs = programs{fake: h.guest, fixed: "two"}
	if err := h.does(t, "one-t", planMode, nil); err != nil {
		t.Fatal(err)
	}
	text, failed := "", false
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) {
		r := sdk.Text("touch: Read-only file system")
		r.Failed = failed
		r.Content = append(r.Content, sdk.Content{Type: sdk.TypeText, Text: text})
		return r, nil
	}
	for _, tt := range []struct {
		tool, text string
		failed     bool
	}{
		{"two-t", `layer "plan mode" of one narrows this session`, true}, // counts
		{"two-t", `layer "plan mode" of one narrows this session`, false},
		{"two-t", `something else`, true},
		{"one-t", `layer "plan mode" of one narrows this session`, true}, // a guest's own words
	} {
		text, failed = tt.text, tt.failed
		if _, err := h.do(t, tt.tool, `{}`); err != nil {
			t.Fatal(err)
		}
	}
	var list struct{ Layers []struct{ Refused int } }
	if err := h.does(t, "one-t", `{"op":"layer.list"}`, &list); err != nil || len(list.Layers) != 1 || list.Layers[0].Refused != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
