package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// newest is the last system call that this filter was written for: those of
// Linux 6.18. Since number 424 all architectures count alike.
const newest = 469

const openTreeAttr = 467 // not in x/sys for all architectures

// forbidden fail with EPERM: they reach into other processes, make namespaces
// or mounts, or are doors of the kernel with a history.
var forbidden = append([]int{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, openTreeAttr,
	unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
}, archForbidden...)

// namespaces are the flags of clone(2) that make new namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

func allow(tests ...test) branch { return branch{tests, retAllow} }

// A Mode is what kind of cage a filter is for. Socket pairs there always are.
type Mode struct {
	Serves bool // Unix stream sockets, to accept on
	Proxy  bool // TCP sockets
	Nest   bool // namespaces of users, processes and the network
}

// rules returns the whole filter.
func rules(m Mode) []rule {
	var rs []rule
	for _, n := range forbidden {
		if m.Nest && (n == unix.SYS_CHROOT || n == unix.SYS_UNSHARE) {
			continue
		}
		rs = append(rs, rule{number: n, otherwise: fail(unix.EPERM)})
	}
	made := uint32(namespaces)
	if m.Nest {
		made &^= nestable
		rs = append(rs, nestRules()...)
	} else {
		rs = append(rs, terminalRule())
	}
	rs = append(rs,
		rule{unix.SYS_CLONE, []branch{allow(test{mask: made})}, fail(unix.EPERM)},
		// Its flags are behind a pointer. Runtimes fall back to clone.
		rule{unix.SYS_CLONE3, nil, fail(unix.ENOSYS)},
		rule{unix.SYS_PERSONALITY, []branch{allow(test{value: 0}), allow(test{value: 0xffffffff})}, fail(unix.EPERM)},
	)
	return append(rs, m.rules()...)
}

const tiocLinux = 0x541c

// terminalRule forbids what puts words into the mouth of whoever sits at the
// terminal.
func terminalRule(more ...branch) rule {
	return rule{unix.SYS_IOCTL, append([]branch{
		{[]test{{arg: 1, value: unix.TIOCSTI}}, fail(unix.EPERM)},
		{[]test{{arg: 1, value: tiocLinux}}, fail(unix.EPERM)}}, more...), retAllow}
}

// rules returns those about sockets.
//
// No mode lets a program reach a Unix socket by its name, in a directory that
// it was granted or not. Pairs are streams or packets, which ignore addresses
// and cannot be connected again; datagram pairs could be. Streams ignore the
// address of sendmsg, which the filter cannot see. Where TCP sockets may
// connect and Unix sockets exist as well, the filter cannot tell them apart:
// there the host is asked, and makes the connection itself.
func (m Mode) rules() []rule {
	refuse := fail(unix.EACCES)
	kind := func(family, kind uint32) []test {
		return []test{{arg: 0, value: family}, {arg: 1, mask: 0xf, value: kind}}
	}
	pairs := []branch{allow(kind(unix.AF_UNIX, unix.SOCK_STREAM)...), allow(kind(unix.AF_UNIX, unix.SOCK_SEQPACKET)...)}
	var sockets []branch
	if m.Serves {
		sockets = append(sockets, allow(kind(unix.AF_UNIX, unix.SOCK_STREAM)...))
	}
	if m.Proxy {
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
			for _, protocol := range []uint32{0, unix.IPPROTO_TCP} { // and not MPTCP
				sockets = append(sockets, allow(append(kind(family, unix.SOCK_STREAM), test{arg: 2, value: protocol})...))
			}
		}
	}
	rs := []rule{{unix.SYS_SOCKETPAIR, pairs, refuse}, {unix.SYS_SOCKET, sockets, refuse}}
	switch {
	case m.Serves && m.Proxy:
		rs = append(rs, rule{unix.SYS_CONNECT, nil, retNotify})
	case !m.Proxy:
		rs = append(rs, rule{unix.SYS_CONNECT, nil, refuse})
	}
	if !m.Proxy {
		null := allow(test{arg: 4}, test{arg: 4, high: true})
		rs = append(rs, rule{unix.SYS_SENDTO, []branch{null}, refuse})
	}
	if !m.Proxy && !m.Serves {
		rs = append(rs, rule{unix.SYS_BIND, nil, refuse}, rule{unix.SYS_LISTEN, nil, refuse})
	}
	return rs
}

// Filter returns the machine code of the filter for a kind of cage. The host
// assembles it, once for each kind: that takes a fresh process longer than all
// its mounts do.
func Filter(m Mode) string {
	code := assemble(rules(m))
	return string(unsafe.Slice((*byte)(unsafe.Pointer(&code[0])), len(code)*int(unsafe.Sizeof(code[0]))))
}

// seccomp puts the filter on the thread, or on all threads if the stage lives
// on, and hands the host the listener if connections are asked about.
func seccomp(s *Spec) *fault {
	const instruction = int(unsafe.Sizeof(unix.SockFilter{}))
	if len(s.Filter) == 0 || len(s.Filter)%instruction != 0 {
		return at(errSpec, "seccomp")
	}
	var flags uintptr
	if s.has(Init) {
		flags |= unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	}
	asks := s.Serves != "" && s.has(Proxy)
	if asks {
		flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	program := unix.SockFprog{Len: uint16(len(s.Filter) / instruction), Filter: (*unix.SockFilter)(unsafe.Pointer(unsafe.StringData(s.Filter)))}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return at(errno, "seccomp")
	}
	if !asks {
		return nil
	}
	defer unix.Close(int(fd))
	return at(send(Connects, int(fd)), "seccomp listener")
}
