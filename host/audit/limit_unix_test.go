//go:build unix

package audit

import "golang.org/x/sys/unix"

// limitFileSize sets the soft limit on the size of this process's files.
func limitFileSize(n uint64) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = min(n, l.Max)
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &l)
}
