package stage

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// init turns the process into the stage if it was started as such. It is the
// one init function of the project: see the package comment.
func init() {
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case Name:
		runtime.LockOSThread() // credentials, Landlock and seccomp are the thread's
		f := stage()
		message := append([]byte{Failed}, f.step+"\x00"+f.reason()...)
		_ = unix.Sendto(StatusFD, message, unix.MSG_NOSIGNAL, nil)
		unix.Exit(126)
	case Trial:
		unix.Exit(trial(os.Args[1:]))
	}
}

// A fault is a step that did not succeed.
type fault struct {
	step string
	err  error
}

func (f *fault) reason() string {
	if f.err == nil {
		return "refused"
	}
	return f.err.Error()
}

// at returns nil if err is, else the fault of a step.
func at(err error, step string) *fault {
	if err == nil {
		return nil
	}
	return &fault{step, err}
}

// stage returns only if the program could not be executed. What comes later
// can rely on less: mounts need capabilities, which go before Landlock, which
// needs open(2) of the rules' paths; seccomp is last.
func stage() *fault {
	s, err := readSpec()
	if err != nil {
		return at(err, "spec")
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return at(err, "lifeline")
	}
	if err := unix.Sendto(StatusFD, []byte{Ready}, unix.MSG_NOSIGNAL, nil); err != nil {
		return at(err, "lifeline")
	}
	if s.has(Namespaces) {
		if f := enter(s); f != nil {
			return f
		}
	}
	if s.Dir != "" {
		if err := unix.Chdir(s.Dir); err != nil {
			return at(err, "chdir "+s.Dir)
		}
	}
	// Whatever the host itself inherited without close-on-exec must not reach
	// the program.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return at(err, "close_range")
	}
	if f := confine(s); f != nil {
		return f
	}
	if f := permission(); f != nil {
		return f
	}
	if s.has(Init) {
		return supervise(s)
	}
	if err := unix.Sendto(StatusFD, []byte{Prepared}, unix.MSG_NOSIGNAL, nil); err != nil {
		return at(err, "lifeline")
	}
	return at(execute(s), "execute "+s.Args[0])
}

// confine gives up rights, those first that the following steps do not need.
func confine(s *Spec) *fault {
	var sets []int
	if s.has(Restrict) {
		var f *fault
		if sets, f = landlock(s); f != nil {
			return f
		}
	}
	if f := limits(s); f != nil {
		return f
	}
	if s.has(Init) {
		// The program shares the stage's user and must not reach its memory,
		// through /proc either.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return at(err, "dumpable")
		}
	}
	if s.Flags&(Namespaces|Restrict) != 0 {
		if err := dropCapabilities(s.has(Namespaces)); err != nil {
			return at(err, "capabilities")
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return at(err, "no_new_privs")
	}
	for i, set := range sets {
		if err := restrict(set); err != nil {
			return at(err, "landlock "+ruleset(s, i).Name)
		}
	}
	if s.has(Restrict) {
		return seccomp(s)
	}
	return nil
}

// permission waits for the host to say Go.
func permission() *fault {
	// A change of credentials clears the signal: nobody may rely on what the
	// kernel has forgotten.
	var sig uintptr
	if err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&sig)), 0, 0, 0); err != nil || int32(sig) != int32(unix.SIGKILL) {
		return &fault{"lifeline", err}
	}
	var b [1]byte
	for {
		n, err := unix.Read(StatusFD, b[:])
		if err == unix.EINTR {
			continue
		}
		if n == 1 && b[0] == Go {
			return nil
		}
		return &fault{"lifeline", err}
	}
}

func readSpec() (*Spec, error) {
	var st unix.Stat_t
	if err := unix.Fstat(SpecFD, &st); err != nil {
		return nil, err
	}
	b := make([]byte, st.Size)
	n, err := unix.Pread(SpecFD, b, 0)
	if err != nil {
		return nil, err
	}
	if n != len(b) {
		return nil, errSpec
	}
	s, err := decode(b)
	if err == nil && len(s.Args) == 0 {
		err = errSpec
	}
	return s, err
}

// limits sets what setrlimit can bound. Never RLIMIT_AS: runtimes reserve far
// more address space than they use.
func limits(s *Spec) *fault {
	for _, l := range []struct {
		name     string
		resource int
		max      uint64
		set      bool
	}{
		{"core", unix.RLIMIT_CORE, 0, true},
		{"data", unix.RLIMIT_DATA, s.Memory, s.Memory > 0},
		{"nproc", unix.RLIMIT_NPROC, s.Processes, s.Processes > 0},
		{"fsize", unix.RLIMIT_FSIZE, s.FileSize, s.FileSize > 0},
		{"nofile", unix.RLIMIT_NOFILE, s.Files, s.Files > 0},
	} {
		if !l.set {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return at(err, "rlimit "+l.name)
		}
		l.max = min(l.max, now.Max) // the host's own limits hold as well
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.max, Max: l.max}); err != nil {
			return at(err, "rlimit "+l.name)
		}
	}
	return nil
}

// dropCapabilities gives up every capability for good. In a user namespace of
// its own the stage had all of them and must be able to.
func dropCapabilities(owned bool) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	if owned {
		for c := uintptr(0); ; c++ {
			err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
			if err == unix.EINVAL && c > unix.CAP_BPF { // past the last that this kernel has
				break
			}
			if err != nil {
				return err
			}
		}
		const secure = 1<<0 | 1<<1 | // NOROOT: user 0 is nothing special
			1<<2 | 1<<3 | // NO_SETUID_FIXUP
			1<<5 | // KEEP_CAPS stays off
			1<<6 | 1<<7 // NO_CAP_AMBIENT_RAISE
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, secure, 0, 0, 0); err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// execute replaces the process by the program.
func execute(s *Spec) error {
	script, err := isScript()
	if err != nil {
		return err
	}
	fd := ProgramFD
	if script { // its interpreter opens /dev/fd/N
		if fd, err = unix.FcntlInt(ProgramFD, unix.F_DUPFD, 3); err != nil {
			return err
		}
	}
	argv, err := syscall.SlicePtrFromStrings(s.Args)
	if err != nil {
		return err
	}
	envv, err := syscall.SlicePtrFromStrings(s.Env)
	if err != nil {
		return err
	}
	var empty byte
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}

func isScript() (bool, error) {
	var magic [2]byte
	n, err := unix.Pread(ProgramFD, magic[:], 0)
	if err == unix.EBADF { // opened without the right to read: the kernel could not read a script either
		return false, nil
	}
	return n == 2 && magic == [2]byte{'#', '!'}, err
}
