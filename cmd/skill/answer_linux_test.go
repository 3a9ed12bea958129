package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/host/ask/tty/ptytest"
)

const oneQuestion = `{"questions_json":[{"question":"Which database?","options":["Postgres","SQLite"]}]}`

// terminal is the environment of a host that may ask on its terminal.
func (h *house) terminal() []string {
	return append(slices.DeleteFunc(h.env(), func(v string) bool { return strings.HasPrefix(v, "SKILL_QUESTIONS_") || strings.HasPrefix(v, "TERM=") }), "TERM=xterm-256color")
}

// TestAnswerAtCall: who calls a tool in a terminal is asked there.
func TestAnswerAtCall(t *testing.T) {
	h := newHouse(t)
	x := ptytest.Open(t)
	cmd := exec.Command(built.skill, "call", "--json", "AskUserQuestion", oneQuestion)
	cmd.Dir, cmd.Env = h.work, h.terminal()
	x.Own(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := x.Wait(0, "SQLite")
	x.Type("\x1b[B\r")
	x.Wait(n, "shift+tab") // the field for another answer
	x.Type("\r")
	x.Wait(n, "Send the answer?")
	x.Type("\r")
	said, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, said, x.Shown())
	}
	if s := string(said); !strings.Contains(s, `"channel": "tty"`) || !regexp.MustCompile(`"selected": \[\s*"SQLite"\s*\]`).MatchString(s) || strings.Contains(s, "\x1b") {
		t.Errorf("%s", s)
	}
	if !x.Canonical() {
		t.Error("the terminal is left raw")
	}
	// Without a terminal nobody is asked, and nothing hangs.
	h.run(1, "call", "AskUserQuestion", oneQuestion)
	h.verify(0)
	if out := h.run(0, "audit", "query", "--type", "answer"); !strings.Contains(out, "accept by tty") {
		t.Errorf("the record: %s", out)
	}
}

// TestAnswerAtHost: a host that has a terminal of its own asks there for a client
// that cannot ask; one whose client draws on that terminal does not.
func TestAnswerAtHost(t *testing.T) {
	h := newHouse(t)
	serve := func(x *ptytest.Terminal) (io.WriteCloser, *bufio.Reader, *exec.Cmd) {
		t.Helper()
		cmd := exec.Command(built.skill, "serve", "--workspace", h.work)
		cmd.Dir, cmd.Env = h.work, h.terminal()
		x.Own(cmd)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		t.Cleanup(func() {
			stuck.Stop()
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		})
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"AskUserQuestion","arguments":%s}}`+"\n", oneQuestion); err != nil {
			t.Fatal(err)
		}
		return in, bufio.NewReader(out), cmd
	}
	x := ptytest.Open(t)
	in, out, cmd := serve(x)
	n := x.Wait(0, "SQLite")
	x.Type("\r")
	x.Wait(n, "shift+tab")
	x.Type("version 16\r")
	x.Wait(n, "Send the answer?")
	x.Type("\r")
	line, err := out.ReadString('\n')
	if err != nil || !strings.Contains(line, `"channel":"tty"`) || !strings.Contains(line, `"selected":["Postgres"]`) || !strings.Contains(line, `"notes":"version 16"`) {
		t.Fatalf("%s %v", line, err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil || !x.Canonical() {
		t.Errorf("%v, the terminal is as it was: %t", err, x.Canonical())
	}
	// raw_terminal_of_a_client
	raw := ptytest.Open(t)
	raw.Raw()
	in, out, cmd = serve(raw)
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, "needs_user") || raw.Shown() != "" {
		t.Errorf("%s %v, on the terminal %q", line, err, raw.Shown())
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestAnswerWatch: who watches is there, for all hosts, those too that start
// later. The terminal and the page are two ways at once, and one of them counts.
func TestAnswerWatch(t *testing.T) {
	h := newHouse(t)
	x := ptytest.Open(t)
	watch := exec.Command(built.skill, "answer", "--watch")
	watch.Dir, watch.Env, watch.Stderr = h.work, h.terminal(), x.Slave
	x.Own(watch)
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = watch.Process.Kill() // it may have ended
		_ = watch.Wait()
	})
	x.Wait(0, "waiting for questions")
	s := h.serve().shake()
	// He may come before the question or after it.
	n := len(x.Shown())
	s.call("1", "AskUserQuestion", oneQuestion)
	n = x.Wait(n, "SQLite")
	x.Type("\x1b[B\r")
	x.Wait(n, "shift+tab")
	x.Type("\r")
	x.Wait(n, "Send the answer?")
	x.Type("\r")
	n = x.Wait(n, "Answered: AskUserQuestion")
	line := s.reply("1").line
	if strings.Contains(line, "needs_user") {
		line = s.ask("2", "AskUserQuestion", oneQuestion)
	}
	if !strings.Contains(line, `"channel":"terminal"`) || !strings.Contains(line, `"selected":["SQLite"]`) {
		t.Fatalf("%s", line)
	}
	// Now he is there: the call waits for him. Somebody else is faster.
	s.call("3", "AskUserQuestion", `{"questions_json":[{"question":"Second?","options":["Aye","Nay"]}]}`)
	n = x.Wait(n, "Nay")
	open := h.openQuestions(1)
	h.run(0, "answer", open[0].ID, "--option", "Aye")
	n = x.Wait(n, "answered elsewhere")
	if m := s.reply("3"); !strings.Contains(m.line, `"selected":["Aye"]`) {
		t.Errorf("%s", m.line)
	}
	// And the next one by the keys.
	s.call("4", "AskUserQuestion", `{"questions_json":[{"question":"Third?","type":"yesno"}]}`)
	n = x.Wait(n, "Third?")
	x.Type("\x03")
	if m := s.reply("4"); !strings.Contains(m.line, `"unanswered":"dismissed"`) || !strings.Contains(m.line, `"channel":"terminal"`) {
		t.Errorf("%s", m.line)
	}
	x.Wait(n, "Left without an answer")
	s.close()
	x.Type("\x03")
	if err := watch.Wait(); err != nil || !x.Canonical() {
		t.Errorf("%v, the terminal is as it was: %t", err, x.Canonical())
	}
	h.verify(0)
}

// other_uid: the page is not shown to another user of the machine, with the token
// or without.
func TestAnswerPageOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("LEFT OUT: only root can be another user")
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		leftOut(t, "there is no curl")
	}
	h := newHouse(t)
	s := h.serve().shake()
	page := needsUser(t, s, "1")
	for uid, want := range map[int]string{0: "asks you", ordinary: "for another user"} {
		cmd := exec.Command(curl, "--silent", "--noproxy", "*", page)
		cmd.Dir, cmd.Env = "/", []string{"HOME=/"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("user %d: %v %s", uid, err, out)
		}
	}
	s.close()
}
