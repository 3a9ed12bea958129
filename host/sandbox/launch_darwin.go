package sandbox

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/sdk"
)

// proxyLevel is the lowest level at which a program cannot go around a proxy:
// a profile names the one port that may be connected to.
const proxyLevel = Landlock

// sandboxExec applies a profile and executes a program.
const sandboxExec = "/usr/bin/sandbox-exec"

// bound sets what a shell can of the limits: files, and blocks of 512 bytes in
// one. It runs before the profile holds and is given no word of the program's.
const bound = `ulimit -c 0; ulimit -n "$1"; ulimit -f "$2"; shift 2; exec "$@"`

type spawner struct{}

func (*spawner) stop() error { return nil }

// start runs the program under a seatbelt profile. macOS executes by path and
// not by descriptor, does not end children with their parent, and bounds
// neither memory nor the number of processes.
func (*spawner) start(ctx context.Context, c Cage, p Program) (Process, error) {
	if c.Level == Strict {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "level strict on macOS", Hint: "there are no namespaces; the best level is landlock"}
	}
	if os.Geteuid() == 0 {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "level " + string(c.Level) + " as root", Hint: "run as an ordinary user"}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	proc := &process{level: c.Level, done: make(chan struct{})}
	port := 0
	if c.Network == Proxy {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, failed(sdk.Unavailable, "proxy listener", err)
		}
		proc.listener, port = l, l.Addr().(*net.TCPAddr).Port
	}
	args := []string{"-c", bound, "sh", strconv.Itoa(c.Limits.Files), strconv.FormatInt(c.Limits.FileSize/512, 10)}
	if c.Level != None {
		args = append(args, sandboxExec, "-p", seatbelt(c, p.File.Name(), port))
	}
	args = append(append(args, p.File.Name()), p.Args[1:]...)
	proc.cmd = exec.Command("/bin/sh", args...)
	proc.cmd.Env, proc.cmd.Dir = append([]string{}, p.Env...), p.Dir
	proc.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if p.Stdin != nil {
		proc.cmd.Stdin = p.Stdin
	}
	if p.Out != nil {
		proc.cmd.Stdout = p.Out
	}
	if p.Err != nil {
		proc.cmd.Stderr = p.Err
	}
	if err := proc.cmd.Start(); err != nil {
		proc.closeListener()
		return nil, failed(sdk.Unavailable, "execute "+p.Args[0], err)
	}
	go proc.wait()
	return proc, nil
}

type process struct {
	cmd      *exec.Cmd
	level    Level
	listener net.Listener

	mu    sync.Mutex
	ended bool
	state State
	done  chan struct{}
}

func (p *process) Pid() int               { return p.cmd.Process.Pid }
func (p *process) Level() Level           { return p.level }
func (p *process) Listener() net.Listener { return p.listener }
func (p *process) Done() <-chan struct{}  { return p.done }

func (p *process) Wait() (State, error) {
	<-p.done
	return p.state, nil
}

func (p *process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the process group. A process that left it goes on.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
	}
}

func (p *process) wait() {
	defer close(p.done)
	_ = p.cmd.Wait()
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // what is left of the group
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.state = State{Exit: p.cmd.ProcessState.ExitCode()}
	if w, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		p.state = State{Exit: -1, Signal: unix.SignalName(w.Signal())}
	}
	p.closeListener()
}

func (p *process) closeListener() {
	if p.listener != nil {
		p.listener.Close()
	}
}

// Probe reports what this machine offers. It asks by trying: a program in a
// cage reads a directory that it was not given. The answer is kept.
func Probe() Report { return probed() }

var probed = sync.OnceValue(func() Report {
	r := Report{Missing: []string{"level strict: macOS has no namespaces"}}
	if os.Geteuid() == 0 {
		r.Missing = append(r.Missing, "lower levels: they are refused to root")
		return r
	}
	r.Resource = []string{"rlimits: files and their size; memory and processes are not bounded"}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	const try = `(version 1)(allow default)(deny file-read-data (subpath "/private/etc"))`
	free := exec.CommandContext(ctx, "/bin/ls", "/private/etc/").Run()
	caged := exec.CommandContext(ctx, sandboxExec, "-p", try, "/bin/ls", "/private/etc/").Run()
	runs := exec.CommandContext(ctx, sandboxExec, "-p", try, "/usr/bin/true").Run()
	if free != nil || caged == nil || runs != nil {
		r.Level = None
		r.Missing = append(r.Missing, "level landlock: "+sandboxExec+" does not confine a trial program")
		return r
	}
	r.Level, r.Means = Landlock, []string{"seatbelt profile"}
	return r
})
