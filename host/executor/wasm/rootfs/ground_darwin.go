//go:build !rootfs_portable

package rootfs

import (
	"github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"
)

const (
	pathOnly  = unix.O_RDONLY // there is no O_PATH: a directory on the way must be readable
	utimeOmit = -2            // UTIME_OMIT of sys/stat.h
)

// openBeneath opens what is at rel name by name, following no link.
func (d dir) openBeneath(rel string, flags int, perm uint32) (int, sys.Errno) {
	return d.walk(rel, flags, perm)
}

func (h handle) datasync() sys.Errno { return h.sync() }

// chtimes is EPERM: there is no futimens in package unix, and wazero then goes
// by the name.
func (h handle) chtimes(int64, int64) sys.Errno { return sys.EPERM }
