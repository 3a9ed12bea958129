package plugin

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// isPeer checks that the process pid listens at the other end of c.
func isPeer(c *net.UnixConn, pid int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer int
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	}); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return os.NewSyscallError("getsockopt", failed)
	case peer != pid:
		return fmt.Errorf("process %d answers there, not the plugin", peer)
	}
	return nil
}
