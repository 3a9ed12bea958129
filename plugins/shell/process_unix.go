//go:build unix

package shell

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalOf returns the signal of a Stop.
func signalOf(name string) syscall.Signal {
	switch name {
	case "INT":
		return syscall.SIGINT
	case "HUP":
		return syscall.SIGHUP
	case "KILL":
		return syscall.SIGKILL
	}
	return syscall.SIGTERM
}

// signalName returns a name such as "SIGTERM", or "".
func signalName(s syscall.Signal) string { return unix.SignalName(s) }

// ending says how a process ended.
func ending(s *os.ProcessState) (code int, sig syscall.Signal) {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return -1, w.Signal()
	}
	return s.ExitCode(), 0
}
