// Package ring keeps the end of a stream of bytes in files: a log that may be
// written for ever and takes up two segments at most. Offsets count from the
// start of the stream and never change. It does not know whose log it is, and
// of the text only where its lines and characters end.
package ring

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Name is the file with the end of the stream. The one before it, if it is
// kept, is named by the offset that it starts at: "output.0.log".
const Name = "output.log"

// nameBefore is the file of the segment that starts at start and is full.
func nameBefore(start int64) string { return "output." + strconv.FormatInt(start, 10) + ".log" }

// A Log is a stream of bytes of which the end is kept. One process writes it;
// any may read it. It is safe for concurrent use.
type Log struct {
	dir     string
	segment int64                     // bytes of a segment
	crowded func() (keepNothing bool) // asked when a segment is full

	mu      sync.Mutex
	file    *os.File // the last segment; nil if nobody writes, or it is to be made
	closed  bool
	before  part // the segment before the last; no bytes if there is none
	last    part
	lost    int64 // bytes that could not be written
	why     error // of the last loss
	changed chan struct{}
}

// A part is the stretch of the stream that a file holds.
type part struct{ start, size int64 }

func (p part) end() int64 { return p.start + p.size }

// Create makes dir, which must not exist, and in it an empty log whose
// segments have the given size. When a segment is full, crowded is asked whether
// there is no room to keep it; nil means that there always is.
func Create(dir string, segment int64, crowded func() bool) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, segment: segment, crowded: crowded, changed: make(chan struct{})}
	if crowded == nil {
		l.crowded = func() bool { return false }
	}
	return l, l.begin()
}

// begin makes the file of the last segment.
func (l *Log) begin() (err error) {
	l.file, err = os.OpenFile(l.Path(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return err
}

// Open returns the log in dir as it is now, for reading. A log that is being
// written has to be opened again to see more.
func Open(dir string) (*Log, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, closed: true}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // the writer has gone on
			continue
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if start, ok := startOf(e.Name()); ok {
			if start >= l.before.start {
				l.before = part{start, info.Size()}
			}
		} else if e.Name() == Name {
			l.last.size = info.Size()
		}
	}
	l.last.start = l.before.end()
	return l, nil
}

// startOf reads what nameBefore wrote.
func startOf(name string) (int64, bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(name, "output."), ".log")
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, err == nil && nameBefore(start) == name
}

// Path returns the file with the end of the stream.
func (l *Log) Path() string { return filepath.Join(l.dir, Name) }

// Bounds returns the offsets of the first byte that is kept and of the end.
func (l *Log) Bounds() (first, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bounds()
}

func (l *Log) bounds() (first, end int64) {
	if l.before.size > 0 {
		return l.before.start, l.last.end()
	}
	return l.last.start, l.last.end()
}

// Lost returns how many bytes could not be written, which have no offsets, and
// why the last of them could not.
func (l *Log) Lost() (n int64, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.why
}

// Changed returns a channel that is closed when there is more, or the log has
// been closed.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Append adds p to the stream. What cannot be written, such as to a full disk,
// is lost and counted: a program does not stop because nobody can keep what it
// says. After Close it fails with fs.ErrClosed.
func (l *Log) Append(p []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fs.ErrClosed
	}
	for len(p) > 0 {
		n, err := l.some(p)
		l.last.size += int64(n)
		p = p[n:]
		if err != nil {
			l.lost += int64(len(p))
			l.why = err
			break
		}
	}
	l.announce()
	return nil
}

func (l *Log) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// some writes as much of p as fits the segment, after beginning another if it
// is full.
func (l *Log) some(p []byte) (n int, err error) {
	if l.last.size >= l.segment {
		if err := l.turn(); err != nil {
			return 0, err
		}
	}
	if l.file == nil {
		if err := l.begin(); err != nil {
			return 0, err
		}
	}
	room := l.segment - l.last.size
	return l.file.Write(p[:min(int64(len(p)), room)])
}

// turn makes the last segment the one before. Whenever the process dies, the
// highest number in the directory tells where the last segment starts.
func (l *Log) turn() error {
	if l.file != nil {
		err := l.file.Close() // not every system renames an open file
		l.file = nil
		if err != nil {
			return err
		}
	}
	full, old := l.last, l.before
	if err := os.Rename(l.Path(), filepath.Join(l.dir, nameBefore(full.start))); err != nil {
		return err
	}
	l.before, l.last = full, part{start: full.end()}
	if old.start != full.start { // else it was empty, and its name is taken over
		l.forget(old)
	}
	if err := l.begin(); err != nil {
		return err
	}
	if l.crowded() {
		f, err := os.OpenFile(filepath.Join(l.dir, nameBefore(l.last.start)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		l.before = part{start: l.last.start}
		l.forget(full)
		return f.Close()
	}
	return nil
}

// forget removes the file of a segment. If it cannot, the file goes when the
// directory does.
func (l *Log) forget(old part) {
	if old != (part{}) {
		_ = os.Remove(filepath.Join(l.dir, nameBefore(old.start)))
	}
}

// Close ends the writing. It is idempotent. The log can still be read.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.announce()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// readAt fills p from the stream, as far as it goes.
func (l *Log) readAt(p []byte, at int64) (n int, err error) {
	for n < len(p) && err == nil {
		name, in := Name, l.last
		if at < l.last.start {
			name, in = nameBefore(l.before.start), l.before
		}
		if at < in.start || at >= in.end() {
			break
		}
		var m int
		m, err = readFile(filepath.Join(l.dir, name), p[n:min(int64(len(p)), int64(n)+in.end()-at)], at-in.start)
		n += m
		at += int64(m)
	}
	return n, err
}

// readFile fills p from a file of the log. Nothing is followed to another: who
// can write in the directory must not choose what is read.
func readFile(path string, p []byte, at int64) (int, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file: %w", path, errors.Join(err, fs.ErrInvalid))
	}
	n, err := f.ReadAt(p, at)
	if errors.Is(err, io.EOF) && n < len(p) {
		return n, fmt.Errorf("%s is shorter than it was: %w", path, io.ErrUnexpectedEOF)
	}
	return n, nil
}
