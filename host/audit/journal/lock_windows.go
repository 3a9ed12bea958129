package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockAt is the byte that is locked: locks are mandatory here, and this one is
// beyond what anybody reads.
const lockAt = 1 << 30

// tryLock locks file for as long as it is open, unless another open file of
// the same name holds a lock that excludes it.
func tryLock(file *os.File, exclusive bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: lockAt})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// stat returns the size of file. An open file cannot lose its name here.
func stat(file *os.File) (size int64, links int, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), 1, nil
}

// private trusts the access list that the path inherits from the user's
// profile, as file modes mean nothing here.
func private(string, os.FileMode) error { return nil }

// SyncDir does nothing: the system has no such operation.
func SyncDir(string) error { return nil }
