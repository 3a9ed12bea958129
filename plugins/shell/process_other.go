//go:build !unix

package shell

import (
	"errors"
	"os"
	"syscall"
)

// Nothing is run where what a command starts cannot be ended with it.

func lockThread()   {}
func unlockThread() {}

func ownSession() *syscall.SysProcAttr { return nil }

func (s *shell) begin() {}
func (s *shell) end()   {}

func (s *shell) start(*process) error { return errors.ErrUnsupported }
func (s *shell) waited(*process)      {}

func (p *process) alone() bool              { return true }
func (p *process) signalAll(syscall.Signal) {}
func (p *process) killAll()                 {}

func signalOf(string) syscall.Signal                  { return syscall.SIGTERM }
func signalName(syscall.Signal) string                { return "" }
func ending(s *os.ProcessState) (int, syscall.Signal) { return s.ExitCode(), 0 }
