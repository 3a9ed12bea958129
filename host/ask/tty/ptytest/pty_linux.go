// Package ptytest makes pseudo-terminals, for the tests of what draws on one. It
// knows nothing of who draws.
package ptytest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait.
const patience = 60 * time.Second

// A Terminal is a pseudo-terminal with somebody in front of it.
type Terminal struct {
	t      testing.TB
	master *os.File
	Slave  *os.File

	mu    sync.Mutex
	shown strings.Builder
}

// Open makes a Terminal that is closed when the test ends.
func Open(t testing.TB) *Terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("LEFT OUT: no pseudo-terminals: ", err)
	}
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if cerr := raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
		if err == nil {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100})
		}
	}); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &Terminal{t: t, master: master, Slave: slave}
	read := make(chan struct{})
	go func() {
		defer close(read)
		var b [4096]byte
		for {
			n, err := master.Read(b[:])
			x.mu.Lock()
			x.shown.Write(b[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		slave.Close()
		master.Close()
		<-read
	})
	return x
}

// Own makes the terminal the one that cmd is started in.
func (x *Terminal) Own(cmd *exec.Cmd) {
	cmd.ExtraFiles = append(cmd.ExtraFiles, x.Slave)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2 + len(cmd.ExtraFiles)}
}

// Type presses keys.
func (x *Terminal) Type(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// Shown is all that was drawn.
func (x *Terminal) Shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shown.String()
}

// Wait waits until what was drawn after the first from bytes has the text, and
// returns how much has been drawn then.
func (x *Terminal) Wait(from int, text string) int {
	x.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if s := x.Shown(); strings.Contains(s[min(from, len(s)):], text) {
			return len(s)
		}
	}
	x.t.Fatalf("%q is not shown, but %q", text, x.Shown()[from:])
	return 0
}

// Canonical reports whether the terminal is as a shell leaves it.
func (x *Terminal) Canonical() bool {
	x.t.Helper()
	raw, err := x.Slave.SyscallConn()
	if err != nil {
		x.t.Fatal(err)
	}
	var mode *unix.Termios
	if cerr := raw.Control(func(fd uintptr) { mode, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) }); cerr != nil || err != nil {
		x.t.Fatal(cerr, err)
	}
	return mode.Lflag&unix.ICANON != 0 && mode.Lflag&unix.ECHO != 0
}

// Raw makes the terminal one that somebody draws on.
func (x *Terminal) Raw() {
	x.t.Helper()
	raw, err := x.Slave.SyscallConn()
	if err != nil {
		x.t.Fatal(err)
	}
	if cerr := raw.Control(func(fd uintptr) {
		var mode *unix.Termios
		if mode, err = unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
			mode.Lflag &^= unix.ICANON | unix.ECHO
			err = unix.IoctlSetTermios(int(fd), unix.TCSETS, mode)
		}
	}); cerr != nil || err != nil {
		x.t.Fatal(cerr, err)
	}
}
