package tty

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	getMode = unix.TIOCGETA
	setMode = unix.TIOCSETA
)

// flush drops what was typed and not yet read (FREAD).
func flush(t *os.File) error { return unix.IoctlSetPointerInt(int(t.Fd()), unix.TIOCFLUSH, 1) }
