package socket

import (
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const supported = true

// peer is the user of the process at the other end (unix(4), LOCAL_PEERCRED).
func peer(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) }); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	return int(cred.Uid), nil
}

func place(dir *os.File, name string) string { return filepath.Join(dir.Name(), name) }
