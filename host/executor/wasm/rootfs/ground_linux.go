//go:build !rootfs_portable

package rootfs

import (
	"github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"
)

const (
	pathOnly  = unix.O_PATH
	utimeOmit = 1<<30 - 2 // UTIME_OMIT of linux/stat.h
)

// openBeneath opens what is at rel in one step, which the kernel keeps beneath
// d and off all links. A kernel before 5.6 or a seccomp filter may not have
// openat2; then it walks.
func (d dir) openBeneath(rel string, flags int, perm uint32) (int, sys.Errno) {
	if d.walking {
		return d.walk(rel, flags, perm)
	}
	how := unix.OpenHow{
		Flags:   uint64(flags) | unix.O_CLOEXEC, // with O_NOFOLLOW a link might be ENOTDIR instead of ELOOP
		Mode:    uint64(perm),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(d.fd, rel, &how)
		switch {
		case err == nil:
			return fd, 0
		case err == unix.EINTR, err == unix.EAGAIN && try < maxRaces:
			continue
		case err == unix.ENOSYS, err == unix.EPERM:
			return d.walk(rel, flags, perm)
		case err == unix.ELOOP:
			return -1, metLink
		}
		return -1, errno(err)
	}
}

func (h handle) datasync() sys.Errno { return errno(unix.Fdatasync(int(h))) }

// chtimes is EPERM on a Linux before 5.8, where wazero then goes by the name.
func (h handle) chtimes(atim, mtim int64) sys.Errno {
	ts := [2]unix.Timespec{timespec(atim), timespec(mtim)}
	err := unix.UtimesNanoAt(int(h), "", ts[:], unix.AT_EMPTY_PATH)
	if err == unix.EINVAL || err == unix.ENOENT {
		return sys.EPERM
	}
	return errno(err)
}
