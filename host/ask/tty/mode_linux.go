package tty

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
)

// flush drops what was typed and not yet read.
func flush(t *os.File) error { return unix.IoctlSetInt(int(t.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
