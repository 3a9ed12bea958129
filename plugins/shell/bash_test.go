//go:build linux

package shell

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// need skips a test that a missing program makes impossible.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip("LEFT OUT: there is no " + p)
		}
	}
}

// gone fails unless the process that wrote its pid to file has ended.
func gone(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("%s: process %d goes on", filepath.Base(file), pid)
}

func TestBash(t *testing.T) {
	need(t, "bash")
	code := func(n int) *int { return &n }
	for _, tt := range []struct {
		name, command    string
		more             arg
		failed           bool
		code             *int
		signal           string
		out, err         string // the streams
		text, note, exit string // that are in the text, in a note, in exit_note
	}{
		{name: "both_streams", command: "echo a; echo b >&2", code: code(0), out: "a\n", err: "b\n", text: "a\n"},
		{name: "no_output", command: "true", code: code(0), text: "(no output)"},
		{name: "exit_code", command: "echo before; exit 3", failed: true, code: code(3), out: "before\n", text: "before\n[exit code 3]"},
		{name: "benign", command: "echo x | grep y", code: code(1), exit: "no line matched", text: "[exit code 1 of grep: no line matched]"},
		{name: "not_benign", command: "grep x /nowhere", failed: true, code: code(2), err: "grep: /nowhere: No such file or directory\n"},
		{name: "not_found", command: "no-such-program-1", failed: true, code: code(127), exit: "not found", err: "bash: line 1: no-such-program-1: command not found\n"},
		{name: "not_executable", command: "./f", failed: true, code: code(126), exit: "cannot be executed", err: "bash: line 1: ./f: Permission denied\n"},
		{name: "bad_format", command: "./g", failed: true, code: code(126), exit: "cannot be executed", err: "bash: line 1: ./g: cannot execute binary file: Exec format error\n"},
		{name: "signal", command: "kill -SEGV $$", failed: true, signal: "SIGSEGV", text: "[ended by SIGSEGV]"},
		{name: "signal_of_child", command: "sh -c 'kill -TERM $$'; exit $?", failed: true, code: code(143), exit: "SIGTERM (128+15)", err: "Terminated\n"},
		{name: "killed", command: "kill -9 $$", failed: true, signal: "SIGKILL", note: "memory"},
		{name: "no_stdin", command: "cat; echo end", code: code(0), out: "end\n"},
		{name: "stdin", command: "tr a-z A-Z", more: arg{"stdin": "text\n"}, code: code(0), out: "TEXT\n"},
		{name: "stdin_not_read", command: "exec 0<&-; echo ok", more: arg{"stdin": strings.Repeat("x", 1<<20)}, code: code(0), out: "ok\n"},
		{name: "env", command: `echo "$A-$HOST_SECRET-$TERM-$PAGER-$GIT_TERMINAL_PROMPT-$CI-$GRANTED"`, more: arg{"env": arg{"A": "x y"}}, code: code(0), out: "x y--dumb-cat-0-1-yes\n"},
		{name: "no_proxy", command: "env | grep -i _proxy=", code: code(1), exit: "no line matched"},
		{name: "cwd", command: "basename $PWD", more: arg{"cwd": "sub"}, code: code(0), out: "sub\n"},
		{name: "cwd_absent", command: "test -d sub && echo here", more: arg{"cwd": "no/where"}, code: code(0), out: "here\n", note: "the command ran in the workspace"},
		{name: "no_terminal", command: "tty; exec </dev/tty", failed: true, code: code(1), out: "not a tty\n", err: "bash: line 1: /dev/tty: No such device or address\n"},
		{name: "escapes", command: `printf '\033[31mred\033[0m \033]0;title\007x\n10%%\r20%%\r\n'`, code: code(0), out: "red x\n20%\n"},
		{name: "not_utf8", command: `printf 'a\377b\303\n'`, code: code(0), out: "a\ufffdb\ufffd\n"},
		{name: "no_newline", command: `printf a; printf b >&2`, code: code(0), out: "a", err: "b", text: "a\nb\n"},
		{name: "clamped", command: "true", more: arg{"timeout": 86_400_000}, code: code(0), note: "timeout 86400000 ms is more than allowed: it is 600000 ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			h.env = map[string]string{"GRANTED": "yes"}
			t.Setenv("HOST_SECRET", "do not show")
			for name, text := range map[string]string{"f": "x", "sub/x": ""} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(h.dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(h.dir, "g"), []byte("\x7fELF\x00\x01\x02"), 0o755); err != nil {
				t.Fatal(err)
			}
			args := arg{"command": tt.command}
			for k, v := range tt.more {
				args[k] = v
			}
			var out bashOutput
			r, err := h.call(t.Context(), "Bash", args, &out)
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed != tt.failed || (out.ExitCode == nil) != (tt.code == nil) || tt.code != nil && *out.ExitCode != *tt.code || out.Signal != tt.signal || out.TimedOut {
				t.Errorf("failed %v, %s", r.Failed, r.Structured)
			}
			if out.Stdout != tt.out || out.Stderr != tt.err {
				t.Errorf("stdout %q, stderr %q", out.Stdout, out.Stderr)
			}
			if text := r.Content[0].Text; !strings.Contains(text, tt.text) {
				t.Errorf("text %q", text)
			}
			if !strings.Contains(strings.Join(out.Notes, "\n"), tt.note) || tt.note == "" && out.Notes != nil || !strings.Contains(out.ExitNote, tt.exit) {
				t.Errorf("notes %q, exit_note %q", out.Notes, out.ExitNote)
			}
			if out.OutputURI != "" || out.Truncated != nil || len(r.Content) != 1 || out.Shell != "" {
				t.Errorf("%s", r.Structured)
			}
		})
	}
}

func TestBashRefuses(t *testing.T) {
	h := newHost(t)
	if err := os.WriteFile(filepath.Join(h.dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string]arg{
		"nothing to run":      {"command": " \n"},
		"without NUL":         {"command": "a\x00b"},
		"0 is not a time":     {"command": "true", "timeout": 0},
		"-1 is not a time":    {"command": "true", "timeout": -1},
		"not a directory":     {"command": "true", "cwd": "file"},
		"NUL in a path":       {"command": "true", "cwd": "a\x00"},
		`env: "A=B"`:          {"command": "true", "env": arg{"A=B": "x"}},
		`env: "A"`:            {"command": "true", "env": arg{"A": "\x00"}},
		"write it to a file":  {"command": "true " + strings.Repeat("x", 1<<18)},
		"do not fit":          {"command": 7},
		"-5 is not a time":    {"command": "true", "timeout": -5, "run_in_background": true},
		"there is nothing to": {"command": ""},
	} {
		refused(t, h, "Bash", args, want)
	}
	if err := os.Remove(filepath.Join(h.dir, "file")); err != nil {
		t.Fatal(err)
	}
	h.dir += "/gone"
	if _, err := h.call(t.Context(), "Bash", arg{"command": "true"}, nil); sdk.KindOf(err) != sdk.Unavailable {
		t.Error(err)
	}
}

// TestTimeout: what was written is not lost, nothing goes on, and a command
// that does not care for SIGTERM ends all the same.
func TestTimeout(t *testing.T) {
	need(t, "bash", "setsid")
	for name, command := range map[string]string{
		"sleep":    "echo started; echo $$ >pid; exec sleep 300",
		"children": "echo started; sleep 300 & echo $! >pid; wait",
		"session":  "echo started; setsid sh -c 'echo $$ >pid; exec sleep 300' & sleep 300",
		"orphan":   "echo started; (setsid env -i sh -c 'echo $$ >pid; exec sleep 300' >/dev/null 2>&1 &) ; sleep 300",
		"deaf":     "echo started; trap '' TERM; sh -c 'echo $$ >pid; while :; do sleep 0.1; done'",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			began := time.Now()
			out, text := bad[bashOutput](t, h, "Bash", arg{"command": command, "timeout": 700})
			if !out.TimedOut || out.Stdout != "started\n" || !strings.HasPrefix(text, "started\n") || !strings.Contains(text, "its time was over") {
				t.Errorf("%+v", out)
			}
			if name == "deaf" && out.Signal != "SIGKILL" {
				t.Errorf("signal %q", out.Signal)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("took %v", took)
			}
			gone(t, filepath.Join(h.dir, "pid"))
		})
	}
}

// TestStrays: a child in the background does not hold the reply, and ends.
func TestStrays(t *testing.T) {
	need(t, "bash", "setsid")
	for name, command := range map[string]string{
		"with_pipes":    "sleep 300 & echo $! >pid; echo done",
		"without_pipes": "sleep 300 >/dev/null 2>&1 & echo $! >pid; echo done",
		"other_session": "setsid sleep 300 & echo $! >pid; echo done",
		"daemon":        "(setsid sh -c 'echo $$ >pid; exec sleep 300' &) ; while ! test -s pid; do sleep 0.01; done; echo done",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			began := time.Now()
			out, text := ok[bashOutput](t, h, "Bash", arg{"command": command})
			if took := time.Since(began); took > 3*time.Second || out.Stdout != "done\n" || !strings.Contains(text, "BackgroundBash") {
				t.Errorf("%v, %+v", took, out)
			}
			gone(t, filepath.Join(h.dir, "pid"))
		})
	}
	h := newHost(t) // what is about to end by itself is waited for
	var out bashOutput
	for range 3 { // for a moment only, in which a busy machine may not get to it
		if out, _ = ok[bashOutput](t, h, "Bash", arg{"command": "echo x > >(cat)"}); out.Notes == nil {
			break
		}
	}
	if out.Stdout != "x\n" || out.Notes != nil {
		t.Errorf("%+v", out)
	}
}

// TestReaps: what a command leaves to be adopted does not stay as a zombie
// while the command runs.
func TestReaps(t *testing.T) {
	need(t, "bash", "setsid")
	h := newHost(t)
	command := fmt.Sprintf("for i in 1 2 3 4 5 6 7 8; do (setsid true &) ; done; sleep 0.5; grep -l '^[0-9]* .* Z %d ' /proc/[0-9]*/stat 2>/dev/null | wc -l", os.Getpid())
	if out, _ := ok[bashOutput](t, h, "Bash", arg{"command": command}); out.Stdout != "0\n" {
		t.Errorf("zombies: %q", out.Stdout)
	}
}

// TestTogether: commands that run at the same time in one process do not end
// or hear one another.
func TestTogether(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	errs := make(chan error, 6)
	for i := range cap(errs) {
		go func() {
			var out bashOutput
			timeout := 20_000
			if i%2 == 1 {
				timeout = 300
			}
			_, err := h.call(t.Context(), "Bash", arg{"command": fmt.Sprintf("sleep 1 & (sleep 1.2 &) ; sleep 1; echo %d", i), "timeout": timeout}, &out)
			if want := fmt.Sprintf("%d\n", i); err == nil && (out.TimedOut != (i%2 == 1) || !out.TimedOut && out.Stdout != want) {
				err = fmt.Errorf("command %d: %+v", i, out)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestCancelled: a call that nobody waits for any more ends its command.
func TestCancelled(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { time.Sleep(300 * time.Millisecond); cancel() }()
	began := time.Now()
	var out bashOutput
	if _, err := h.call(ctx, "Bash", arg{"command": "echo $$ >pid; sleep 300"}, &out); err != nil || time.Since(began) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	gone(t, filepath.Join(h.dir, "pid"))
}

// TestLongOutput: head and tail inline, everything in the log.
func TestLongOutput(t *testing.T) {
	need(t, "bash", "seq")
	h := newHost(t)
	var out bashOutput
	r, err := h.call(t.Context(), "Bash", arg{"command": "seq 1 100000; echo trouble >&2"}, &out)
	if err != nil || r.Failed {
		t.Fatal(err, r)
	}
	text := r.Content[0].Text
	if len(text) > maxRunes+500 || !strings.HasPrefix(text, "1\n2\n") || !strings.Contains(text, "\n100000\n") || !strings.Contains(text, " bytes left out ...]\n") {
		t.Errorf("%d characters: %.60q … %q", len(text), text, text[len(text)-200:])
	}
	if out.Truncated == nil || out.Truncated.Omitted < 400_000 || out.Stderr != "trouble\n" || len(out.Stdout)+len(out.Stderr) > maxRunes {
		t.Errorf("truncated %+v, %d+%d", out.Truncated, len(out.Stdout), len(out.Stderr))
	}
	if len(r.Content) != 2 || r.Content[1].Type != sdk.TypeResourceLink || r.Content[1].URI != out.OutputURI || out.OutputURI == "" || out.OutputPath == "" {
		t.Errorf("%+v", r.Content[1:])
	}
	log := string(h.jobs[out.OutputID-1].log)
	if want := 588895 + len("trouble\n"); len(log) != want || !strings.HasPrefix(log, "1\n2\n3\n") || !strings.Contains(log, "trouble\n") {
		t.Errorf("the log has %d bytes, want %d", len(log), want)
	}
	page, _ := ok[readOutput](t, h, "ReadBgOutput", arg{"task_id": out.OutputID, "cursor": 0})
	if !strings.HasPrefix(page.Output, "1\n2\n3\n") || page.EOF || len(page.Output) > maxRunes {
		t.Errorf("%d characters, %+v", len(page.Output), page.Next)
	}
}

func TestBinaryOutput(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	var out bashOutput
	r, err := h.call(t.Context(), "Bash", arg{"command": `printf 'a\0b'; echo why >&2`}, &out)
	if err != nil || r.Failed || out.Stdout != "[binary output, 3 bytes]" || out.Stderr != "why\n" || !strings.Contains(r.Content[0].Text, "why\n[binary output on stdout, 3 bytes]\n") || out.Truncated.Omitted != 3 {
		t.Errorf("%v, %+v, %+v", err, out, r.Content)
	}
	if log := string(h.jobs[out.OutputID-1].log); !strings.Contains(log, "a\x00b") {
		t.Errorf("the log has %q", log)
	}
}

// TestFlood: a command that writes without end is ended, in bounded memory.
func TestFlood(t *testing.T) {
	need(t, "bash", "yes")
	s := &shell{limit: 64 << 20}
	null := &counter{}
	sink := newSink(null, s.limit, false)
	o, err := s.run(t.Context(), command{path: "/bin/sh", argv: []string{"sh", "-c", "yes & yes >&2"}, dir: t.TempDir(), timeout: 60 * time.Second, out: sink})
	if err != nil || !o.flooded || o.timeout {
		t.Fatal(o, err)
	}
	seen, err := sink.finish()
	if err != nil || null.n != sink.total || null.n < s.limit || len(seen.text) > maxRunes || !seen.kept {
		t.Errorf("%v, the log has %d of %d bytes, the text %d", err, null.n, sink.total, len(seen.text))
	}
	held := cap(sink.both.head) + cap(sink.both.tail) + cap(sink.raw)
	for i := range sink.streams {
		held += cap(sink.streams[i].text.head) + cap(sink.streams[i].text.tail) + cap(sink.streams[i].plain.line)
	}
	if held > 4<<20 {
		t.Errorf("%d bytes are held", held)
	}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

// TestLogFails: a log that cannot be written does not stop the command.
func TestLogFails(t *testing.T) {
	need(t, "bash", "seq")
	s := &shell{limit: maxOutput}
	sink := newSink(broken{}, s.limit, false)
	o, err := s.run(t.Context(), command{path: "/bin/sh", argv: []string{"sh", "-c", "seq 1 100000"}, dir: t.TempDir(), out: sink})
	if err != nil || o.code != 0 {
		t.Fatal(o, err)
	}
	if seen, err := sink.finish(); err == nil || seen.kept || !strings.Contains(seen.text, "\n100000\n") {
		t.Errorf("%v, %+v", err, seen)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestProxy(t *testing.T) {
	need(t, "bash")
	h := newHost(t)
	h.proxy = "http://call:token@127.0.0.1:3128"
	out, _ := ok[bashOutput](t, h, "Bash", arg{"command": `echo "$http_proxy $HTTPS_PROXY $ALL_PROXY $npm_config_proxy $NODE_USE_ENV_PROXY [$NO_PROXY$no_proxy]"`})
	if p := h.proxy; out.Stdout != p+" "+p+" "+p+" "+p+" 1 []\n" {
		t.Errorf("%q", out.Stdout)
	}
}

// TestOtherShell: without bash, sh runs the command and the result says so.
func TestOtherShell(t *testing.T) {
	need(t, "sh")
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	h := newHost(t)
	if _, err := h.call(t.Context(), "Bash", arg{"command": "echo x"}, nil); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("without any shell: %v", err)
	}
	if err := os.Symlink(sh, filepath.Join(dir, "sh")); err != nil {
		t.Fatal(err)
	}
	out, text := ok[bashOutput](t, h, "Bash", arg{"command": "echo x"})
	if out.Shell != "sh" || !strings.Contains(text, "there is no bash here") {
		t.Errorf("%+v", out)
	}
}

// TestMembers: nothing that is not a descendant of this process is ever ended.
func TestMembers(t *testing.T) {
	need(t, "bash")
	if caged() {
		t.Fatal("a test runs as the first process of a pid namespace")
	}
	s := &shell{}
	s.begin()
	defer s.end()
	p := &process{shell: s, cmd: exec.Command("sh", "-c", "sleep 300 & setsid sleep 300 & wait")}
	p.cmd.SysProcAttr = ownSession()
	if err := s.start(p); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	var pids []int
	for _, m := range p.members() {
		pids = append(pids, m.pid)
	}
	if len(pids) != 3 || !slices.Contains(pids, p.cmd.Process.Pid) || slices.Contains(pids, os.Getpid()) || slices.Contains(pids, os.Getppid()) {
		t.Errorf("members %v of %d", pids, p.cmd.Process.Pid)
	}
	other := task{pid: os.Getppid(), start: "0"} // as if its pid had been given away
	other.signal(syscall.SIGKILL)
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	s.waited(p)
	p.killAll()
	if left := p.members(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRealWork: a build, and a clone of a local repository.
func TestRealWork(t *testing.T) {
	need(t, "bash", "go", "git")
	h := newHost(t)
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := arg{"GOCACHE": strings.TrimSpace(string(cache)), "GOTOOLCHAIN": "local", "HOME": h.dir}
	out, _ := ok[bashOutput](t, h, "Bash", arg{"env": env, "timeout": 120_000, "command": `set -e
git init -q origin && cd origin && git config user.name a && git config user.email a@example.com
printf 'module example.com/hello\n\ngo 1.21\n' >go.mod
printf 'package main\n\nfunc main() { println("built") }\n' >main.go
git add . && git commit -qm first && cd ..
git clone -q origin copy && cd copy && git log --format=%s && go build -o hello . && ./hello`})
	if out.Stdout != "first\n" || out.Stderr != "built\n" {
		t.Errorf("%+v", out)
	}
}

func BenchmarkBash(b *testing.B) {
	h := &fakeHost{dir: b.TempDir()}
	for b.Loop() {
		if _, err := h.call(b.Context(), "Bash", arg{"command": "true"}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
