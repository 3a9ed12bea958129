package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// askArgs are questions with one field for a choice, one for several, and one for
// a text.
const askArgs = `{"questions_json":[{"question":"Which database?","header":"Database","options":[{"label":"Postgres","description":"runs already"},{"label":"SQLite"}]},` +
	`{"question":"Which features?","multiSelect":true,"options":["Search","Export","Login"]},{"question":"Name?"}]}`

// TestAskClients: the real clients, of both generations and both eras, ask their
// user in every way that they have.
func TestAskClients(t *testing.T) {
	node := clientsFromNPM(t)
	for _, kind := range []string{"v1", "v2", "v2-modern"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, "ask.mjs", kind, built.skill, h.work)
			cmd.Dir, cmd.Env = filepath.Join("testdata", "clients"), h.env()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			h.verify(0)
			out := h.run(0, "audit", "query")
			for _, want := range []string{"answer", "AskUserQuestion for local:", "accept by page", map[string]string{"v2-modern": "accept by mrtr"}[kind]} {
				if !strings.Contains(out, want) {
					t.Errorf("the record lacks %q:\n%s", want, out)
				}
			}
			if strings.Contains(out, "and Mail") {
				t.Errorf("the record has the answer itself:\n%s", out)
			}
		})
	}
}

// needsUser calls AskUserQuestion at a server whose client cannot ask, and
// returns where the page has the question.
func needsUser(t *testing.T, s *server, id string) (page string) {
	t.Helper()
	line := s.ask(id, "AskUserQuestion", askArgs)
	page = regexp.MustCompile(`http://127\.0\.0\.1:\d+/answer/[a-z0-9-]+`).FindString(line)
	if page == "" || !strings.Contains(line, "needs_user") {
		t.Fatalf("%s", line)
	}
	return page
}

// openQuestions lists what "skill answer" shows, once there are so many.
func (h *house) openQuestions(n int) []struct{ ID, Tool, Client string } {
	h.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var open []struct{ ID, Tool, Client string }
		out := h.run(0, "answer", "--json")
		if err := json.Unmarshal([]byte(out), &open); err != nil {
			h.t.Fatalf("%v: %s", err, out)
		}
		if len(open) == n {
			return open
		}
		if time.Now().After(end) {
			h.t.Fatalf("want %d open questions: %s", n, out)
		}
	}
}

// TestAnswerByFlags: a question is answered from another terminal, through the
// socket, while two hosts run.
func TestAnswerByFlags(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("LEFT OUT: no system call says who is at the other end of a socket")
	}
	h := newHouse(t)
	if out := h.run(0, "answer"); !strings.Contains(out, "no question is open") {
		t.Errorf("%s", out)
	}
	one, two := h.serve().shake(), h.serve().shake()
	needsUser(t, one, "1")
	open := h.openQuestions(1)
	if open[0].Tool != "AskUserQuestion" || open[0].Client != "test" {
		t.Errorf("%+v", open)
	}
	id := open[0].ID
	refusedFlags(h, id)
	if out := h.run(0, "answer", id, "--option", "q1=sql", "--option", "q2=3", "--option", "q2=search", "--text", "Ada = me"); !strings.Contains(out, "answered: "+id) {
		t.Errorf("%s", out)
	}
	var r struct {
		StructuredContent struct {
			Channel string
			Answers []struct {
				Selected []string
				Other    string
			}
		}
	}
	one.call("2", "AskUserQuestion", askArgs)
	m := one.reply("2")
	if err := json.Unmarshal(m.Result, &r); err != nil {
		t.Fatal(err)
	}
	if x := r.StructuredContent; x.Channel != "terminal" || fmt.Sprint(x.Answers) != "[{[SQLite] } {[Login Search] } {[] Ada = me}]" {
		t.Errorf("%s", m.line)
	}
	h.run(2, "answer", id, "--decline") // it is over
	needsUser(t, one, "3")
	needsUser(t, two, "1")
	h.openQuestions(2)
	h.run(2, "answer", "--decline") // which one?
	if completed := h.run(0, "__complete", "answer", ""); !strings.Contains(completed, "AskUserQuestion: Please answer these 3 questions") {
		t.Errorf("completion: %s", completed)
	}
	two.close()
	last := h.openQuestions(1)[0].ID
	h.run(0, "answer", "--decline")
	if line := one.ask("4", "AskUserQuestion", askArgs); !strings.Contains(line, `"unanswered":"declined"`) || !strings.Contains(line, `"channel":"terminal"`) {
		t.Errorf("%s: %s", last, line)
	}
	one.close()
	if left, err := os.ReadDir(filepath.Join(h.home, "state", "questions")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	h.verify(0)
}

// TestAnswerSwitchedOff: the operator can close each way.
func TestAnswerSwitchedOff(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("LEFT OUT: no env(1)")
	}
	h := newHouse(t)
	s := h.start("env", "SKILL_QUESTIONS_CHANNELS=none", built.skill, "serve", "--workspace", h.work).shake()
	if line := s.ask("1", "AskUserQuestion", askArgs); !strings.Contains(line, "needs_user") || strings.Contains(line, "127.0.0.1") {
		t.Errorf("%s", line)
	}
	h.openQuestions(0)
	s.close()
}

// refusedFlags looks at the question as it is listed, and answers it wrongly in
// every way that there is.
func refusedFlags(h *house, id string) {
	t := h.t
	t.Helper()
	out := h.run(0, "answer", "--list")
	for _, want := range []string{id + "  AskUserQuestion (skill ask-user-question), client test, workspace ", "q1 (Database): Which database? [one of]", "1. Postgres — runs already", "q2 (Question 2): Which features? [any of]", "q3"} {
		if !strings.Contains(out, want) {
			t.Errorf("the list lacks %q:\n%s", want, out)
		}
	}
	for _, wrong := range [][]string{
		{"answer", "nobody", "--decline"}, {"answer", id, "--option", "q1=Oracle"}, {"answer", id, "--option", "Login"}, {"answer", id, "--option", "q9=1"},
		{"answer", id, "--option", "q3=1"}, {"answer", id, "--text", "q1=Postgres"}, {"answer", id, "--decline", "--option", "q1=1"}, {"answer", id, "--option", "q1=1", "--option", "q1=2"},
		{"answer", id, "--option", "q2=9"}, {"answer", id, "--option", "q2="}, {"answer", id, "two"},
	} {
		h.run(2, wrong...)
	}
}

// TestAnswerPage: a person answers on the page, in a real browser, whose own
// checks (scripts off by policy, origins, forms) are part of it.
func TestAnswerPage(t *testing.T) {
	b := newChromium(t)
	h := newHouse(t)
	s := h.serve().shake()
	page := needsUser(t, s, "1")
	b.open(page)
	if got := b.eval(`document.querySelector('.who').innerText + '|' + document.querySelectorAll('input[type=radio]').length + '|' + document.querySelectorAll('script').length`); got != "AskUserQuestion asks you|2|0" {
		t.Errorf("the page: %s", got)
	}
	// The policy lets the page's own style in, and nothing else.
	if got := b.eval(`getComputedStyle(document.querySelector('main')).borderRadius + '|' + getComputedStyle(document.querySelector('main')).maxWidth`); got != "12px|640px" {
		t.Errorf("the style: %s", got)
	}
	if got := b.eval(`(() => { const x = document.createElement('script'); x.textContent = 'window.ran = 1'; document.head.append(x); return String(window.ran) })()`); got != "undefined" {
		t.Errorf("a script in the page has run: %s", got)
	}
	b.picture("answer-page")
	// By the keyboard and the labels, as with a screen reader.
	b.click(`label[for="f0.0.1"]`)
	b.click(`label[for="f0.2.0"]`)
	b.click(`label[for="f0.2.2"]`)
	b.fill(`[name="f0.3"]`, "and <b>Mail</b>")
	b.fill(`[name="f0.4"]`, "Ada")
	b.click(`button[value=accept]`)
	if got := b.waitFor(`document.querySelector('h1').innerText`, "Thank you"); got != "Thank you" {
		t.Fatalf("after the answer: %s", got)
	}
	line := s.ask("2", "AskUserQuestion", askArgs)
	for _, want := range []string{`"channel":"page"`, `"selected":["SQLite"]`, `"selected":["Search","Login"]`, `and <b>Mail</b>`, `"other":"Ada"`} {
		if !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(line, `\u003c`, "<"), `\u003e`, ">"), want) {
			t.Errorf("the answer lacks %s: %s", want, line)
		}
	}
	b.open(page)
	if got := b.eval(`document.querySelector('h1').innerText`); got != "This question is not open any more" {
		t.Errorf("opened again: %s", got)
	}
	// csrf_post: a page of another origin sends the form, which it cannot.
	page = needsUser(t, s, "3")
	b.open("data:text/html,<form id=f method=post action=" + page + "><input name=action value=accept></form>")
	b.eval(`document.getElementById('f').submit()`)
	if got := b.waitFor(`document.querySelector('h1')?.innerText ?? ''`, "another page"); got != "This answer came from another page" {
		t.Errorf("the other page: %s", got)
	}
	needsUser(t, s, "4") // still open
	s.close()
}

// TestAnswerPageOverHTTP: a host that serves HTTP to this machine's user has the
// page there, behind the checks of both.
func TestAnswerPageOverHTTP(t *testing.T) {
	h := newHouse(t)
	_, address := h.serveHTTP(nil, "--http", "127.0.0.1:0")
	base := strings.TrimSuffix(address, "/mcp")
	ask := func() string {
		t.Helper()
		r, err := http.Post(address, "application/json", strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"AskUserQuestion","arguments":%s}}`, askArgs)))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page := regexp.MustCompile(regexp.QuoteMeta(base) + `/answer/[a-z0-9-]+`).FindString(ask())
	if page == "" {
		t.Fatal("no address of a page on this server")
	}
	do := func(method, page, host, origin, body string) int {
		t.Helper()
		r, err := http.NewRequest(method, page, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		a, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	const good = "f0.0=1&action=accept"
	for _, c := range []struct {
		name                             string
		method, page, host, origin, body string
		status                           int
	}{
		{"csrf_post", "POST", page, "", "http://evil.test", good, 403},
		{"dns_rebinding", "POST", page, "evil.test", "http://evil.test", good, 403},
		{"wrong_token", "POST", page + "x", "", base, good, 410},
		{"no_token", "GET", base + "/answer/", "", "", "", 404},
		{"shown", "GET", page, "", "", "", 200},
		{"answered", "POST", page, "", base, good, 200},
		{"replayed_token", "POST", page, "", base, good, 410},
	} {
		if got := do(c.method, c.page, c.host, c.origin, c.body); got != c.status {
			t.Errorf("%s: status %d, want %d", c.name, got, c.status)
		}
	}
	if got := ask(); !strings.Contains(got, `"channel":"page"`) || !strings.Contains(got, `"selected":["SQLite"]`) {
		t.Errorf("%s", got)
	}
}
