package plugin

import (
	"bufio"
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

	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/sandbox"
)

// hazard_a_stdin_is_not_inherited: a plugin does not read the host's MCP.
func TestHazardAStdinIsNotInherited(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(`{"jsonrpc":"2.0"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	before := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = before }()
	levels(t, func(t *testing.T, x *Executor) {
		if got, _, err := do(t, load(t, x, "good"), "stdin", "", granted(t)); got != "" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

// hazard_b_environment_is_not_inherited
func TestHazardBEnvironmentIsNotInherited(t *testing.T) {
	t.Setenv("SKILL_TEST_SECRET", "hush")
	levels(t, func(t *testing.T, x *Executor) {
		got, _, err := do(t, load(t, x, "good"), "env", "", granted(t), func(j *executor.Job) { j.Input.Env = map[string]string{"TZ": "UTC"} })
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for line := range strings.Lines(got) {
			name, _, _ := strings.Cut(line, "=")
			names = append(names, name)
		}
		const want = "HOME LANG PATH TERM TMPDIR TZ SKILL_PLUGIN PLUGIN_MIN_PORT PLUGIN_MAX_PORT PLUGIN_PROTOCOL_VERSIONS PLUGIN_UNIX_SOCKET_DIR"
		if strings.Join(names, " ") != want || !strings.Contains(got, "TZ=UTC") {
			t.Errorf("got %s\nwant %s", names, want)
		}
	})
}

// hazard_f_descriptors_are_closed: not even those that the host inherited and
// does not know of reach a plugin.
func TestHazardFDescriptorsAreClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY, 0) // no O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	levels(t, func(t *testing.T, x *Executor) {
		got, _, err := do(t, load(t, x, "good"), "fds", "", granted(t))
		open := strings.Fields(got)
		if err != nil || len(open) < 3 || len(open) > 16 || slices.Contains(open, file(&st)) {
			t.Errorf("open in the plugin: %s, %v; the host's is %s", open, err, file(&st))
		}
	})
}

// hazard_h_a_plugin_cannot_connect: it needs no connection of its own, so the
// kernel lets it have none.
func TestHazardHAPluginCannotConnect(t *testing.T) {
	dir := short(t)
	unixVictim, tcpVictim := newVictim(t, "unix", filepath.Join(dir, "s")), newVictim(t, "tcp", "127.0.0.1:0")
	levels(t, func(t *testing.T, x *Executor) {
		p := load(t, x, "good")
		for _, address := range []string{"unix " + unixVictim.address, "tcp " + tcpVictim.address, "udp 127.0.0.1:53", "unix @skill-test", "tcp [::1]:80"} {
			got, _, err := do(t, p, "dial", address, granted(t, "read:"+dir, "write:"+dir))
			if err != nil || got == "connected" {
				t.Errorf("%s: %q, %v", address, got, err)
			}
		}
	})
	if unixVictim.met.Load()+tcpVictim.met.Load() > 0 {
		t.Error("a plugin connected")
	}
}

// hazard_i_no_plugin_outlives_the_host: not when it is killed, and not because
// of the thread that started it.
func TestHazardINoPluginOutlivesTheHost(t *testing.T) {
	levels(t, func(t *testing.T, x *Executor) {
		if err := x.Close(); err != nil { // the host of this test is another process
			t.Fatal(err)
		}
		dir := short(t)
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = []string{asHost, filepath.Base(t.Name()), dir}
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer clean(dir)
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			_ = cmd.Process.Kill()
			t.Fatal(err, cmd.Wait())
		}
		var pids []int
		for f := range strings.FieldsSeq(line) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		if len(pids) < 2 {
			t.Fatalf("processes %q", line)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for _, pid := range pids {
			eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool {
				status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				return err != nil || strings.Contains(string(status), ") Z ")
			})
		}
	})
}

// clean removes what a host that was killed left.
func clean(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// beHost is a host with a plugin that waits for a call and one that makes one.
// It writes their process ids and waits to be killed.
func beHost() {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	report := sandbox.Probe()
	report.Level = sandbox.Level(os.Args[1])
	m := native.New(native.Options{Starter: sandbox.New(), Report: func() sandbox.Report { return report }, Tmp: os.Args[2], RunDir: os.Args[2]})
	x := New(Options{Cages: m, Self: self})
	p, err := x.Load(context.Background(), skillOf("good"))
	if err != nil {
		fail(err)
	}
	job := func(args string) executor.Job {
		j := executor.Job{Limits: limits(), Ops: testOps{}, Emit: (&heard{}).emit}
		j.Input.Tool, j.Input.Args = "do", []byte(args)
		return j
	}
	if _, err := p.Run(context.Background(), job(`{"do":"say"}`)); err != nil {
		fail(err)
	}
	go p.Run(context.Background(), job(`{"do":"nap","text":"1h"}`))
	for range 500 {
		time.Sleep(20 * time.Millisecond)
		x.pool.mu.Lock()
		line := ""
		for _, p := range x.pool.all {
			line += fmt.Sprint(p.guest.Pid(), " ")
		}
		n := len(x.pool.all)
		x.pool.mu.Unlock()
		if n >= 1 {
			children, _ := exec.Command("pgrep", "-P", strconv.Itoa(os.Getpid())).Output()
			fmt.Println(line + strings.Join(strings.Fields(string(children)), " "))
			break
		}
	}
	time.Sleep(time.Minute)
}
