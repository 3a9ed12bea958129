package stage

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervise runs the program as a child: the stage remains as process 1, under
// everything that the program is under.
func supervise(s *Spec) *fault {
	pid, err := fork(s)
	if err != nil {
		return at(err, "execute "+s.Args[0])
	}
	_ = unix.Sendto(StatusFD, []byte{Started}, unix.MSG_NOSIGNAL, nil)
	go relay(pid)
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || ended == pid {
			b := [5]byte{Exited, byte(status), byte(status >> 8), byte(status >> 16), byte(status >> 24)}
			_ = unix.Sendto(StatusFD, b[:], unix.MSG_NOSIGNAL, nil)
			unix.Exit(0)
		}
	}
}

// relay passes on the signals that the host sends as messages: to receive real
// ones takes a package that would make every stage slower.
func relay(pid int) {
	var b [2]byte
	for {
		n, err := unix.Read(StatusFD, b[:])
		switch {
		case err == unix.EINTR:
		case n == len(b) && b[0] == Signal:
			_ = unix.Kill(pid, syscall.Signal(b[1]))
		default: // the host is gone, and the kernel ends this process
			return
		}
	}
}

// fork starts the program and returns its process id. Without a PID namespace
// the program remains in the stage's process group, by which the host ends it.
func fork(s *Spec) (int, error) {
	script, err := isScript()
	if err != nil {
		return 0, err
	}
	files := []uintptr{0, 1, 2}
	file := "/proc/self/fd/" + strconv.Itoa(ProgramFD)
	if script { // its interpreter opens it once more
		files = append(files, ProgramFD)
		file = "/proc/self/fd/3"
	}
	return syscall.ForkExec(file, s.Args, &syscall.ProcAttr{Env: s.Env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: s.has(Namespaces), Pdeathsig: syscall.SIGKILL}})
}
