//go:build linux || darwin

package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/sdk"
)

const patience = 30 * time.Second

// TestMain is also the other user: it connects to the socket that it is given and
// prints what it reads.
func TestMain(m *testing.M) {
	name := os.Getenv("ASK_CONNECTS")
	if name == "" {
		os.Exit(m.Run())
	}
	c, err := net.Dial("unix", name)
	if err == nil {
		_, err = io.WriteString(c, `{"op":"list"}`+"\n")
	}
	if err == nil {
		_, err = io.Copy(os.Stdout, c)
	}
	if err != nil {
		os.Stdout.WriteString("error: " + err.Error())
	}
	os.Exit(0)
}

// A world is a host that serves its questions.
type world struct {
	t    *testing.T
	dir  string
	room *ask.Room
	warn chan error
	stop context.CancelFunc
	done chan error
}

func newWorld(t *testing.T, dir string) *world {
	t.Helper()
	w := &world{t: t, dir: dir, warn: make(chan error, 8), done: make(chan error, 1),
		room: ask.New(ask.Options{Local: func(string) bool { return true }})}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	before := len(w.sockets())
	go func() { w.done <- Serve(ctx, dir, w.room, func(err error) { w.warn <- err }) }()
	t.Cleanup(func() { w.stop(); <-w.done; w.done <- nil })
	w.until(func() bool { return len(w.sockets()) > before })
	return w
}

func (w *world) until(ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("it does not come to that")
		}
	}
}

func (w *world) sockets() []string {
	found, err := filepath.Glob(filepath.Join(w.dir, "*"+suffix))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) put(message string) *ask.Asked {
	w.t.Helper()
	a := w.room.Put(context.Background(), &sdk.Call{Tool: "T", Scope: sdk.Scope{Caller: "local:me"}}, 1, map[string]sdk.Question{
		"q": {Kind: sdk.QuestionForm, Message: message, Schema: json.RawMessage(`{"properties":{"n":{"type":"string","minLength":2}}}`)}})
	if a == nil {
		w.t.Fatal("not put")
	}
	return a
}

func (w *world) dial() []*Host {
	w.t.Helper()
	hosts, err := Dial(context.Background(), w.dir, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		for _, h := range hosts {
			h.Close()
		}
	})
	return hosts
}

func text(s string) ask.Reply {
	return ask.Reply{Action: "accept", Filled: map[string]map[string][]string{"q": {"n": {s}}}}
}

// deep is a directory whose path is longer than that of a socket may be.
func deep(t *testing.T) string {
	if len(t.TempDir()) < 90 { // on macOS there is no way around the limit
		return filepath.Join(t.TempDir(), strings.Repeat("long/", 30), "questions")
	}
	return filepath.Join(t.TempDir(), "q")
}

func TestListAndAnswer(t *testing.T) {
	dir := deep(t)
	w, other := newWorld(t, dir), newWorld(t, dir)
	a, b := w.put("one?"), other.put("two?")
	for _, name := range w.sockets() {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, st.Mode(), err)
		}
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	hosts := w.dial()
	if len(hosts) != 2 {
		t.Fatalf("%d hosts", len(hosts))
	}
	for _, h := range hosts {
		open, err := h.List()
		if err != nil || len(open) != 1 {
			t.Fatalf("%+v %v", open, err)
		}
		var faults ask.Faults
		if err := h.Answer(open[0].ID, text("x")); !errors.As(err, &faults) || faults["q"][0].Field != "n" {
			t.Errorf("%v", err)
		}
		if err := h.Answer("nobody", text("xy")); !errors.Is(err, ask.ErrOver) {
			t.Errorf("%v", err)
		}
		if err := h.Answer(open[0].ID, ask.Reply{Action: "explode"}); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%v", err)
		}
		if err := h.Answer(open[0].ID, text(open[0].Parts[0].Message)); err != nil {
			t.Error(err)
		}
		if err := h.Answer(open[0].ID, text("again")); !errors.Is(err, ask.ErrOver) {
			t.Errorf("%v", err)
		}
		if open, err := h.List(); err != nil || len(open) != 0 {
			t.Errorf("%+v %v", open, err)
		}
	}
	for a, want := range map[*ask.Asked]string{a: `{"n":"one?"}`, b: `{"n":"two?"}`} {
		if got := a.Take(nil)["q"]; string(got.Content) != want || got.Channel != "terminal" {
			t.Errorf("%+v", got)
		}
	}
	if known, err := Dial(t.Context(), dir, map[string]bool{hosts[0].Name: true, hosts[1].Name: true}); err != nil || len(known) != 0 {
		t.Errorf("%v %v", known, err)
	}
}

func TestWatch(t *testing.T) {
	w := newWorld(t, deep(t))
	first := w.put("one?")
	h := w.dial()[0]
	events := make(chan string, 16)
	ended := make(chan error, 1)
	go func() {
		ended <- h.Watch(func(v ask.View) { events <- "+" + v.Parts[0].Message }, func(id string) { events <- "-" })
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-events:
			if got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("no %q", want)
		}
	}
	next("+one?")
	if !w.room.Attached(sdk.Scope{}) {
		t.Error("nobody is attached")
	}
	w.put("two?")
	next("+two?")
	first.Leave(false, "")
	next("-")
	h.Close()
	if err := <-ended; err == nil {
		t.Error("a watch has ended without a reason")
	}
	w.until(func() bool { return !w.room.Attached(sdk.Scope{}) })
	h = w.dial()[0]
	go func() { ended <- h.Watch(func(ask.View) {}, func(string) {}) }()
	w.until(func() bool { return w.room.Attached(sdk.Scope{}) })
	w.stop() // the host ends
	if err := <-ended; err == nil {
		t.Error("a watch has outlived its host")
	}
}

// What hosts that died left behind is removed; others are not touched.
func TestLeftovers(t *testing.T) {
	w := newWorld(t, deep(t))
	d, err := os.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: place(d, "dead"+suffix), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if n := len(w.sockets()); n != 2 {
		t.Fatalf("%d sockets", n)
	}
	if hosts := w.dial(); len(hosts) != 1 {
		t.Errorf("%d hosts", len(hosts))
	}
	if n := len(w.sockets()); n != 1 {
		t.Errorf("%d sockets are left", n)
	}
	w.stop()
	w.until(func() bool { return len(w.sockets()) == 0 })
	if hosts, err := Dial(t.Context(), filepath.Join(w.dir, "none"), nil); err != nil || hosts != nil {
		t.Errorf("%v %v", hosts, err)
	}
}

// open_directory: a directory that others can enter is not used, by either end.
func TestOpenDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), dir, ask.New(ask.Options{}), nil); sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("%v", err)
	}
	if _, err := Dial(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}

// other_uid: the kernel says who is at the other end, even if the files let
// everybody in.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("LEFT OUT: only root can be another user")
	}
	dir, err := os.MkdirTemp("/tmp", "ask")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w := newWorld(t, filepath.Join(dir, "q"))
	w.put("secret?")
	name := w.sockets()[0]
	exe := filepath.Join(dir, "other")
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(exe, self, 0o755)
	}
	if err != nil {
		t.Skip("LEFT OUT: ", err)
	}
	call := func() string {
		t.Helper()
		cmd := exec.Command(exe)
		cmd.Env, cmd.Dir = []string{"ASK_CONNECTS=" + name}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1507, Gid: 1507}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out := call(); !strings.Contains(out, "permission denied") {
		t.Errorf("the files do not keep others out: %s", out)
	}
	for name, mode := range map[string]os.FileMode{filepath.Dir(name): 0o755, name: 0o666} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	if out := call(); strings.Contains(out, "secret") {
		t.Errorf("another user was served: %s", out)
	}
	select {
	case err := <-w.warn:
		if !strings.Contains(err.Error(), "user 1507") {
			t.Errorf("%v", err)
		}
	case <-time.After(patience):
		t.Error("nobody was turned away")
	}
}

// long_line, nonsense, slow_reader: what a connection says cannot harm the host.
func TestHostileLines(t *testing.T) {
	w := newWorld(t, deep(t))
	a := w.put("?")
	c := w.connect()
	go func() { // it is closed in the middle
		_, _ = io.WriteString(c, `{"op":"answer","id":"`+strings.Repeat("x", maxLine)+`"}`+"\n")
	}()
	if got, _ := io.ReadAll(c); len(got) > 0 {
		t.Errorf("a long line was answered: %s", got)
	}
	for _, line := range []string{"nonsense", "[]", `{"op":7}`} {
		c := w.connect()
		if _, err := io.WriteString(c, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("%s was answered: %s", line, got)
		}
	}
	c = w.connect()
	if _, err := io.WriteString(c, `{"op":"approve"}`+"\n"+`{"op":"watch"}`+"\n"+`{"op":"watch"}`+"\n"+`{"op":"answer","id":"x"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(c)
	got := ""
	for range 3 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got += line
	}
	if strings.Count(got, `"error"`) != 2 || strings.Count(got, `"open"`) != 1 {
		t.Errorf("%s", got)
	}
	if a.Take(nil) != nil {
		t.Error("something has answered")
	}
}

// too_many_connections: what is beyond the places is closed, and the places are
// free again when they are left.
func TestTooManyConnections(t *testing.T) {
	w := newWorld(t, deep(t))
	var all []net.Conn
	for range 2 * maxConns {
		all = append(all, w.connect())
	}
	for _, c := range all {
		c.Close()
	}
	w.until(func() bool {
		hosts := w.dial()
		if len(hosts) != 1 {
			return false
		}
		defer hosts[0].Close()
		_, err := hosts[0].List()
		return err == nil
	})
}

// connect makes a connection to say anything on.
func (w *world) connect() net.Conn {
	w.t.Helper()
	d, err := os.Open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer d.Close()
	c, err := net.Dial("unix", place(d, filepath.Base(w.sockets()[0])))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
	return c
}
