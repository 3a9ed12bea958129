package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// An outcome is the result of a tools/call.
type outcome struct {
	IsError           bool
	Content           []struct{ Text string }
	StructuredContent json.RawMessage
	text              string // of all content
}

func (s *server) outcome(id string) (o outcome) {
	s.t.Helper()
	m := s.reply(id)
	if err := json.Unmarshal(m.Result, &o); err != nil {
		s.t.Fatalf("%s: %v", m.line, err)
	}
	for _, c := range o.Content {
		o.text += c.Text + "\n"
	}
	return o
}

// tool calls a tool and waits for what comes of it.
func (s *server) tool(id, tool, args string) outcome {
	s.t.Helper()
	s.call(id, tool, args)
	return s.outcome(id)
}

// bash runs a command, and says whether it went well.
func (s *server) bash(id, command string) (text string, well bool) {
	s.t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		s.t.Fatal(err)
	}
	o := s.tool(id, "Bash", string(args))
	return o.text, !o.IsError
}

// planOutcome is the structured result of PlanMode.
type planOutcome struct {
	Mode     string
	PlanFile string `json:"plan_file"`
	Approved bool
	Outcome  string
	Denied   int `json:"denied_since_enter"`
	Running  int `json:"running_jobs"`
	Steps    []struct {
		Text string
		Done bool
	}
}

func (s *server) plan(id, args string) (p planOutcome, text string) {
	s.t.Helper()
	s.call(id, "PlanMode", args)
	return s.planned(id)
}

func (s *server) planned(id string) (p planOutcome, text string) {
	s.t.Helper()
	o := s.outcome(id)
	if err := json.Unmarshal(o.StructuredContent, &p); err != nil {
		s.t.Fatalf("%s: %v", o.text, err)
	}
	return p, o.text
}

// exits calls exit and answers the question, which has to show the plan.
func (s *server) exits(id, shows, answer string) (planOutcome, string) {
	s.t.Helper()
	s.call(id, "PlanMode", `{"action":"exit"}`)
	q := s.await("question", func(m message) bool { return m.Method == "elicitation/create" })
	if !strings.Contains(q.line, shows) {
		s.t.Errorf("the user is asked %s", q.line)
	}
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answer))
	return s.planned(id)
}

// planHouse is a house whose commands have the network, as far as a server of
// the test goes, and a client of it that can ask its user.
func planHouse(t *testing.T) (h *house, url string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("LEFT OUT: the shell tools need Linux")
	}
	for _, need := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(need); err != nil {
			leftOut(t, "there is no "+need)
		}
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from the network") }))
	t.Cleanup(web.Close)
	h = newHouse(t)
	h.write("policy.toml", "[skills.shell.capabilities]\nnetwork = [\""+web.URL+"\"]\n")
	return h, web.URL
}

func (h *house) asking() *server {
	s := h.serve()
	s.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{}}},"clientInfo":{"name":"test","version":"1"}}}`)
	s.reply("hello")
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// TestPlanMode goes from entering to an approved plan, over stdio: what a plan
// keeps tools from, it keeps them from by force.
func TestPlanMode(t *testing.T) {
	h, url := planHouse(t)
	s := h.asking()
	id := 0
	bash := func(command string) (string, bool) {
		t.Helper()
		id++
		return s.bash(fmt.Sprint("b", id), command)
	}
	works := func(command, want string) {
		t.Helper()
		if text, ok := bash(command); !ok || !strings.Contains(text, want) {
			t.Errorf("%s: %s", command, text)
		}
	}
	refused := func(command string) {
		t.Helper()
		if text, ok := bash(command); ok || strings.Contains(text, "from the network\n") || !strings.Contains(text, "PlanMode exit ends it") {
			t.Errorf("plan_mode_allows: %s: %s", command, text)
		}
	}
	works("touch before && curl -sS "+url, "from the network")
	if o := s.tool("bg", "BackgroundBash", `{"command":"while [ ! -e plan-is-on ]; do sleep 0.1; done; touch by-job"}`); o.IsError {
		t.Fatal(o.text)
	}
	p, text := s.plan("enter", `{"action":"enter","goal":"Add a page"}`)
	if p.Mode != "plan" || p.Running != 1 || !strings.Contains(text, "1 background jobs that began before go on") || !strings.HasPrefix(p.PlanFile, filepath.ToSlash(h.work)+"/.skill/plans/") {
		t.Fatalf("%+v %s", p, text)
	}
	refused("touch x")
	refused("echo x > before")
	refused("rm before")
	refused("touch $HOME/x")
	refused("curl -sS -m 20 " + url)
	refused("curl -sS -m 20 --noproxy '*' " + url)
	refused("mv '" + p.PlanFile + "' '" + p.PlanFile + ".old'")
	works("echo mine > /tmp/x && cat /tmp/x before", "mine")
	works("cat > '"+p.PlanFile+"' <<'EOF'\n# Pages\n- [x] look\n- [ ] add the page\nEOF\ngrep -c . '"+p.PlanFile+"'", "3")
	for i, nested := range []string{`{"skill_name":"shell","tool":"Bash","parameters":{"command":"touch y"}}`} {
		if o := s.tool(fmt.Sprint("i", i), "InvokeSkill", nested); !o.IsError || !strings.Contains(o.text, "PlanMode exit ends it") {
			t.Errorf("plan_mode_allows by address: %s", o.text)
		}
	}
	if o := s.tool("tasks", "TaskManager", `{"action":"create","text":"still works"}`); o.IsError {
		t.Error(o.text)
	}
	if err := os.WriteFile(filepath.Join(h.work, "plan-is-on"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "end of the job", func() bool { _, err := os.Stat(filepath.Join(h.work, "by-job")); return err == nil })
	if p, text = s.plan("status", `{"action":"status"}`); p.Mode != "plan" || len(p.Steps) != 2 || p.Denied < 5 || !strings.Contains(text, "add the page") {
		t.Errorf("%+v %s", p, text)
	}
	if p, text = s.plan("reset-no", `{"action":"enter","goal":"Add a page"}`); p.Mode != "plan" {
		t.Errorf("%+v %s", p, text)
	}
	p, text = s.exits("exit1", "add the page", `{"action":"accept","content":{"decision":"reject","feedback":"and a test"}}`)
	if p.Mode != "plan" || p.Outcome != "edited" || !strings.Contains(text, "The user says: and a test") {
		t.Errorf("%+v %s", p, text)
	}
	refused("touch x")
	if p, text = s.exits("exit2", "add the page", `{"action":"cancel"}`); p.Mode != "plan" || p.Outcome != "unanswered" {
		t.Errorf("%+v %s", p, text)
	}
	refused("touch x")
	p, text = s.exits("exit3", "add the page", `{"action":"accept","content":{"decision":"approve"}}`)
	if p.Mode != "normal" || !p.Approved || p.Outcome != "approved" {
		t.Errorf("%+v %s", p, text)
	}
	works("touch x && touch $HOME/x && ls", "x")
	works("curl -sS "+url, "from the network")
	works("cat '"+p.PlanFile+"'", "status: approved")
	s.close()
	h.verify(0)
	if out := h.run(0, "audit", "query", "--type", "access"); strings.Count(out, "layer.push plan mode") != 1 || strings.Count(out, "layer.pop plan mode") != 1 {
		t.Errorf("the record: %s", out)
	}
}

// TestPlanModeCannotAsk: with a client that cannot ask its user the plan stays
// open, and the model is told.
func TestPlanModeCannotAsk(t *testing.T) {
	h, _ := planHouse(t)
	s := h.serve().shake()
	if p, text := s.plan("enter", `{"action":"enter"}`); p.Mode != "plan" {
		t.Fatal(text)
	}
	o := s.tool("exit", "PlanMode", `{"action":"exit"}`)
	if !o.IsError || !strings.Contains(o.text, "needs_user") || !strings.Contains(o.text, "plan mode stays on") {
		t.Errorf("%s", o.text)
	}
	for i, forged := range []string{`{"action":"exit","decision":"approve"}`, `{"action":"exit","answers":{"approve":{"action":"accept","content":{"decision":"approve"}}}}`} {
		if o := s.tool(fmt.Sprint("f", i), "PlanMode", forged); !o.IsError {
			t.Errorf("plan_approved_by_model: %s: %s", forged, o.text)
		}
	}
	if text, ok := s.bash("b", "touch x"); ok {
		t.Errorf("plan_left_unasked: %s", text)
	}
	s.close()
	if s = h.asking(); s.t == nil {
		t.Fatal()
	}
	if text, ok := s.bash("b", "touch x"); !ok { // another session
		t.Error(text)
	}
	s.close()
}

// TestPlanModeTask: the session of a task_id keeps its plan, whichever host and
// entrance it goes on with, until its user has approved it.
func TestPlanModeTask(t *testing.T) {
	h, _ := planHouse(t)
	w := h.serveWeb()
	at := w.url
	over := func(task, tool, args string) string {
		t.Helper()
		w.url = at + "?task_id=" + task
		return w.post(modernCall(1, tool, args, `"elicitation":{"form":{}}`), modernHeaders("tools/call", tool))
	}
	if text := over("t1", "PlanMode", `{"action":"enter","goal":"a"}`); !strings.Contains(text, `"mode":"plan"`) {
		t.Fatal(text)
	}
	const touch = `{"command":"touch x"}`
	if text := over("t1", "Bash", touch); !strings.Contains(text, "PlanMode exit ends it") {
		t.Errorf("plan_mode_allows over HTTP: %s", text)
	}
	if text := over("t2", "Bash", touch); strings.Contains(text, `"isError":true`) {
		t.Errorf("layer_in_other_session: %s", text)
	}
	next := h.serveWeb() // another host on the same store
	next.url += "?task_id=t1"
	if text := next.post(modernCall(1, "Bash", touch, ""), modernHeaders("tools/call", "Bash")); !strings.Contains(text, "PlanMode exit ends it") {
		t.Errorf("layer_lost_by_restart: %s", text)
	}
	if out := h.run(1, "call", "--workspace", h.work, "--task", "t1", "Bash", touch); !strings.Contains(out, "PlanMode exit ends it") {
		t.Errorf("plan_mode_allows on the command line: %s", out)
	}
	h.run(0, "call", "--workspace", h.work, "Bash", touch)
	out := h.run(0, "explain", "--workspace", h.work, "--task", "t1", "Bash", "--try", "filesystem.write "+filepath.Join(h.work, "x"))
	if !strings.Contains(out, `layer "plan mode" of plan-mode`) || !strings.Contains(out, `refused by layer "plan mode" of plan-mode, which says "plan `) {
		t.Errorf("explain: %s", out)
	}
	if out := h.run(0, "explain", "--workspace", h.work, "Bash"); strings.Contains(out, "plan mode") {
		t.Errorf("explain of another session: %s", out)
	}
	h.run(2, "explain", "--task", "no such id!", "Bash")
	text := over("t1", "PlanMode", `{"action":"exit"}`) // 2026-07-28: the client calls again with the answer
	var asked struct {
		Result struct {
			ResultType   string
			RequestState string
		}
	}
	if err := json.Unmarshal([]byte(text), &asked); err != nil || asked.Result.ResultType != "input_required" {
		t.Fatalf("%s, %v", text, err)
	}
	args := fmt.Sprintf(`{"action":"exit"},"requestState":%q,"inputResponses":{"approve":{"action":"accept","content":{"decision":"approve"}}}`, asked.Result.RequestState)
	if text := over("t2", "PlanMode", args); strings.Contains(text, `"approved":true`) {
		t.Errorf("plan_approved_in_other_session: %s", text)
	}
	if text := over("t1", "PlanMode", args); !strings.Contains(text, `"outcome":"approved"`) {
		t.Errorf("%s", text)
	}
	if text := next.post(modernCall(1, "Bash", touch, ""), modernHeaders("tools/call", "Bash")); strings.Contains(text, `"isError":true`) {
		t.Errorf("layer_two_hosts: %s", text)
	}
}
