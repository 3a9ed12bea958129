package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate sets aside file[from:to]. mappable reports that a write to a
// mapping of it cannot run out of space.
func allocate(file *os.File, from, to int64) (mappable bool, err error) {
	for {
		err = unix.Fallocate(int(file.Fd()), 0, from, to-from)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return false, zeroFill(file, from, to)
	}
	return true, err
}

func mapSpace(file *os.File, from int64, n int) ([]byte, error) {
	window, err := unix.Mmap(int(file.Fd()), from, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		// Else the first record of a chunk waits until the system has read what
		// lies ahead, which is nothing. It is a wish: that it may fail is no harm.
		_ = unix.Madvise(window, unix.MADV_RANDOM)
	}
	return window, err
}

func unmapSpace(window []byte) { _ = unix.Munmap(window) }

// Datasync brings the file's bytes to disk. It fails with os.ErrClosed, and
// never touches another file, if the file is closed meanwhile.
func Datasync(file *os.File) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	if err := conn.Control(func(fd uintptr) {
		for {
			if serr = unix.Fdatasync(int(fd)); !errors.Is(serr, unix.EINTR) {
				return
			}
		}
	}); err != nil {
		return os.ErrClosed // Control fails for no other reason, and with an error that is not exported
	}
	return serr
}
