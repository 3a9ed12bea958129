package sandbox

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func dialTCP(port string, protocol int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: number(port)})
}

func dialUDP(port string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: number(port)})
}

func dialUnix(kind int, name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: name})
}

// blockingTCP uses a socket that blocks, and finds its options as they were.
func blockingTCP(a []string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: number(a[0])}); err != nil {
		return err
	}
	if tv, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err != nil || *tv != (unix.Timeval{}) {
		return errors.New("the time limit was left on the socket")
	}
	return nil
}

// unixShort makes the name of a Unix socket as short as an IPv4 address is.
func unixShort(a []string) error {
	if err := unix.Chdir(a[0][:strings.LastIndexByte(a[0], '/')]); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	name := [16]byte{unix.AF_UNIX}
	copy(name[2:], a[0][strings.LastIndexByte(a[0], '/')+1:])
	return call(unix.SYS_CONNECT, [6]uintptr{uintptr(fd), uintptr(unsafe.Pointer(&name)), 16})
}

// unixRace puts a Unix socket in the place of a TCP one, again and again,
// while another thread connects.
func unixRace(a []string) error {
	u, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	tcp, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	const victim = 99
	stop := time.Now().Add(300 * time.Millisecond)
	go func() {
		for time.Now().Before(stop) {
			_ = unix.Dup3(tcp, victim, 0)
			_ = unix.Dup3(u, victim, 0)
		}
	}()
	for time.Now().Before(stop) {
		if err := unix.Connect(victim, &unix.SockaddrUnix{Name: a[0]}); err == nil || err == unix.EISCONN {
			return nil
		}
	}
	return unix.EACCES
}

// sendStream sends to a name with a socket that may have none.
func sendStream(a []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendmsg(fd, []byte("x"), nil, &unix.SockaddrUnix{Name: a[0]}, unix.MSG_NOSIGNAL)
}

// pairgram sends from one end of a datagram pair to somebody else.
func pairgram(a []string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendmsg(fds[0], []byte("x"), nil, &unix.SockaddrUnix{Name: a[0]}, 0)
}

// serve accepts one connection on a Unix socket and says who it was.
func serve(a []string) error {
	l, err := net.Listen("unix", a[0])
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println("listening")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	b := make([]byte, 4)
	if _, err := c.Read(b); err != nil {
		return err
	}
	_, err = c.Write(b)
	return err
}
