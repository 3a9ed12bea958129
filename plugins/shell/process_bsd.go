//go:build unix && !linux

package shell

import (
	"syscall"
	"time"
)

func lockThread()   {}
func unlockThread() {}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func (s *shell) begin() {}
func (s *shell) end()   {}

func (s *shell) start(p *process) error { return p.cmd.Start() }
func (s *shell) waited(*process)        {}

// alone reports whether nothing is left of the command's process group. What
// has left that, this system does not tell.
func (p *process) alone() bool { return syscall.Kill(-p.cmd.Process.Pid, 0) != nil }

func (p *process) signalAll(sig syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, sig) }

func (p *process) killAll() {
	for end := time.Now().Add(2 * time.Second); !p.alone() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		p.signalAll(syscall.SIGKILL)
	}
}
