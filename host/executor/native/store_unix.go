//go:build unix

package native

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks file for as long as it is open, unless another open file of
// the same name is locked. It reports whether it did.
func tryLock(file *os.File) (bool, error) {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		}
		return err == nil, err
	}
}

// ours reports whether path is a directory that only this user can have made.
func ours(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && uint32(st.Mode)&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == os.Geteuid()
}
