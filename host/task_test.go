package host

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/config"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/mcp"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

const errandSkill = `
name = "errand"
version = "1.0.0"
description = "Takes its time."
runtime = "container"
source = "test/errand:1"
[tools.Wait]
task = "optional"
[tools.Ask]
task = "required"
ask_first = true
[tools.Plain]
[tools.Served]
task = "long"
hidden = true
`

// errandRuntime runs the tools of errandSkill in the host itself.
type errandRuntime struct{}

func (errandRuntime) Enforces() []capability.Kind { return nil }
func (e errandRuntime) Load(context.Context, *manifest.Skill) (executor.Program, error) {
	return e, nil
}
func (errandRuntime) Close() error { return nil }

func (errandRuntime) Run(ctx context.Context, j executor.Job) (sdk.Result, error) {
	switch {
	case j.Input.Tool == "Wait":
		<-ctx.Done()
		return sdk.Result{}, &sdk.Error{Kind: sdk.Canceled, What: "stopped", Err: context.Cause(ctx)}
	case j.Input.Tool == "Ask" && j.Input.State == "":
		return sdk.Result{State: "asked", Questions: map[string]sdk.Question{"name": {Kind: sdk.QuestionForm, Message: "Who?", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`)}}}, nil
	case j.Input.Tool == "Ask" && j.Input.State == "asked":
		return sdk.Result{State: "again", Questions: map[string]sdk.Question{"sure": {Kind: sdk.QuestionForm, Message: "Sure?", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}}, nil
	}
	return sdk.Text("done " + string(j.Input.Answers["name"].Content) + j.Input.Answers["sure"].Action), nil
}

func (w *world) openErrands(t *testing.T) *Host {
	t.Helper()
	c, err := config.Load(config.Flags{Workspace: w.work}, func(name string) (string, bool) { return w.home, name == "SKILL_HOME" })
	if err != nil {
		t.Fatal(err)
	}
	s, err := manifest.Open(fstest.MapFS{manifest.FileName: {Data: []byte(errandSkill)}}, "")
	if err != nil {
		t.Fatal(err)
	}
	s.Home.Builtin = true
	h, err := Open(c, Options{Version: "test", Log: w.log, Extra: Extra{Runtime: "container", Executor: errandRuntime{}, Skills: []*manifest.Skill{s}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

var errandID = regexp.MustCompile(`"taskId":"([A-Z2-7]{26})"`)

// say sends one request of a client with tasks over a stream of its own.
func say(t *testing.T, h *Host, method, params string) string {
	t.Helper()
	var out bytes.Buffer
	line := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
	if err := mcp.Serve(t.Context(), h, strings.NewReader(line), &out, mcp.Options{Options: conversation.Options{Tasks: h.Errands()}, Scope: h.Scope()}); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return out.String()
}

func idOf(t *testing.T, answer string) string {
	t.Helper()
	m := errandID.FindStringSubmatch(answer)
	if m == nil {
		t.Fatalf("no task: %s", answer)
	}
	return m[1]
}

func (w *world) status(t *testing.T, h *Host, id, status string) {
	t.Helper()
	eventually(t, id+" is "+status, func() bool {
		return strings.Contains(say(t, h, "tasks/get", `"taskId":"`+id+`"`), `"status":"`+status+`"`)
	})
}

// recorded counts the audited events that hold all of these.
func (w *world) recorded(t *testing.T, parts ...string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.home, "audit", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // a directory
		}
	lines:
		for line := range strings.Lines(string(b)) {
			for _, p := range parts {
				if !strings.Contains(line, p) {
					continue lines
				}
			}
			n++
		}
	}
	return n
}

func TestTaskMode(t *testing.T) {
	w := newWorld(t)
	h := w.openErrands(t)
	for tool, want := range map[string]conversation.TaskMode{
		"Wait": {When: conversation.TaskOptional}, "Ask": {When: conversation.TaskRequired, AskFirst: true},
		"Plain": {}, "Served": {}, "Nothing": {}, "InvokeSkill": {}, "": {},
	} {
		if got := h.TaskMode(h.Scope(), tool); got != want {
			t.Errorf("%q: %+v", tool, got)
		}
	}
	w.write(t, "policy.toml", "[skills.errand]\nallow = false\n")
	eventually(t, "the policy is in force", func() bool { return h.TaskMode(h.Scope(), "Ask") == conversation.TaskMode{} })
}

// A host ends and another one begins, on one store on disk; a third one has been
// there all the time.
func TestTaskAcrossHosts(t *testing.T) {
	w := newWorld(t)
	first, other := w.openErrands(t), w.openErrands(t)
	works := idOf(t, say(t, first, "tools/call", `"name":"Wait","arguments":{}`))
	state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(say(t, first, "tools/call", `"name":"Ask","arguments":{}`))
	if state == nil {
		t.Fatal("it does not ask first")
	}
	asks := idOf(t, say(t, first, "tools/call", `"name":"Ask","arguments":{},"requestState":"`+state[1]+`","inputResponses":{"name":{"action":"accept","content":{"n":"Ada"}}}`))
	w.status(t, other, asks, "input_required")
	w.status(t, other, works, "working")
	if got := say(t, other, "tasks/cancel", `"taskId":"`+works+`"`); !strings.Contains(got, `"resultType":"complete"`) {
		t.Fatal(got)
	}
	w.status(t, other, works, "cancelled")
	works = idOf(t, say(t, first, "tools/call", `"name":"Wait","arguments":{}`))
	began := time.Now()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > errandsGrace {
		t.Errorf("closing took %v", took)
	}
	for _, h := range []*Host{other, w.openErrands(t)} {
		if got := say(t, h, "tasks/get", `"taskId":"`+works+`"`); !strings.Contains(got, `"status":"cancelled","statusMessage":"the host shut down"`) {
			t.Error(got)
		}
	}
	// What waits for its user goes on in another host, under the same rules.
	w.status(t, other, asks, "input_required")
	if got := say(t, other, "tasks/update", `"taskId":"`+asks+`","inputResponses":{"1.sure":{"action":"accept"}}`); !strings.Contains(got, `"resultType":"complete"`) {
		t.Fatal(got)
	}
	w.status(t, other, asks, "completed")
	if got := say(t, other, "tasks/get", `"taskId":"`+asks+`"`); !strings.Contains(got, `done {\"n\":\"Ada\"}accept`) {
		t.Error(got)
	}
	if n := w.recorded(t, `"type":"start"`, `Ask`); n != 3 {
		t.Errorf("%d runs of Ask are in the record, want 3", n)
	}
}
