package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// An attempt is one thing that a cage denies. denied reports whether it did.
type attempt struct {
	name   string
	denied func() bool
}

// attempts returns what a program in a cage of a level, with the zero network
// and next to no files, tries: pid is the host's process id, outside a
// directory of the host that the cage was not given.
func attempts(level, pid, outside string) (list []attempt) {
	switch level {
	case "strict":
		list = append(list,
			attempt{"a PID namespace", func() bool { return unix.Getpid() == 1 }},
			attempt{"the host's process in /proc", func() bool { return unix.Access("/proc/"+pid, unix.F_OK) == unix.ENOENT }},
			attempt{outside, func() bool { return unix.Access(outside, unix.F_OK) == unix.ENOENT }},
			attempt{"writing to the root", func() bool { return unix.Mkdir("/"+Trial, 0o700) != nil }})
		fallthrough
	case "landlock":
		list = append(list,
			attempt{"reading the root", func() bool { return denies(open("/")) }},
			attempt{"sockets", func() bool { return denies(socket(unix.AF_INET)) && denies(socket(unix.AF_UNIX)) }},
			attempt{"namespaces", func() bool { return unix.Unshare(unix.CLONE_NEWUSER) == unix.EPERM }},
			attempt{"capabilities", powerless})
		fallthrough
	case "none":
		list = append(list,
			attempt{"new privileges", func() bool {
				n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
				return err == nil && n == 1
			}},
			attempt{"the stage's descriptors", func() bool {
				var st unix.Stat_t // the number may be a file of the Go runtime by now
				return unix.Fstat(StatusFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK
			}})
	}
	return list
}

// Attempt names the attempt of a level at which a trial that exits with status
// was not denied.
func Attempt(level string, status int) string {
	list := attempts(level, "", "a directory of the host")
	if status < 1 || status > len(list) {
		return "the trial itself"
	}
	return list[status-1].name
}

// trial tries to leave its cage. It returns TrialOK if every attempt was
// denied, else the number of the first that was not, from 1. args are those of
// attempts.
func trial(args []string) int {
	if len(args) != 3 {
		return 0
	}
	list := attempts(args[0], args[1], args[2])
	for i, a := range list {
		if !a.denied() {
			return 1 + i
		}
	}
	if len(list) == 0 {
		return 0
	}
	return TrialOK
}

func open(p string) error {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func socket(family int) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func denies(err error) bool { return err == unix.EACCES || err == unix.EPERM }

// powerless reports whether the process has no capability.
func powerless() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	_, _, errno := unix.RawSyscall(unix.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&has[0])), 0)
	return errno == 0 && has == [2]unix.CapUserData{}
}
