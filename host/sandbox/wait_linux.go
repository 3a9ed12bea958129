package sandbox

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waitInfo is the part of siginfo_t that waitid(2) fills in, on 64-bit Linux.
type waitInfo struct {
	signo, errno, code int32
	_                  int32
	pid                int32
	uid                uint32
	status             int32
	_                  [128 - 28]byte
}

// wait looks whether the process of fd has ended, without blocking or reaping.
func (w *waitInfo) wait(fd int) syscall.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_PIDFD, uintptr(fd), uintptr(unsafe.Pointer(w)),
		unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, 0, 0)
	return errno
}

// state is how the process ended: CLD_EXITED is 1; CLD_KILLED and CLD_DUMPED
// come with a signal.
func (w *waitInfo) state() State {
	if w.code == 1 {
		return State{Exit: int(w.status)}
	}
	return signaled(syscall.Signal(w.status))
}
