package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
		if got := h.TaskMode(&sdk.Call{Tool: tool, Args: json.RawMessage("{}"), Scope: h.Scope()}); got != want {
			t.Errorf("%q: %+v", tool, got)
		}
	}
	ask := sdk.Call{Tool: "Ask", Scope: h.Scope()}
	w.write(t, "policy.toml", "[skills.errand]\nallow = false\n")
	eventually(t, "the policy is in force", func() bool { return h.TaskMode(&ask) == conversation.TaskMode{} })
}

// A tool wants its calls to become tasks however it is spelled; what is no call
// of it, or of nothing that the caller may call, wants nothing.
func TestTaskModeOfAddress(t *testing.T) {
	w := newWorld(t)
	h := w.openErrands(t)
	modes := map[string]conversation.TaskMode{"Wait": {When: conversation.TaskOptional}, "Ask": {When: conversation.TaskRequired, AskFirst: true}, "Plain": {}, "Served": {}, "Nothing": {}}
	mode := func(tool, args string) conversation.TaskMode {
		return h.TaskMode(&sdk.Call{Tool: tool, Args: json.RawMessage(args), Scope: h.Scope()})
	}
	spellings := func(tool string) map[string][2]string {
		all := map[string][2]string{"engine": {"skill-engine/" + tool, `{}`}}
		for _, address := range []string{"InvokeSkill", "execute", "skill-engine/execute", "skill-engine.execute"} {
			for how, args := range map[string]string{"tool": `{"skill_name":"errand","tool":%q}`, "tool_name": `{"skill_name":"errand","tool_name":%q,"parameters":{}}`, "dot": `{"skill_name":"errand.%s"}`, "alone": `{"skill_name":%q}`} {
				all[address+" "+how] = [2]string{address, fmt.Sprintf(args, tool)}
				if how == "dot" {
					all[address+" "+how] = [2]string{address, strings.Replace(args, "%s", tool, 1)}
				}
			}
		}
		return all
	}
	for tool, want := range modes {
		for how, c := range spellings(tool) {
			if got := mode(c[0], c[1]); got != want {
				t.Errorf("%s by %s: %+v, want %+v", tool, how, got, want)
			}
		}
	}
	for name, args := range map[string]string{
		"no_arguments": ``, "not_an_object": `[]`, "no_skill": `{}`, "unknown_skill": `{"skill_name":"errands"}`, "several_tools": `{"skill_name":"errand"}`,
		"both_arguments": `{"skill_name":"errand","tool":"Ask","parameters":{},"arguments":"{}"}`, "wrong_arguments": `{"skill_name":"errand","tool":"Ask","parameters":[]}`,
		"another_origin": `{"skill_name":"errand","tool":"Ask","origin":"sha256:0"}`,
	} {
		if got := mode("InvokeSkill", args); got != (conversation.TaskMode{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := h.TaskMode(&sdk.Call{Kind: sdk.CallPrompt, Tool: "Ask", Scope: h.Scope()}); got != (conversation.TaskMode{}) {
		t.Errorf("a prompt: %+v", got)
	}
	w.write(t, "policy.toml", "[skills.invoke-skill]\nallow = false\n")
	eventually(t, "who may not use the address learns nothing by it", func() bool {
		return mode("InvokeSkill", `{"skill_name":"errand","tool":"Ask"}`) == conversation.TaskMode{}
	})
	if mode("Ask", `{}`) != modes["Ask"] {
		t.Error("the tool itself is still there")
	}
	w.write(t, "policy.toml", "[skills.errand.tools.Ask]\nallow = false\n")
	eventually(t, "nor of a tool that it may not call", func() bool {
		return mode("InvokeSkill", `{"skill_name":"errand","tool":"Wait"}`) == modes["Wait"] && mode("InvokeSkill", `{"skill_name":"errand","tool":"Ask"}`) == conversation.TaskMode{}
	})
}

// A call through the address becomes a task, is followed and cancelled as one, and
// is recorded as the call of the tool that it is.
func TestTaskThroughAddress(t *testing.T) {
	w := newWorld(t)
	h := w.openErrands(t)
	id := idOf(t, say(t, h, "tools/call", `"name":"InvokeSkill","arguments":{"skill_name":"errand","tool":"Wait"}`))
	w.status(t, h, id, "working")
	eventually(t, "it runs", func() bool { return w.recorded(t, `"type":"start"`, `"tool":"Wait"`) == 1 })
	if got := say(t, h, "tasks/cancel", `"taskId":"`+id+`"`); !strings.Contains(got, `"resultType":"complete"`) {
		t.Fatal(got)
	}
	w.status(t, h, id, "cancelled")
	// What it asks first is asked before there is a task, and then it is one.
	state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(say(t, h, "tools/call", `"name":"execute","arguments":{"skill_name":"errand","tool":"Ask"}`))
	if state == nil {
		t.Fatal("it does not ask first")
	}
	asks := idOf(t, say(t, h, "tools/call", `"name":"execute","arguments":{"skill_name":"errand","tool":"Ask"},"requestState":"`+state[1]+`","inputResponses":{"name":{"action":"accept","content":{"n":"Ada"}}}`))
	w.status(t, h, asks, "input_required")
	if got := say(t, h, "tasks/update", `"taskId":"`+asks+`","inputResponses":{"1.sure":{"action":"accept"}}`); !strings.Contains(got, `"resultType":"complete"`) {
		t.Fatal(got)
	}
	w.status(t, h, asks, "completed")
	// A client without tasks is told so by this spelling as well.
	var out bytes.Buffer
	line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"InvokeSkill","arguments":{"skill_name":"errand","tool":"Ask"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
	if err := mcp.Serve(t.Context(), h, strings.NewReader(line), &out, mcp.Options{Options: conversation.Options{Tasks: h.Errands()}, Scope: h.Scope()}); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `-32021`) {
		t.Errorf("required_through_address: %s", &out)
	}
}

// The operator's bounds hold: what is one too many is refused, or answered in its
// request.
func TestTaskBoundsAreSettings(t *testing.T) {
	w := newWorld(t)
	w.write(t, "config.toml", "[tasks]\nmax_running = 1\n")
	h := w.openErrands(t)
	id := idOf(t, say(t, h, "tools/call", `"name":"Wait","arguments":{}`))
	answered := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(say(t, h, "tools/call", `"name":"Ask","arguments":{}`))
	again := func() string {
		return say(t, h, "tools/call", `"name":"Ask","arguments":{},"requestState":"`+answered[1]+`","inputResponses":{"name":{"action":"cancel"}}`)
	}
	if got := again(); !strings.Contains(got, "1 tasks run already, which is the most") {
		t.Fatal(got)
	}
	if got := say(t, h, "tasks/cancel", `"taskId":"`+id+`"`); !strings.Contains(got, `"resultType":"complete"`) {
		t.Fatal(got)
	}
	w.status(t, h, id, "cancelled")
	if asks := idOf(t, again()); asks == id {
		t.Error(asks)
	}
	w.write(t, "config.toml", "[tasks]\nmax_per_caller = 2\n") // there are two: both have ended or wait
	other := w.openErrands(t)
	if got := say(t, other, "tools/call", `"name":"Ask","arguments":{},"requestState":"`+answered[1]+`","inputResponses":{"name":{"action":"cancel"}}`); !strings.Contains(got, "the caller has 2 tasks already") {
		t.Error(got)
	}
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
