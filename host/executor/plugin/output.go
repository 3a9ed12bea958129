package plugin

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/skillhost/skill/sdk"
)

const (
	maxTail   = 2 << 10  // bytes of stderr in an error
	maxLine   = 8 << 10  // bytes of one log message; longer lines are split
	maxEvents = 1 << 16  // progress, partial content and logs of one call
	maxDrain  = 1 << 20  // bytes that a pipe may hold
	readSize  = 32 << 10 //
)

// A pipe is a process's stdout or stderr. Each line becomes a log event of a
// call, and none of it reaches the protocol: apart from the first line of
// stdout, which says where the plugin listens.
type pipe struct {
	p           *process
	level       string
	read, write *os.File
	closed      sync.Once
	handshake   chan struct{} // closed when the first line is there, or will not be

	// mu is held from the reading of bytes until they have been dealt with:
	// whoever has read until there was nothing has seen all that was written.
	mu    sync.Mutex
	begun bool   // the first line is over
	head  []byte // the first line, at most maxHandshake
	line  []byte // not yet ended
	tail  []byte // at most maxTail
	buf   []byte
}

func (o *pipe) open(p *process, level string) (err error) {
	o.p, o.level, o.handshake = p, level, make(chan struct{})
	o.begun = level != "info"
	o.read, o.write, err = os.Pipe()
	return err
}

// started is called when the process has its end of the pipe, or will not.
func (o *pipe) started() {
	o.write.Close()
	o.write = nil
	go o.pump()
}

// end closes the pipe, after what is in it was read.
func (o *pipe) end() {
	o.closed.Do(func() {
		if o.read == nil {
			return
		}
		if o.write != nil {
			o.write.Close()
		}
		o.drain()
		o.read.Close()
	})
}

// pump reads until the pipe is closed at either end.
func (o *pipe) pump() {
	if raw, err := o.read.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool { return o.take(fd, -1) }) // the end, in whatever way
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.begun {
		o.begin()
	}
}

// drain reads what the process has written so far.
func (o *pipe) drain() {
	raw, err := o.read.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { o.take(fd, maxDrain) }) // a closed pipe has nothing more to say
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
}

// take reads what there is, at most about most bytes if that is not negative.
// It reports whether the pipe has ended.
func (o *pipe) take(fd uintptr, most int) (ended bool) {
	for n := 0; most < 0 || n < most; {
		m, again, end := o.chunk(fd)
		if n += m; again || end {
			return end
		}
	}
	return false
}

func (o *pipe) chunk(fd uintptr) (n int, again, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf == nil {
		o.buf = make([]byte, readSize)
	}
	n, err := readFD(fd, o.buf)
	switch {
	case errors.Is(err, syscall.EINTR):
		return 0, false, false
	case errors.Is(err, syscall.EAGAIN):
		return 0, true, false
	case err != nil || n <= 0:
		return 0, false, true
	}
	o.hand(o.buf[:n])
	return n, false, false
}

// hand deals with bytes that were read. Its caller holds mu.
func (o *pipe) hand(b []byte) {
	if !o.begun {
		end := bytes.IndexByte(b, '\n')
		room := maxHandshake - len(o.head)
		if end < 0 && len(b) <= room {
			o.head = append(o.head, b...)
			return
		}
		if end < 0 || end > room {
			end = room
		}
		o.head = append(o.head, b[:end]...)
		b = bytes.TrimPrefix(b[end:], []byte("\n"))
		o.begin()
	}
	if len(b) == 0 {
		return
	}
	if c := o.p.current(); c != nil {
		c.spend(len(b))
	}
	o.tail = append(o.tail, b[max(0, len(b)-maxTail):]...)
	o.tail = o.tail[max(0, len(o.tail)-maxTail):]
	for len(b) > 0 {
		n := min(len(b), maxLine-len(o.line))
		if end := bytes.IndexByte(b[:n], '\n'); end >= 0 {
			o.line = append(o.line, b[:end]...)
			o.flush()
			b = b[end+1:]
			continue
		}
		o.line = append(o.line, b[:n]...)
		if b = b[n:]; len(o.line) == maxLine {
			o.flush()
		}
	}
}

// begin ends the first line.
func (o *pipe) begin() {
	o.begun = true
	close(o.handshake)
}

// first returns the first line, waiting for it.
func (o *pipe) first() string {
	if o.level == "info" {
		<-o.handshake
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.head)
}

// silent reports whether the first line is over and empty.
func (o *pipe) silent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun && len(o.head) == 0
}

// settle waits until nobody deals with what was read.
func (o *pipe) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
}

// flush logs the line so far. Without a call, nobody hears it.
func (o *pipe) flush() {
	if c := o.p.current(); c != nil && len(o.line) > 0 && c.count() {
		c.job.Emit(sdk.Event{Kind: sdk.EventLog, Level: o.level, Message: strings.ToValidUTF8(string(o.line), "\uFFFD")})
	}
	o.line = o.line[:0]
}

// last returns the end of what was written.
func (o *pipe) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(o.tail), ""))
}
