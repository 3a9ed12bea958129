//go:build linux || darwin

package tty

import (
	"os"

	"golang.org/x/sys/unix"
)

func open() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0) }

// Owned reports whether this process has a terminal that is its own to draw on:
// it belongs to the job that the terminal is given to, and nobody has taken the
// terminal over to draw on it, as a client with an interface of its own does.
func (*Own) Owned() bool {
	t, err := open()
	if err != nil {
		return false
	}
	defer t.Close()
	fd := int(t.Fd())
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return false
	}
	mode, err := unix.IoctlGetTermios(fd, getMode)
	return err == nil && mode.Lflag&unix.ICANON != 0
}
