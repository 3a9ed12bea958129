package wire

import (
	"bytes"
	"errors"
	"io"
)

// ErrLong stands for a line over the limit, which was skipped.
var ErrLong = errors.New("line too long")

const (
	lineBuffer = 64 << 10 // of a reader in its normal state
	keepBuffer = 1 << 20  // a larger one is given back after its line
)

// A Reader cuts a stream into lines, however long the hostile ones are.
type Reader struct {
	r          io.Reader
	buf        []byte
	start, end int // of what is read and not yet returned
	max        int
	skipping   bool
	err        error
}

// NewReader returns a Reader of r whose longest line has max bytes.
func NewReader(r io.Reader, max int) *Reader {
	return &Reader{r: r, buf: make([]byte, min(lineBuffer, max+1)), max: max}
}

// Ready reports whether Next would return without reading.
func (l *Reader) Ready() bool {
	return l.err != nil || bytes.IndexByte(l.buf[l.start:l.end], '\n') >= 0
}

// Next returns the next line without its newline; it is valid until the next
// call. A last line needs no newline. It returns ErrLong, once, for a line over
// the limit, and the reader's error at the end.
func (l *Reader) Next() ([]byte, error) {
	seen := l.start
	for {
		if n := bytes.IndexByte(l.buf[seen:l.end], '\n'); n >= 0 {
			return l.take(seen+n, seen+n+1)
		}
		seen = l.end
		if l.skipping || l.end-l.start > l.max {
			l.skipping = true
			l.start, l.end, seen = 0, 0, 0
			l.shrink()
		}
		if l.err != nil {
			if l.start == l.end && !l.skipping {
				return nil, l.err
			}
			return l.take(l.end, l.end)
		}
		seen -= l.makeRoom()
		l.fill()
	}
}

func (l *Reader) take(end, next int) ([]byte, error) {
	line := l.buf[l.start:end]
	l.start = next
	if l.skipping || len(line) > l.max {
		l.skipping = false
		return nil, ErrLong
	}
	return line, nil
}

// makeRoom makes space behind end and returns how far the contents moved down.
func (l *Reader) makeRoom() int {
	if l.start == l.end {
		moved := l.start
		l.start, l.end = 0, 0
		l.shrink()
		return moved
	}
	if l.end < len(l.buf) {
		return 0
	}
	moved, from := l.start, l.buf[l.start:l.end]
	if l.start < len(l.buf)/2 && len(l.buf) <= l.max {
		l.buf = make([]byte, min(2*len(l.buf), l.max+1))
	}
	l.end = copy(l.buf, from)
	l.start = 0
	return moved
}

// shrink gives a large buffer back. The buffer must be empty.
func (l *Reader) shrink() {
	if len(l.buf) > keepBuffer {
		l.buf = make([]byte, min(lineBuffer, l.max+1))
	}
}

func (l *Reader) fill() {
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.err = err
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}
