package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait of these tests. Nothing is timed: a test that
// waits that long has failed.
const patience = 90 * time.Second

// A house is a SKILL_HOME and a workspace.
type house struct {
	t          testing.TB
	home, work string
}

// newHouse makes one in which the named skills are installed and allowed.
func newHouse(t testing.TB, allowed ...string) *house {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t, filepath.Join(dir, "home"), filepath.Join(dir, "work")}
	for _, d := range []string{h.home, h.work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := linkCache(h.home); err != nil {
		t.Fatal(err)
	}
	for _, name := range allowed {
		h.install(name, name)
		h.run(0, "allow", "--yes", name)
	}
	return h
}

// install copies a skill into the house, under a folder of that name.
func (h *house) install(name, folder string) {
	h.t.Helper()
	if err := copyTree(filepath.Join(h.home, "skills", folder), filepath.Join(built.skills, name)); err != nil {
		h.t.Fatal(err)
	}
}

// write replaces a file below the home whole, as an editor does.
func (h *house) write(name, text string) {
	h.t.Helper()
	file := filepath.Join(h.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(file+"~", []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) read(name string) string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.home, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

// run runs the binary to its end and returns its standard output.
func (h *house) run(status int, args ...string) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, built.skill, args...)
	cmd.Dir, cmd.Env = h.work, h.env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		h.t.Fatalf("skill %q: %v, want status %d\n%s%s", args, err, status, out.String(), errs.String())
	}
	return out.String()
}

func (h *house) env() []string { return cleanEnv(built.dir, "SKILL_HOME="+h.home) }

// verify wants an intact record with so many interrupted calls.
func (h *house) verify(interrupted int) {
	h.t.Helper()
	out := h.run(0, "audit", "verify")
	if !strings.HasPrefix(out, "intact: ") && !strings.Contains(out, "\nintact: ") || !strings.Contains(out, fmt.Sprintf(" %d interrupted", interrupted)) {
		h.t.Errorf("audit verify: %s", out)
	}
}

// A server is a running "skill serve", and this its client's end.
type server struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	errs   *lines
	wait   func() error
	answer []message // read, and not yet asked for
}

// A message is a line of the server's.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	line string
}

// serve starts a server; prefix is put in front of its command line.
func (h *house) serve(prefix ...string) *server {
	h.t.Helper()
	return h.start(append(prefix, built.skill, "serve", "--workspace", h.work)...)
}

// start starts a server by a command line.
func (h *house) start(args ...string) *server {
	h.t.Helper()
	s := &server{t: h.t, cmd: exec.Command(args[0], args[1:]...), lines: make(chan string, 1024), errs: new(lines)}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = h.work, h.env(), s.errs
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	s.wait = sync.OnceValue(func() error {
		for range s.lines { // to the end of output, before Wait closes it
		}
		return s.cmd.Wait()
	})
	go func() {
		defer close(s.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			s.lines <- line
		}
	}()
	h.t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = s.wait()
		if h.t.Failed() {
			h.t.Logf("standard error of the server:\n%s", s.errs)
		}
	})
	return s
}

// shake begins a session, so that notifications are sent.
func (s *server) shake() *server {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	s.reply("hello")
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *server) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// call sends a tools/call.
func (s *server) call(id, tool, args string) {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args))
}

// await returns the first message that match likes.
func (s *server) await(what string, match func(message) bool) message {
	s.t.Helper()
	for i, m := range s.answer {
		if match(m) {
			s.answer = append(s.answer[:i:i], s.answer[i+1:]...)
			return m
		}
	}
	deadline := time.After(patience)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.t.Fatalf("the server ended before %s\n%s", what, s.errs)
			}
			m := message{line: line}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				s.t.Fatalf("not a message: %q: %v", line, err)
			}
			if match(m) {
				return m
			}
			s.answer = append(s.answer, m)
		case <-deadline:
			s.t.Fatalf("no %s\n%s", what, s.errs)
		}
	}
}

// reply returns the answer to a request.
func (s *server) reply(id string) message {
	s.t.Helper()
	return s.await("answer to "+id, func(m message) bool { return m.Method == "" && string(m.ID) == fmt.Sprintf("%q", id) })
}

// ask calls a tool and returns its answer's line.
func (s *server) ask(id, tool, args string) string {
	s.t.Helper()
	s.call(id, tool, args)
	return s.reply(id).line
}

// tools lists the names that the server offers.
func (s *server) tools(id string) []string {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/list"}`, id))
	var r struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(s.reply(id).Result, &r); err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// close ends the input and wants a clean end.
func (s *server) close() {
	s.t.Helper()
	if err := s.in.Close(); err != nil {
		s.t.Fatal(err)
	}
	if err := s.end(); err != nil {
		s.t.Errorf("the server ended with %v\n%s", err, s.errs)
	}
}

// end waits for the server's end.
func (s *server) end() error {
	s.t.Helper()
	kill := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	return s.wait()
}

// until waits for a condition that only becomes true.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s", what)
		}
	}
}

// lines are what a process writes to its standard error.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
