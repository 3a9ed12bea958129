package tty

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/host/ask/tty/ptytest"
	"github.com/skillhost/skill/sdk"
)

// TestMain is also the program in the terminal: it says on descriptor 3 whose the
// terminal is, or asks what it is given and says what was answered.
func TestMain(m *testing.M) {
	out := os.NewFile(3, "out")
	switch os.Getenv("ASK_TTY") {
	case "":
		os.Exit(m.Run())
	case "background": // the job of a shell that is not in front
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{"ASK_TTY=owned"}
		cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{out}, &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Run(); err != nil {
			fmt.Fprint(out, err)
		}
	case "owned":
		fmt.Fprint(out, new(Own).Owned())
	case "ask":
		fmt.Fprint(out, question(os.Getenv("ASK_SCHEMA"), os.Getenv("ASK_EVIL"), os.Getenv("ASK_LOST") != ""))
	}
	os.Exit(0)
}

// question asks at the terminal and returns the answer as JSON.
func question(schema, evil string, lost bool) string {
	room := ask.New(ask.Options{Local: func(string) bool { return true }, Display: new(Own)})
	a := room.Put(context.Background(), &sdk.Call{Tool: "T" + evil, Scope: sdk.Scope{Caller: "local:me"}}, 1, map[string]sdk.Question{
		"q": {Kind: sdk.QuestionForm, Message: "Say it." + evil, Schema: json.RawMessage(schema)}})
	if lost { // somebody else is faster, when the form is there
		go func() {
			time.Sleep(time.Second)
			open, _ := room.Open()
			_ = room.Answer(open[0].ID, ask.Page, ask.Reply{Action: "decline"})
		}()
	}
	if !a.Wait(context.Background(), true) {
		return "nobody"
	}
	answer := a.Take(nil)["q"]
	answer.Took = 0
	b, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// inside runs this program in a terminal and returns a function that waits for
// what it says.
func inside(t *testing.T, x *ptytest.Terminal, env ...string) func() string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(env, "TERM=xterm-256color")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{w}, os.Stderr
	if x != nil {
		x.Own(cmd)
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return func() string {
		t.Helper()
		var b [64 << 10]byte
		if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, _ := r.Read(b[:])
		r.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v, after %s", err, b[:n])
		}
		return string(b[:n])
	}
}

// Whose the terminal is: only a terminal in canonical mode of the job in front is
// drawn on. A client with an interface of its own has it in raw mode.
func TestOwned(t *testing.T) {
	x := ptytest.Open(t)
	if got := inside(t, x, "ASK_TTY=owned")(); got != "true" {
		t.Errorf("in front: %s", got)
	}
	if got := inside(t, ptytest.Open(t), "ASK_TTY=background")(); got != "false" {
		t.Errorf("in the background: %s", got)
	}
	if got := inside(t, nil, "ASK_TTY=owned")(); got != "false" {
		t.Errorf("without a terminal: %s", got)
	}
	raw := ptytest.Open(t)
	raw.Raw()
	if got := inside(t, raw, "ASK_TTY=owned")(); got != "false" {
		t.Errorf("raw_terminal_of_a_client: %s", got)
	}
	if got := inside(t, raw, "ASK_TTY=ask", "ASK_SCHEMA={}")(); got != "nobody" || raw.Shown() != "" {
		t.Errorf("it was drawn on: %s %q", got, raw.Shown())
	}
}

const schema = `{"type":"object","properties":{
	"db":{"type":"string","title":"Database","oneOf":[{"const":"pg","title":"Postgres"},{"const":"lite","title":"SQLite"}]},
	"db_other":{"type":"string","title":"Other"},
	"many":{"type":"array","title":"Features","items":{"anyOf":[{"const":"x","title":"Xylophone"},{"const":"y","title":"Yodel"}]}},
	"sure":{"type":"boolean","title":"Sure"},"age":{"type":"integer","title":"Age","minimum":1},"essay":{"type":"string","title":"Essay"}},"required":["age"]}`

const (
	down  = "\x1b[B"
	enter = "\r"
)

func TestForm(t *testing.T) {
	x := ptytest.Open(t)
	answer := inside(t, x, "ASK_TTY=ask", "ASK_SCHEMA="+schema)
	x.Wait(0, "T asks")
	n := x.Wait(0, "SQLite")
	x.Type(down + enter)
	n = x.Wait(n, "shift+tab") // the help of the second field of a page
	x.Type("with ö" + enter)
	n = x.Wait(n, "Yodel")
	x.Type(" " + down + " " + enter)
	n = x.Wait(n, "Sure")
	x.Type(down + enter)
	n = x.Wait(n, "Age (required)")
	x.Type("0" + enter)
	n = x.Wait(n, "at least 1")
	x.Type("\x7f7" + enter)
	n = x.Wait(n, "Essay")
	x.Type("one" + enter)
	n = x.Wait(n, "Send the answer?")
	x.Type(enter)
	x.Wait(n, "Answered: T")
	if got := answer(); got != `{"action":"accept","content":{"db":"lite","db_other":"with ö","many":["x","y"],"sure":false,"age":7,"essay":"one"},"channel":"tty"}` {
		t.Errorf("%s", got)
	}
	if !x.Canonical() {
		t.Error("the terminal is left raw")
	}
}

func TestLeave(t *testing.T) {
	for keys, want := range map[string]string{
		"\x03":                           `{"action":"cancel","channel":"tty"}`,
		enter + enter + "n":              `{"action":"decline","channel":"tty"}`,
		enter + enter + "\x1b[C" + enter: `{"action":"decline","channel":"tty"}`,
	} {
		x := ptytest.Open(t)
		answer := inside(t, x, "ASK_TTY=ask", `ASK_SCHEMA={"properties":{"a":{"type":"boolean"},"b":{"type":"string"}}}`)
		n := x.Wait(0, "Yes")
		for i, key := range strings.SplitAfter(keys, enter) {
			if x.Type(key); key == enter && i < 2 {
				n = x.Wait(n, map[int]string{0: "b", 1: "Send"}[i])
			}
		}
		if got := answer(); got != want {
			t.Errorf("%q: %s", keys, got)
		}
		if !x.Canonical() {
			t.Error("the terminal is left raw")
		}
	}
}

// Another way is faster: the form goes, and says why.
func TestAnsweredElsewhere(t *testing.T) {
	x := ptytest.Open(t)
	answer := inside(t, x, "ASK_TTY=ask", "ASK_LOST=1", "ASK_SCHEMA="+schema)
	n := x.Wait(0, "SQLite")
	x.Wait(n, "answered elsewhere")
	if got := answer(); got != `{"action":"decline","channel":"page"}` {
		t.Errorf("%s", got)
	}
	if !x.Canonical() {
		t.Error("the terminal is left raw")
	}
}

// terminal_escape: what a tool says does not reach the terminal as a command.
func TestEscapes(t *testing.T) {
	x := ptytest.Open(t)
	evil := "\x1b]0;evil\x07\x1b[2Jwiped\u009b5m\u202eback"
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	answer := inside(t, x, "ASK_TTY=ask", "ASK_EVIL="+evil, "ASK_SCHEMA="+strings.ReplaceAll(
		`{"properties":{EVIL:{"type":"string","title":EVIL,"description":EVIL,"oneOf":[{"const":"c","title":EVIL}]},"t":{"type":"string","default":EVIL}}}`, "EVIL", string(quoted)))
	x.Wait(0, "wiped")
	x.Type(enter)
	x.Wait(0, "t")
	x.Type("\x03")
	if got := answer(); got != `{"action":"cancel","channel":"tty"}` {
		t.Errorf("%s", got)
	}
	for _, bad := range []string{"\x1b]0;evil", "\x1b[2Jwiped", "\u009b5m", "\u202e"} {
		if strings.Contains(x.Shown(), bad) {
			t.Errorf("%q came through", bad)
		}
	}
}
