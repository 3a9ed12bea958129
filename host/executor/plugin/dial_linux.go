package plugin

import (
	"context"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// dial connects to the socket name in the directory dir, and to nothing else: no
// link is followed, on the way or at its end, and whoever listens there is the
// process pid. The address is what a plugin said, so it may lie in any way.
func dial(ctx context.Context, dir, name string, pid int) (net.Conn, error) {
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	defer unix.Close(d)
	fd, err := unix.Openat(d, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, os.NewSyscallError("stat", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("%q is not a socket", name)
	}
	var d2 net.Dialer
	conn, err := d2.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, err
	}
	if err := isPeer(conn.(*net.UnixConn), pid); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// isPeer checks that the process pid listens at the other end of c.
func isPeer(c *net.UnixConn, pid int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return os.NewSyscallError("getsockopt", failed)
	case int(peer.Pid) != pid:
		return fmt.Errorf("process %d answers there, not the plugin", peer.Pid)
	}
	return nil
}
