package sandbox

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A connector makes the TCP connections of a cage that has Unix sockets as
// well. The cage's filter cannot tell by which kind of socket a connect(2) is,
// and no check of a running process is one, because another of its threads may
// change what was checked. So the call is suspended, its socket and its address
// are fetched once, and the host connects that socket to that address itself.
// A Unix socket is not connected to anything. nil makes no connections.
type connector struct{ f *os.File }

// The kernel's structures, <linux/seccomp.h>.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	data  struct {
		nr   int32
		arch uint32
		ip   uint64
		args [6]uint64
	}
}

type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// maxAddress is the size of struct sockaddr_storage.
const maxAddress = 128

// newConnector serves the listener fd, which it owns, until it is closed or no
// process of the cage is left.
func newConnector(fd int) *connector {
	_ = unix.SetNonblock(fd, true) // so that waiting is the runtime's
	c := &connector{f: os.NewFile(uintptr(fd), "connects")}
	go c.serve()
	return c
}

func (c *connector) close() {
	if c != nil {
		c.f.Close()
	}
}

func (c *connector) serve() {
	conn, err := c.f.SyscallConn()
	if err != nil {
		return
	}
	for {
		var n notification
		over := false
		err := conn.Read(func(fd uintptr) bool {
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} // receiving would block
			if k, err := unix.Poll(p, 0); err != nil || k == 0 {
				return false
			}
			over = p[0].Revents&unix.POLLIN == 0 // nobody is left to ask
			n = notification{}
			return over || ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) == 0
		})
		if err != nil || over {
			return
		}
		r := response{id: n.id}
		if errno := c.connect(conn, &n); errno != 0 {
			r.err = -int32(errno)
		}
		if conn.Control(func(fd uintptr) { ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) }) != nil {
			return
		}
	}
}

type control interface{ Control(func(uintptr)) error }

// connect does what the suspended call n asked for, if it is by TCP.
func (c *connector) connect(listener control, n *notification) unix.Errno {
	size := n.data.args[2]
	if size == 0 || size > maxAddress {
		return unix.EINVAL
	}
	pidfd, err := unix.PidfdOpen(int(n.pid), unix.PIDFD_THREAD)
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, int(int32(n.data.args[0])), 0)
	if err == unix.EBADF {
		return unix.EBADF
	}
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(fd)
	address := make([]byte, size)
	local := []unix.Iovec{{Base: &address[0]}}
	local[0].SetLen(len(address))
	got, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(n.data.args[1]), Len: len(address)}}, 0)
	if err != nil || got != len(address) {
		return unix.EFAULT
	}
	// All was fetched by the number of a thread: which is still the one that
	// called, if its call is.
	valid := false
	_ = listener.Control(func(l uintptr) { valid = ioctl(l, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) == 0 })
	if !valid || !isTCP(fd) {
		return unix.EACCES
	}
	return dial(fd, address)
}

func isTCP(fd int) bool {
	domain, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	protocol, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	return err1 == nil && err2 == nil && (domain == unix.AF_INET || domain == unix.AF_INET6) && protocol == unix.IPPROTO_TCP
}

// maxBlock is for how many seconds a cage's blocking connect(2) may hold up
// its other ones. Inside of a cage all addresses are near.
const maxBlock = 5

// dial connects the socket and leaves its options as they were.
func dial(fd int, address []byte) unix.Errno {
	before, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: maxBlock})
	}
	if err != nil {
		return unix.EACCES
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, before)
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if errno == unix.EINPROGRESS && err == nil && flags&unix.O_NONBLOCK == 0 {
		return unix.ETIMEDOUT
	}
	return errno
}

func ioctl(fd uintptr, request uintptr, arg unsafe.Pointer) unix.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(arg))
		if errno != unix.EINTR {
			return errno
		}
	}
}
