//go:build linux || darwin

package command

import (
	"os"

	"golang.org/x/sys/unix"
)

// nonblock is the flag with which opening a pipe does not wait.
const nonblock = unix.O_NONBLOCK | unix.O_CLOEXEC

// An identity is all that a change of a file changes: nobody but root can set
// back the time of the last change of its inode.
type identity struct {
	dev, ino         uint64
	size             int64
	modified, change unix.Timespec
	uid              uint32
}

func identityOf(st *unix.Stat_t) identity {
	return identity{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim, st.Uid}
}

func identify(f *os.File) (id identity, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return id, err
	}
	return identityOf(&st), nil
}

// identifyPath is identify of the file at path, which is no link.
func identifyPath(path string) (id identity, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return id, err
	}
	return identityOf(&st), nil
}

// trusted reports whether the file belongs to root or to the host's user.
func (id identity) trusted() bool { return id.uid == 0 || int(id.uid) == os.Geteuid() }

// duplicate returns a descriptor of its own for f.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
