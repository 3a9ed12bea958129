package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

// A desk is a workspace, and the host of one session in it.
type desk struct {
	*guesttest.Host
	t   *testing.T
	dir string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &desk{&guesttest.Host{Now: func() time.Time { return time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC) }}, t, dir}
}

// run makes one round of a call.
func (d *desk) run(args, state string, answers map[string]sdk.Answer) (sdk.Result, error) {
	return guest.Run(d.t.Context(), d, sdk.Input{Tool: "PlanMode", Args: json.RawMessage(args), State: state, Answers: answers,
		Scope: sdk.Scope{Caller: "local:test", Workspace: d.dir, Session: "test"}})
}

// do makes a call that asks nothing.
func (d *desk) do(args string) (reply, string) {
	d.t.Helper()
	r, err := d.run(args, "", nil)
	if err != nil || len(r.Questions) > 0 {
		d.t.Fatalf("%s: %+v, %v", args, r.Questions, err)
	}
	return d.read(r)
}

func (d *desk) read(r sdk.Result) (out reply, text string) {
	d.t.Helper()
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		d.t.Fatal(err)
	}
	return out, r.Content[0].Text
}

// fails wants a call to fail with all parts in its error.
func (d *desk) fails(args string, kind sdk.Kind, parts ...string) {
	d.t.Helper()
	r, err := d.run(args, "", nil)
	if sdk.KindOf(err) != kind {
		d.t.Errorf("%s: %+v, %v", args, r, err)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			d.t.Errorf("%s: %v, want %q", args, err, p)
		}
	}
}

// exits calls exit, and answers the question.
func (d *desk) exits(action, content string, meanwhile func()) (reply, string) {
	d.t.Helper()
	return d.exitsBy("elicitation", action, content, meanwhile)
}

// exitsBy is exits for an answer that comes on some way.
func (d *desk) exitsBy(channel, action, content string, meanwhile func()) (reply, string) {
	d.t.Helper()
	r, err := d.run(`{"action":"exit"}`, "", nil)
	if err != nil || len(r.Questions) != 1 {
		d.t.Fatalf("%+v, %v", r, err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	r, err = d.run(`{"action":"exit"}`, r.State, map[string]sdk.Answer{"approve": {Action: action, Content: json.RawMessage(content), Channel: channel}})
	if err != nil || len(r.Questions) != 0 {
		d.t.Fatalf("%+v, %v", r, err)
	}
	return d.read(r)
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	file := filepath.Join(d.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) file(name string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dir, filepath.FromSlash(name)))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

// names lists a folder of the workspace.
func (d *desk) names(dir string) string {
	d.t.Helper()
	entries, err := os.ReadDir(filepath.Join(d.dir, filepath.FromSlash(dir)))
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

const (
	login     = `{"action":"enter","goal":"Login with OAuth"}`
	loginFile = ".skill/plans/2026-11-25-login-with-oauth.md"
)

// TestRound goes from entering to an approved plan.
func TestRound(t *testing.T) {
	d := newDesk(t)
	out, text := d.do(`{"action":"status"}`)
	if out.Mode != "normal" || out.PlanID != "" || out.PlanFile != "" || out.Approved || !strings.Contains(text, "Plan mode is off.") {
		t.Errorf("%+v\n%s", out, text)
	}
	out, text = d.do(login)
	if out.Mode != "plan" || out.PlanID != "2026-11-25-login-with-oauth" || out.Goal != "Login with OAuth" || out.PlanFile != filepath.ToSlash(d.dir)+"/"+loginFile || out.Status != "open" ||
		!strings.Contains(text, "Plan mode is on.") || !strings.Contains(text, "cat > '"+out.PlanFile+"'") {
		t.Errorf("%+v\n%s", out, text)
	}
	layers := d.Layers()
	if len(layers) != 1 || layers[0].Name != "plan mode" || layers[0].Why != "plan 2026-11-25-login-with-oauth; PlanMode exit ends it" ||
		string(layers[0].Lists) != `{"filesystem.write":["write:${workspace}/`+loginFile+`","write:${tmp}"],"network":[],"builtin":{"plan-mode":{"filesystem.write":null},"web":{"network":null},"websearch":{"network":null}}}` {
		t.Fatalf("%+v", layers)
	}
	if got := d.file(loginFile); got != "---\nid: 2026-11-25-login-with-oauth\ngoal: Login with OAuth\nstatus: open\ncreated: 2026-11-25T09:00:00Z\nupdated: 2026-11-25T09:00:00Z\n---\n\n# Login with OAuth\n\n" {
		t.Errorf("%q", got)
	}
	d.write(loginFile, "# The plan\n\n- [x] look\n- [ ] leap\n") // as a model does: the front matter is gone
	out, text = d.do(`{"action":"status"}`)
	if out.Mode != "plan" || out.Goal != "Login with OAuth" || out.Created != "2026-11-25T09:00:00Z" || len(out.Steps) != 2 || !out.Steps[0].Done || out.Steps[1].Text != "leap" || !strings.Contains(text, "1 of 2 steps are done.") || !strings.Contains(text, "- [ ] leap") {
		t.Errorf("%+v\n%s", out, text)
	}
	out, text = d.do(`{"action":"json"}`)
	var again reply
	if err := json.Unmarshal([]byte(text), &again); err != nil || again.Document != "# The plan\n\n- [x] look\n- [ ] leap\n" || again.PlanID != out.PlanID {
		t.Errorf("%+v, %v", again, err)
	}
	out, text = d.exits("accept", `{"decision":"approve","feedback":" mind the tests "}`, nil)
	if out.Mode != "normal" || !out.Approved || out.Outcome != "approved" || out.Feedback != "mind the tests" || !strings.Contains(text, "Plan mode is off: begin.") || !strings.Contains(text, "The user says: mind the tests") {
		t.Errorf("%+v\n%s", out, text)
	}
	if len(d.Layers()) != 0 || !strings.Contains(d.file(loginFile), "\nstatus: approved\n") || !strings.Contains(d.file(loginFile), "- [ ] leap\n") {
		t.Errorf("%+v\n%s", d.Layers(), d.file(loginFile))
	}
	out, text = d.do(`{"action":"status"}`)
	if out.Mode != "normal" || !out.Approved || out.PlanID != "2026-11-25-login-with-oauth" || out.Status != "approved" || len(out.Steps) != 2 || !strings.Contains(text, "Plan mode is off.") {
		t.Errorf("%+v\n%s", out, text)
	}
	if out, text = d.do(`{"action":"exit"}`); out.Mode != "normal" || out.Outcome != "" || !strings.Contains(text, "nothing to exit") {
		t.Errorf("%+v\n%s", out, text)
	}
	if got := strings.Join(d.Announced(), " "); got != "plan://current plan://current" {
		t.Errorf("announced %q", got)
	}
}

// TestStays: nothing but an approval ends plan mode.
func TestStays(t *testing.T) {
	d := newDesk(t)
	d.do(login)
	d.write(loginFile, "---\nid: x\nstatus: approved\n---\n- [ ] a\n") // whoever writes the file decides nothing
	for _, tt := range []struct{ name, action, content, outcome, text string }{
		{"reject", "accept", `{"decision":"reject"}`, "rejected", "ask what is wrong"},
		{"feedback", "accept", `{"decision":"reject","feedback":"smaller steps"}`, "edited", "The user says: smaller steps"},
		{"decline", "decline", ``, "unanswered", "has not decided"},
		{"cancel", "cancel", ``, "unanswered", "has not decided"},
		{"decline_with_content", "decline", `{"decision":"approve"}`, "unanswered", "has not decided"},
		{"unknown_action", "yes", `{"decision":"approve"}`, "unanswered", "has not decided"},
		{"no_decision", "accept", `{}`, "rejected", "ask what is wrong"},
		{"other_decision", "accept", `{"decision":"Approve"}`, "rejected", "ask what is wrong"},
	} {
		out, text := d.exits(tt.action, tt.content, nil)
		if out.Mode != "plan" || out.Approved || out.Outcome != tt.outcome || !strings.Contains(text, tt.text) || len(d.Layers()) != 1 {
			t.Errorf("plan_left_by_%s: %+v\n%s", tt.name, out, text)
		}
	}
	for _, args := range []string{`{"action":"reset"}`, `{"action":"reset","goal":"another"}`, `{"action":"enter"}`, `{"action":"enter","goal":"yet another"}`, `{"action":"status"}`, `{"action":"json"}`} {
		if out, text := d.do(args); out.Mode != "plan" || out.Approved || len(d.Layers()) != 1 {
			t.Errorf("plan_left_by_%s: %+v\n%s", args, out, text)
		}
	}
	d.fails(`{"action":"enter","plan_file":"other.md"}`, sdk.Invalid, "is open", "the user decides")
	d.fails(`{"action":"shout"}`, sdk.Invalid, "unknown action")
	if out, _ := d.do(`{"action":"enter","plan_file":"` + loginFile + `"}`); out.Mode != "plan" {
		t.Errorf("%+v", out)
	}
}

// TestChangedMeanwhile: an approval is one of the plan that was shown.
func TestChangedMeanwhile(t *testing.T) {
	d := newDesk(t)
	d.do(login)
	d.write(loginFile, "- [ ] harmless\n")
	out, text := d.exits("accept", `{"decision":"approve"}`, func() { d.write(loginFile, "- [ ] rm -rf\n") })
	if out.Mode != "plan" || out.Outcome != "unanswered" || len(d.Layers()) != 1 || !strings.Contains(text, "approved another one") {
		t.Errorf("plan_changed_after_it_was_shown: %+v\n%s", out, text)
	}
	out, _ = d.exits("accept", `{"decision":"reject","feedback":"no"}`, func() { d.write(loginFile, "- [ ] x\n") })
	if out.Outcome != "edited" {
		t.Errorf("a refusal counts all the same: %+v", out)
	}
	out, _ = d.exits("accept", `{"decision":"approve"}`, func() { d.write(loginFile, "---\nstatus: done\n---\n\n- [ ] x\n") }) // the same plan
	if out.Outcome != "approved" {
		t.Errorf("the same plan with other front matter: %+v", out)
	}
}

// TestWhoApproves: an approval that was there before the user was asked is none.
func TestWhoApproves(t *testing.T) {
	for _, channel := range []string{"", "call", "url", "model"} {
		d := newDesk(t)
		d.do(login)
		out, text := d.exitsBy(channel, "accept", `{"decision":"approve"}`, nil)
		if out.Mode != "plan" || out.Outcome != "unanswered" || len(d.Layers()) != 1 || !strings.Contains(text, "did not come from the user") {
			t.Errorf("plan_approved_by_%q: %+v\n%s", channel, out, text)
		}
	}
	for _, channel := range []string{"mrtr", "elicitation", "page", "terminal", "tty"} {
		d := newDesk(t)
		d.do(login)
		if out, _ := d.exitsBy(channel, "accept", `{"decision":"approve"}`, nil); !out.Approved || len(d.Layers()) != 0 {
			t.Errorf("%s: %+v", channel, out)
		}
	}
}

// TestQuestion: the user sees what he approves.
func TestQuestion(t *testing.T) {
	d := newDesk(t)
	d.do(login)
	ask := func() sdk.Question {
		r, err := d.run(`{"action":"exit"}`, "", nil)
		if err != nil || len(r.Questions) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Questions["approve"]
	}
	if q := ask(); q.Kind != sdk.QuestionForm || !strings.Contains(q.Message, "The plan is empty") || !strings.Contains(string(q.Schema), `"required":["decision"]`) || !json.Valid(q.Schema) {
		t.Errorf("%+v", q)
	}
	d.write(loginFile, "# All\n- [ ] one\n")
	if q := ask(); !strings.Contains(q.Message, "# All\n- [ ] one") || !strings.Contains(q.Message, loginFile) || !strings.Contains(q.Message, "plan mode stays on") {
		t.Errorf("%s", q.Message)
	}
	d.write(loginFile, "# A\n\n\n \n\t\n\n- [ ] on\u202ee\x1b[2J\r\n- [ ] two\x07\n")
	if q := ask(); !strings.HasSuffix(q.Message, "# A\n\n- [ ] one[2J\n- [ ] two") {
		t.Errorf("plan_shown_as_another: %q", q.Message)
	}
	d.write(loginFile, "# All\n"+strings.Repeat("- [ ] säge\n", 4000))
	if q := ask(); len(q.Message) > maxAsked+1000 || !strings.Contains(q.Message, "bytes more are in its file") {
		t.Errorf("%d bytes", len(q.Message))
	}
}

func TestReset(t *testing.T) {
	d := newDesk(t)
	d.do(login)
	d.write(loginFile, "---\nid: other\ncreated: 2026-01-01T00:00:00Z\nowner: me\n---\nold text\n- [ ] a\n")
	out, text := d.do(`{"action":"reset"}`)
	if out.Mode != "plan" || len(out.Steps) != 0 || out.PlanID != "2026-11-25-login-with-oauth" || !strings.Contains(text, "begins anew") || out.Created != "2026-01-01T00:00:00Z" {
		t.Errorf("%+v\n%s", out, text)
	}
	names := strings.Fields(d.names(".skill/plans"))
	if len(names) != 2 || !strings.Contains(names[0], ".before-") {
		t.Fatalf("%q", names)
	}
	if kept := d.file(".skill/plans/" + names[0]); !strings.Contains(kept, "old text\n- [ ] a\n") || !strings.Contains(kept, "owner: me\n") {
		t.Errorf("%q", kept)
	}
	if now := d.file(loginFile); strings.Contains(now, "old text") || !strings.Contains(now, "id: 2026-11-25-login-with-oauth\n") || !strings.Contains(now, "owner: me\n") {
		t.Errorf("%q", now)
	}
	d.do(`{"action":"reset"}`) // there is nothing to keep
	if got := len(strings.Fields(d.names(".skill/plans"))); got != 2 {
		t.Errorf("%d files", got)
	}
	d.fails(`{"action":"reset","plan_file":"x.md"}`, sdk.Invalid, "takes no plan_file")
	d.exits("accept", `{"decision":"approve"}`, nil)
	if out, text = d.do(`{"action":"reset"}`); out.Mode != "normal" || out.PlanID != "" || !strings.Contains(text, "forgotten") {
		t.Errorf("%+v\n%s", out, text)
	}
	if out, _ = d.do(`{"action":"status"}`); out.PlanID != "" || out.Approved {
		t.Errorf("%+v", out)
	}
}

// TestResume goes on with a plan of another session.
func TestResume(t *testing.T) {
	d := newDesk(t)
	d.do(login)
	d.write(loginFile, strings.Replace(d.file(loginFile), "# Login with OAuth", "- [x] one\n- [ ] two", 1))
	next := &desk{&guesttest.Host{Now: d.Now}, t, d.dir}
	if out, _ := next.do(`{"action":"status"}`); out.Mode != "normal" {
		t.Errorf("%+v", out)
	}
	out, _ := next.do(`{"action":"enter","plan_file":"` + loginFile + `"}`)
	if out.Mode != "plan" || out.Goal != "Login with OAuth" || len(out.Steps) != 2 || out.PlanID != "2026-11-25-login-with-oauth" {
		t.Errorf("%+v", out)
	}
	other := &desk{&guesttest.Host{Now: d.Now}, t, d.dir}
	if out, _ := other.do(login); out.PlanID != "2026-11-25-login-with-oauth-2" || !strings.HasSuffix(out.PlanFile, "-2.md") {
		t.Errorf("two plans in one file: %+v", out)
	}
}

// TestCorruptState: what is remembered of the last plan decides nothing, and is
// kept aside if it cannot be read.
func TestCorruptState(t *testing.T) {
	d := newDesk(t)
	d.Set("session", lastKey, []byte(`{`))
	out, text := d.do(`{"action":"status"}`)
	if out.Mode != "normal" || !strings.Contains(text, `kept under the key "last.unreadable.1"`) || string(d.Get("session", "last.unreadable.1")) != `{` {
		t.Errorf("%+v\n%s", out, text)
	}
	if _, text = d.do(`{"action":"status"}`); strings.Contains(text, "Note") {
		t.Errorf("said twice: %s", text)
	}
	d.Set("session", lastKey, []byte(`{"id":"x","file":"../../etc/passwd.md","approved":true}`))
	if out, _ = d.do(`{"action":"status"}`); out.PlanFile != "" || out.Approved {
		t.Errorf("%+v", out)
	}
	d.Set("session", lastKey, []byte(`{"id":"x","file":"gone.md","approved":true}`))
	if out, _ = d.do(`{"action":"status"}`); out.Mode != "normal" || len(out.Notes) != 1 {
		t.Errorf("%+v", out)
	}
	d.Set("session", lastKey, []byte(`{"id":7,"approved":true}`))
	if out, _ = d.do(`{"action":"status"}`); out.Approved || out.PlanID != "" {
		t.Errorf("%+v", out)
	}
	d.Set("session", lastKey, []byte(`{"mode":"plan"}`))
	if out, _ = d.do(login); out.Mode != "plan" || len(d.Layers()) != 1 {
		t.Errorf("%+v", out)
	}
	d.Set("session", openKey, []byte(`[]`))
	d.write(loginFile, "- [ ] a\n")
	if out, text = d.do(`{"action":"status"}`); out.Mode != "plan" || out.Goal != "" || !strings.Contains(text, "open.unreadable.") {
		t.Errorf("%+v\n%s", out, text)
	}
}

// TestEnterTwice: of several calls at once one opens a plan, and the others go
// on with that.
func TestEnterTwice(t *testing.T) {
	d := newDesk(t)
	const n = 8
	ids := make([]string, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			r, err := d.run(login, "", nil)
			var out reply
			if err == nil {
				err = json.Unmarshal(r.Structured, &out)
			}
			if err != nil || out.Mode != "plan" {
				t.Errorf("%+v, %v", out, err)
			}
			ids[i] = out.PlanID
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] || len(d.Layers()) != 1 || !strings.HasPrefix(d.Layers()[0].Why, "plan "+id+";") {
			t.Errorf("plan_opened_twice: %q, %+v", ids, d.Layers())
		}
	}
	if names := d.names(".skill/plans"); names != ids[0]+".md" {
		t.Errorf("left behind: %s", names)
	}
}

// TestNoSlots: a plan that cannot be enforced is not opened.
func TestNoSlots(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		f := sdk.AppendFrame(nil, []byte(`{"op":"layer.push","name":"`+name+`","layer":{}}`))
		frame, err := sdk.ParseFrame(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Do(t.Context(), frame); err != nil {
			t.Fatal(err)
		}
	}
	d.fails(login, sdk.Limit)
	if names := d.names(".skill/plans"); names != "" {
		t.Errorf("left behind: %s", names)
	}
}

func TestResource(t *testing.T) {
	d := newDesk(t)
	read := func() string {
		r, err := guest.Run(t.Context(), d, sdk.Input{Tool: "read_plan", Args: json.RawMessage(`{}`), Scope: sdk.Scope{Caller: "local:test", Workspace: d.dir, Session: "test"}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Content[0].Text
	}
	if got := read(); got != "There is no plan.\n" {
		t.Errorf("%q", got)
	}
	d.do(login)
	if got := read(); got != d.file(loginFile) {
		t.Errorf("%q", got)
	}
}
