//go:build linux || darwin

package tty

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// keys are what is typed at a terminal, until stop: nobody reads there afterwards,
// when it is a shell's again. Readers that others make of terminals may take a
// while to notice their end.
type keys struct {
	t    *os.File
	was  *unix.Termios
	once sync.Once
	over chan struct{}
	mu   sync.Mutex // of reading
}

// newKeys makes the terminal raw until stop.
func newKeys(t *os.File) (*keys, error) {
	was, err := unix.IoctlGetTermios(int(t.Fd()), getMode)
	if err != nil {
		return nil, err
	}
	k := &keys{t: t, was: was, over: make(chan struct{})}
	raw := *was
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	return k, unix.IoctlSetTermios(int(t.Fd()), setMode, &raw)
}

// stop ends all reading, and leaves the terminal as it was.
func (k *keys) stop() {
	k.once.Do(func() {
		close(k.over)
		k.mu.Lock()
		defer k.mu.Unlock()
		_ = unix.IoctlSetTermios(int(k.t.Fd()), setMode, k.was) // it may be gone
	})
}

// lookEvery is how long the end of reading may go unnoticed.
const lookEvery = 50 * 1000 // µs

// Read reads what was typed, as it comes.
func (k *keys) Read(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fd := int(k.t.Fd())
	for {
		select {
		case <-k.over:
			return 0, io.EOF
		default:
		}
		var set unix.FdSet
		set.Set(fd)
		n, err := unix.Select(fd+1, &set, nil, nil, &unix.Timeval{Usec: lookEvery}) // poll knows no terminals on macOS
		if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
			continue
		}
		if err != nil {
			return 0, err
		}
		switch n, err = unix.Read(fd, p); {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
