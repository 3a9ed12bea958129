package browser

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a browser with all its children, which are of one session.
type process struct {
	in  *os.File // what it is told
	out *os.File // what it says
	dir string
	cmd *exec.Cmd
	err *tail

	gone chan struct{} // closed when nothing of it is left
}

// patience is how long is waited for children of a browser that has ended: they
// find that out by themselves.
const patience = 5 * time.Second

// start starts the browser at path, with its files in dir, which it owns then.
func start(path, dir string) (*process, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, failed("a pipe to the browser", err)
	}
	defer theirIn.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, failed("a pipe to the browser", err)
	}
	defer theirOut.Close()
	p := &process{in: in, out: out, dir: dir, err: &tail{}, gone: make(chan struct{})}
	p.cmd = exec.Command(path, flags(dir)...)
	p.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir, "DBUS_SESSION_BUS_ADDRESS=disabled:")
	p.cmd.Dir = dir
	p.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	p.cmd.Stderr = p.err
	p.cmd.WaitDelay = patience
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.cmd.Start(); err != nil {
		in.Close()
		out.Close()
		return nil, failed("the browser "+path+" cannot be run", errors.Unwrap(err))
	}
	go p.watch()
	return p, nil
}

// watch sees the browser end, and then the rest of it.
func (p *process) watch() {
	_ = p.cmd.Wait() // how it ended is nobody's concern
	p.in.Close()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := p.members(reap)
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	p.out.Close()
	_ = os.RemoveAll(p.dir)
	close(p.gone)
}

// kill ends the browser.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// wait returns when nothing of a killed browser is left.
func (p *process) wait() { <-p.gone }

// said returns the last that it wrote to its standard error.
func (p *process) said() string {
	select {
	case <-p.gone:
	case <-time.After(time.Second):
	}
	return p.err.text()
}

// pss returns the memory of all its processes, in bytes; shared pages count in
// parts.
func (p *process) pss() (sum int64) {
	for _, pid := range p.members(nil) {
		f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			if kB, ok := strings.CutPrefix(s.Text(), "Pss:"); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kB), "kB")), 10, 64)
				sum += n << 10
				break
			}
		}
		f.Close()
	}
	return sum
}

// members returns the processes of the browser's session, without those that
// have ended: of these dead is told, with their parents.
func (p *process) members(dead func(pid, parent int)) (pids []int) {
	session := strconv.Itoa(p.cmd.Process.Pid)
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, d := range all {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join("/proc", d.Name(), "stat"))
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything; state, parent, group and
		// session follow.
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(fields) < 4 || fields[3] != session {
			continue
		}
		if fields[0] != "Z" && fields[0] != "X" {
			pids = append(pids, pid)
		} else if dead != nil {
			parent, _ := strconv.Atoi(fields[1])
			dead(pid, parent)
		}
	}
	return pids
}

// reap takes a dead process off the table if this one has inherited it, as
// process 1 of a cage does.
func reap(pid, parent int) {
	if parent == os.Getpid() {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

// A tail keeps the last of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const maxTail = 2 << 10

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b[max(0, len(b)-maxTail):]...)
	t.b = append(t.b[:0], t.b[max(0, len(t.b)-maxTail):]...)
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.b)), "?")
}
