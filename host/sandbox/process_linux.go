package sandbox

import (
	"encoding/binary"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/host/sandbox/stage"
	"github.com/skillhost/skill/sdk"
)

// A process is a cage by its first process, which is a child of the host and
// stays a zombie until wait has seen to the rest of the cage.
type process struct {
	pid       int
	init      bool // the first process is the stage, not the program
	level     Level
	pidfd     *os.File
	status    *os.File
	group     *group
	listener  net.Listener
	connector *connector

	mu    sync.Mutex
	ended bool // the process id may be another's
	state State
	err   error

	settled chan struct{} // closed when the start is over, in whatever way
	done    chan struct{}
}

func newProcess(pid, pidfd int, c *Cage, prog *Program, status *os.File, g *group) *process {
	_ = unix.SetNonblock(pidfd, true) // to wait in the runtime and not in a thread
	p := &process{pid: pid, init: prog.Init, level: c.Level, pidfd: os.NewFile(uintptr(pidfd), "process"),
		status: status, group: g, settled: make(chan struct{}), done: make(chan struct{})}
	go p.wait()
	return p
}

func (p *process) Pid() int               { return p.pid }
func (p *process) Level() Level           { return p.level }
func (p *process) Listener() net.Listener { return p.listener }
func (p *process) Done() <-chan struct{}  { return p.done }

func (p *process) Wait() (State, error) {
	<-p.done
	return p.state, p.err
}

// Signal sends s to the program. A program that is process 1 of its cage gets
// no signal that it has no handler for, but SIGKILL, which ends the cage.
func (p *process) Signal(s os.Signal) error {
	sig, ok := s.(syscall.Signal)
	if sig == syscall.SIGKILL {
		p.Kill()
		return nil
	}
	if !ok {
		return &sdk.Error{Kind: sdk.Invalid, Op: "sandbox.Signal", What: "no signal of this system"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return os.ErrProcessDone
	case p.init:
		_, err := p.status.Write([]byte{stage.Signal, byte(sig)})
		return err
	}
	return unix.Kill(p.pid, sig)
}

// Kill ends the cage. At level strict that is all of it: the kernel ends a PID
// namespace with its process 1. Elsewhere, where there is no cgroup either, a
// process that left the program's process group goes on.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.group.kill()
	if p.level != Strict {
		_ = unix.Kill(-p.pid, unix.SIGKILL)
	}
	_ = unix.Kill(p.pid, unix.SIGKILL)
}

// wait sees the first process end, then the rest of the cage, and only then
// gives the process id back.
func (p *process) wait() {
	defer close(p.done)
	info, err := p.exited()
	p.Kill() // what is left in the group
	p.mu.Lock()
	p.ended = true
	_, _ = unix.Wait4(p.pid, nil, 0, nil)
	p.mu.Unlock()
	p.pidfd.Close()
	<-p.settled // the start reads the status, and may have been given descriptors
	p.state, p.err = info, err
	if p.init {
		p.state = p.reported(info)
	}
	if p.group.remove() {
		p.state.OOM = true
	}
	p.status.Close()
	p.connector.close()
	if p.listener != nil {
		p.listener.Close()
	}
}

// exited waits until the first process has ended, and leaves it a zombie.
func (p *process) exited() (State, error) {
	conn, err := p.pidfd.SyscallConn()
	if err != nil {
		return State{Exit: -1}, err
	}
	var info waitInfo
	var errno syscall.Errno
	err = conn.Read(func(fd uintptr) bool {
		for {
			info = waitInfo{}
			errno = info.wait(int(fd))
			if errno != unix.EINTR {
				return errno != unix.EAGAIN && (errno != 0 || info.pid != 0)
			}
		}
	})
	if err == nil && errno != 0 {
		err = errno
	}
	if err != nil {
		return State{Exit: -1}, err
	}
	return info.state(), nil
}

// reported returns how the program ended, by what the stage said, or else by
// how the stage did.
func (p *process) reported(stageEnd State) State {
	for {
		m, err := receive(p.status)
		if err != nil || len(m.b) == 0 {
			return stageEnd
		}
		m.close()
		if m.b[0] == stage.Exited && len(m.b) == 5 {
			return stateOf(unix.WaitStatus(binary.LittleEndian.Uint32(m.b[1:])))
		}
	}
}

func stateOf(w unix.WaitStatus) State {
	if w.Signaled() {
		return signaled(w.Signal())
	}
	return State{Exit: w.ExitStatus()}
}

func signaled(s syscall.Signal) State {
	return State{Exit: -1, Signal: unix.SignalName(s)}
}
