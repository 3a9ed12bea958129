//go:build linux

package shell

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// until reads a task's output until it holds want, without a cursor, and
// returns all of it.
func until(t *testing.T, h *fakeHost, id int64, want string) (all string, last readOutput) {
	t.Helper()
	for range 100 {
		last, _ = ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": id, "wait_ms": 500})
		if all += last.Output; strings.Contains(all, want) {
			return all, last
		}
	}
	t.Fatalf("no %q in %q", want, all)
	return "", last
}

// TestBackground: a task from its start to its end, read bit by bit.
func TestBackground(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	began := time.Now()
	out, text := ok[backgroundOutput](t, h, "BackgroundBash", arg{"command": "echo $$ >pid; for i in $(seq 1 1000); do echo \"tick $i\"; sleep 0.1; done", "description": "ticks"})
	if took := time.Since(began); took > 4*time.Second || out.TaskID != 1 || out.Status != "running" || out.LogURI != "skill-output://1" || out.LogPath == "" || !strings.HasPrefix(out.EarlyOutput, "tick 1\n") || out.ExitCode != nil {
		t.Errorf("%v, %+v", took, out)
	}
	if !strings.Contains(text, "background task 1: running") || time.Since(out.StartedAt) > 10*time.Second {
		t.Errorf("%s, %v", text, out.StartedAt)
	}
	all, _ := until(t, h, 1, "tick 15\n")
	for i := 1; i <= 15; i++ {
		if n := strings.Count(all, fmt.Sprintf("tick %d\n", i)); n != 1 {
			t.Errorf("tick %d was read %d times", i, n)
		}
	}
	list, text := ok[listOutput](t, h, "ListBgTasks", arg{})
	if len(list.Tasks) != 1 || list.Tasks[0].TaskID != 1 || list.Tasks[0].Status != "running" || list.Tasks[0].Description != "ticks" || !strings.HasPrefix(list.Tasks[0].Command, "echo $$") || list.Tasks[0].RuntimeMS < 1000 || list.Tasks[0].Bytes < 100 {
		t.Errorf("%+v", list)
	}
	if !strings.Contains(text, "1  running") || !strings.Contains(text, "ticks") {
		t.Error(text)
	}
	if list, text := ok[listOutput](t, h, "ListBgTasks", arg{"status": "exited"}); len(list.Tasks) != 0 || text != "no background tasks\n" {
		t.Errorf("%+v, %q", list, text)
	}
	killed, _ := ok[killOutput](t, h, "KillBgTask", arg{"task_id": "1"})
	if killed.Was != "running" || killed.Status != "killed" || killed.Signal != "SIGTERM" || killed.ExitCode != nil {
		t.Errorf("%+v", killed)
	}
	gone(t, filepath.Join(h.dir, "pid"))
	again, text := ok[killOutput](t, h, "KillBgTask", arg{"task_id": 1})
	if again.Was != "killed" || again.Status != "killed" || !strings.Contains(text, "before it was to be killed") {
		t.Errorf("%+v, %s", again, text)
	}
	whole, _ := ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": 1, "cursor": 0})
	if whole.Status != "killed" || !whole.EOF || whole.Signal != "SIGTERM" || !strings.HasPrefix(whole.Output, all) {
		t.Errorf("%+v", whole)
	}
}

// TestFastFail: a command that ends at once is seen to end.
func TestFastFail(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	out, text := bad[backgroundOutput](t, h, "BackgroundBash", arg{"command": "echo no >&2; exit 4"})
	if out.Status != "exited" || out.ExitCode == nil || *out.ExitCode != 4 || out.EarlyOutput != "no\n" || !strings.HasPrefix(text, "no\n[background task 1: exited with code 4]") {
		t.Errorf("%+v, %s", out, text)
	}
	out, _ = bad[backgroundOutput](t, h, "BackgroundBash", arg{"command": "seq 1 10000; exit 4"})
	if out.Status != "exited" || !strings.HasPrefix(out.EarlyOutput, "1\n2\n") || !strings.HasSuffix(out.EarlyOutput, "\n10000\n") || len(out.EarlyOutput) > maxRunes {
		t.Errorf("%d bytes, %s", len(out.EarlyOutput), out.Status)
	}
	out, _ = ok[backgroundOutput](t, h, "BackgroundBash", arg{"command": "echo yes", "timeout_ms": 99_999_999})
	if out.Status != "exited" || *out.ExitCode != 0 || len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "7200000") {
		t.Errorf("%+v", out)
	}
	var b bashOutput
	r, err := h.call(t.Context(), "Bash", arg{"command": "echo no; exit 4", "run_in_background": true, "timeout": 5000}, &b)
	if err != nil || !r.Failed || b.TaskID != 4 || *b.ExitCode != 4 || b.Stdout != "no\n" || b.OutputURI == "" {
		t.Errorf("%v, %+v", err, b)
	}
}

// TestBackgroundEnds: by its time, by a signal it may handle, and by force.
func TestBackgroundEnds(t *testing.T) {
	need(t, "bash", "setsid")
	for _, tt := range []struct {
		name, tool, command string
		start, kill         arg
		status, signal      string
		code                int
		output              string
	}{
		{name: "timeout", tool: "BackgroundBash", command: "echo a; sleep 300", start: arg{"timeout_ms": 1500}, status: "timed_out", signal: "SIGTERM", output: "a\n"},
		{name: "bash", tool: "Bash", command: "echo a; sleep 300", start: arg{"run_in_background": true}, kill: arg{}, status: "killed", signal: "SIGTERM", output: "a\n"},
		{name: "handled", tool: "BackgroundBash", command: "trap 'echo bye; exit 5' INT; echo a; while :; do sleep 0.05; done", kill: arg{"signal": "INT"}, status: "killed", code: 5, output: "a\nbye\n"},
		{name: "deaf", tool: "BackgroundBash", command: "trap '' TERM HUP; echo a; while :; do sleep 0.05; done", kill: arg{"signal": "HUP", "grace_ms": 500}, status: "killed", signal: "SIGKILL", output: "a\n"},
		{name: "children", tool: "BackgroundBash", command: "echo a; setsid sleep 300 & echo $! >pid; wait", kill: arg{}, status: "killed", signal: "SIGTERM", output: "a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			args := arg{"command": "echo $$ >pid; " + tt.command}
			for k, v := range tt.start {
				args[k] = v
			}
			ok[arg](t, h, tt.tool, args)
			if tt.kill != nil {
				tt.kill["task_id"] = 1
				began := time.Now()
				out, _ := ok[killOutput](t, h, "KillBgTask", tt.kill)
				if out.Status != tt.status || out.Signal != tt.signal || tt.signal == "" && (out.ExitCode == nil || *out.ExitCode != tt.code) || time.Since(began) > 2500*time.Millisecond {
					t.Errorf("%+v", out)
				}
			}
			all := ""
			for range 20 {
				out, _ := ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": 1, "wait_ms": 1000})
				if all += out.Output; out.EOF {
					if out.Status != tt.status || out.Signal != tt.signal || out.TimedOut != (tt.status == "timed_out") {
						t.Errorf("%+v", out)
					}
					break
				}
			}
			if all != tt.output {
				t.Errorf("output %q", all)
			}
			gone(t, filepath.Join(h.dir, "pid"))
		})
	}
}

// TestReadDropped: of an output whose beginning is gone, no more is returned
// than of any other, and what was returned counts as read.
func TestReadDropped(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	ok[arg](t, h, "BackgroundBash", arg{"command": "seq -f 'line %.0f' 1 200000"})
	<-h.jobs[0].ended
	h.mu.Lock()
	h.jobs[0].lost = 1_000_000
	h.mu.Unlock()
	out, _ := ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": 1, "cursor": 0})
	if len(out.Output) > maxRunes || out.Output == "" || out.Dropped != 1_000_000 || out.Cursor != 1_000_000 {
		t.Errorf("%d bytes from %d, %d dropped", len(out.Output), out.Cursor, out.Dropped)
	}
	if more, _ := ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": 1}); more.Cursor != out.Next {
		t.Errorf("then from %d, want %d", more.Cursor, out.Next)
	}
}

// TestRead: cursors, filters, tails and waiting.
func TestRead(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	ok[arg](t, h, "BackgroundBash", arg{"command": `for i in $(seq 1 20000); do echo "line $i"; done; printf '\033[32mgreen\033[0m\n10%%\r99%%\nlast'`})
	for range 100 {
		if list, _ := ok[listOutput](t, h, "ListBgTasks", arg{"status": "exited"}); len(list.Tasks) == 1 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	read := func(more arg) readOutput {
		t.Helper()
		args := arg{"task_id": 1}
		for k, v := range more {
			args[k] = v
		}
		out, text := ok[readOutput](t, h, "ReadBgOutput", args)
		if len(out.Output) > maxRunes || !strings.Contains(text, fmt.Sprintf("next cursor %d", out.Next)) {
			t.Errorf("%d bytes, %s", len(out.Output), text[max(0, len(text)-200):])
		}
		return out
	}
	var all strings.Builder
	var at int64
	for range 100 { // pages with cursors, the last without
		out := read(arg{"cursor": at})
		if out.Cursor != at || out.Output == "" || !out.EOF && !strings.HasSuffix(out.Output, "\n") {
			t.Fatalf("%+v", out)
		}
		all.WriteString(out.Output)
		if at = out.Next; len(all.String()) > 150_000 {
			break
		}
	}
	for range 100 {
		out := read(nil)
		if all.WriteString(out.Output); out.EOF {
			break
		}
	}
	want := strings.Builder{}
	for i := range 20000 {
		fmt.Fprintf(&want, "line %d\n", i+1)
	}
	want.WriteString("green\n99%\nlast")
	if all.String() != want.String() {
		t.Errorf("%d of %d bytes", all.Len(), want.Len())
	}
	if out := read(nil); out.Output != "" || !out.EOF || out.ExitCode == nil || *out.ExitCode != 0 {
		t.Errorf("after the end: %+v", out)
	}
	if out := read(arg{"cursor": 0}); !strings.HasPrefix(out.Output, "line 1\n") {
		t.Errorf("again: %.40q", out.Output)
	}
	if out := read(nil); out.Output != "" {
		t.Error("to read again is to go back")
	}
	if out := read(arg{"cursor": 0, "filter": "^line 1?9999$"}); out.Output != "line 9999\nline 19999\n" || !out.EOF {
		t.Errorf("filter: %+v", out)
	}
	if out := read(arg{"cursor": 0, "tail_lines": 3}); out.Output != "green\n99%\nlast" || !out.EOF {
		t.Errorf("tail: %+v", out)
	}
	if out := read(arg{"cursor": 0, "tail_lines": 2, "filter": "^line"}); out.Output != "line 19999\nline 20000\n" {
		t.Errorf("tail of filter: %+v", out)
	}
	for want, args := range map[string]arg{
		"no background task 99": {"task_id": 99}, "filter": {"task_id": 1, "filter": "("}, "number of a task": {"task_id": "x"}, "count from 0": {"task_id": 1, "cursor": -1},
		`task_id: "" is`: {"task_id": ""}, "task_id: 1.5 is": {"task_id": 1.5}, "task_id: 0 is": {"task_id": 0}, "task_id: null": {"task_id": nil},
	} {
		refused(t, h, "ReadBgOutput", args, want)
	}
	refused(t, h, "KillBgTask", arg{"task_id": 99}, "no background task 99")
	refused(t, h, "KillBgTask", arg{"task_id": 1, "grace_ms": -1}, "grace_ms")
	refused(t, h, "BackgroundBash", arg{"command": "true", "timeout_ms": 0}, "0 is not a time")
	refused(t, h, "BackgroundBash", arg{"command": " "}, "nothing to run")
	refused(t, h, "Bash", arg{"command": "true", "run_in_background": true, "env": arg{"=": ""}}, "env")
}

// TestReadWaits: for what comes, and no longer than it is told.
func TestReadWaits(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	ok[arg](t, h, "BackgroundBash", arg{"command": "sleep 1.5; echo x; sleep 0.3; echo wanted; printf prompt; sleep 300"})
	began := time.Now()
	out, _ := ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": 1, "wait_ms": 20_000, "filter": "wanted"})
	if out.Output != "wanted\n" || time.Since(began) > 10*time.Second || out.Status != "running" || out.EOF {
		t.Errorf("%+v after %v", out, time.Since(began))
	}
	began = time.Now()
	out, text := ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": 1, "wait_ms": 300})
	if took := time.Since(began); out.Output != "" || took < 300*time.Millisecond || took > 5*time.Second || !strings.Contains(text, "an unfinished line of 6 bytes follows") {
		t.Errorf("%+v after %v: %s", out, took, text)
	}
	ok[killOutput](t, h, "KillBgTask", arg{"task_id": 1, "signal": "KILL", "grace_ms": 0})
}

// TestReadBinary: what is no text is not shown.
func TestReadBinary(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	out, _ := ok[backgroundOutput](t, h, "BackgroundBash", arg{"command": `printf 'a\0b\n'`})
	read, _ := ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": 1})
	if want := "[binary output, 4 bytes]\n"; out.EarlyOutput != want || read.Output != want || !read.EOF {
		t.Errorf("%+v, %+v", out, read)
	}
}

// TestServer: a real server is started, used, read and killed.
func TestServer(t *testing.T) {
	need(t, "bash", "python3")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	h := newHost(t)
	if err := os.WriteFile(filepath.Join(h.dir, "hello.txt"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := ok[backgroundOutput](t, h, "BackgroundBash", arg{"command": fmt.Sprintf("exec python3 -u -m http.server --bind 127.0.0.1 %d", port)})
	all, _ := until(t, h, out.TaskID, "Serving HTTP")
	get := func() error {
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/hello.txt", port))
		if err == nil {
			r.Body.Close()
		}
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	if more, _ := until(t, h, out.TaskID, "GET /hello.txt"); strings.Contains(more, "Serving HTTP") {
		t.Errorf("read twice: %q after %q", more, all)
	}
	killed, _ := ok[killOutput](t, h, "KillBgTask", arg{"task_id": out.TaskID})
	if killed.Status != "killed" || get() == nil {
		t.Errorf("%+v, and it still serves: %v", killed, get() == nil)
	}
}

// TestPulse: who waits hears that it goes on. It takes as long as a pulse.
func TestPulse(t *testing.T) {
	need(t, "bash")
	if testing.Short() {
		t.Skip("LEFT OUT: takes ten seconds")
	}
	h := newHost(t)
	ok[bashOutput](t, h, "Bash", arg{"command": "echo abc; sleep 8.5"})
	events := slices.DeleteFunc(h.Events(), func(e sdk.Event) bool { return e.Kind == sdk.EventPartial })
	if len(events) != 1 || events[0].Kind != sdk.EventProgress || events[0].Total != 30 || events[0].Message != "running for 8s: 4 bytes of output" {
		t.Errorf("%+v", events)
	}
	if pulse > 10*time.Second {
		t.Error("a pulse is rarer than every 10 s")
	}
}

// TestShowing: what a command writes is passed on while it runs, each line once.
func TestShowing(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	seen := func() (text string) {
		for _, e := range h.Events() {
			if e.Kind == sdk.EventPartial {
				text += e.Content.Text
			}
		}
		return text
	}
	next := filepath.Join(t.TempDir(), "next")
	go func() { // lets the command go on once its output has been passed on
		for t.Context().Err() == nil && !strings.Contains(seen(), "two") {
			time.Sleep(10 * time.Millisecond)
		}
		_ = os.WriteFile(next, nil, 0o600)
	}()
	ok[bashOutput](t, h, "Bash", arg{"command": "echo one; echo two >&2; until [ -e " + next + " ]; do sleep 0.05; done; echo three"})
	if got := seen(); strings.Count(got, "one\n") != 1 || strings.Count(got, "two\n") != 1 {
		t.Errorf("passed on: %q", got)
	}
}

// TestUnseen: much output is shown from its end, from the beginning of a line.
func TestUnseen(t *testing.T) {
	s := newSink(io.Discard, 1<<30, false)
	if got := s.unseen(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	s.write(0, []byte("a\nb"))
	if got := s.unseen(); got != "a\n" {
		t.Errorf("got %q", got)
	}
	s.write(0, []byte("c\n"))
	if got := s.unseen(); got != "bc\n" {
		t.Errorf("got %q", got)
	}
	for i := range 5000 {
		s.write(i%2, fmt.Appendf(nil, "line %d\n", i))
	}
	got := s.unseen()
	if lines := strings.Split(got, "\n"); lines[0] != "[…]" || !strings.HasPrefix(lines[1], "line ") || !strings.HasSuffix(got, "line 4999\n") || len(got) > maxFresh+10 {
		t.Errorf("got %d bytes: %.60q … %q", len(got), got, got[max(0, len(got)-30):])
	}
	if len(s.fresh) != 0 || cap(s.fresh) > 8*maxFresh {
		t.Errorf("kept %d of %d bytes", len(s.fresh), cap(s.fresh))
	}
}

// TestOutputResource: what a command has written can be read as a resource,
// its end if it is long, and that counts as read by nobody.
func TestOutputResource(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	ended := func(command string) int64 {
		started, _ := ok[backgroundOutput](t, h, "BackgroundBash", arg{"command": command})
		for range 600 {
			if r, _ := ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": started.TaskID, "cursor": 0, "wait_ms": 200}); r.Status != "running" {
				return started.TaskID
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatal("it does not end")
		return 0
	}
	read := func(id int64) sdk.Content {
		r, err := h.call(t.Context(), "read_output", arg{"id": fmt.Sprint(id)}, nil)
		if err != nil || len(r.Content) != 1 || r.Content[0].URI != fmt.Sprintf("skill-output://%d", id) {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Content[0]
	}
	short := ended("printf 'a\\nb'")
	for range 2 {
		if c := read(short); c.Text != "a\nb" || c.MIME != "text/plain" {
			t.Errorf("%+v", c)
		}
	}
	if c := read(ended("seq 1 900000")); len(c.Text) > maxResource+100 || !strings.HasPrefix(c.Text, "[… ") || !strings.HasSuffix(c.Text, "\n899999\n900000\n") {
		t.Errorf("%d bytes, %.60q", len(c.Text), c.Text)
	}
	if c := read(ended("head -c 5000 /dev/zero")); c.Text != "" || len(c.Data) != 5000 {
		t.Errorf("%d bytes of text, %d of data", len(c.Text), len(c.Data))
	}
	for _, id := range []string{"99", "0", "-1", "01", "x", "", "1e3"} {
		if _, err := h.call(t.Context(), "read_output", arg{"id": id}, nil); err == nil {
			t.Errorf("read output %q", id)
		}
	}
}
