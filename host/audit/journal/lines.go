package journal

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Bounds of what readers take for a line, in bytes.
const (
	maxLine = 4 << 20  // a boot line that names maxHeads files is shorter
	maxTorn = 64 << 10 // a line that is not the first is shorter
)

// How the lines of a file may end.
var (
	ErrTorn = errors.New("unterminated last line")
	ErrLong = errors.New("a line without end")
)

// A LineReader reads the lines of a file up to the space that was set aside
// behind them.
type LineReader struct {
	r    *bufio.Reader
	buf  []byte
	Off  int64 // behind the last line returned
	Line int   // its number, from 1
}

// NewLineReader reads lines from r, from the start of one.
func NewLineReader(r io.Reader) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 64<<10)}
}

// Next returns the next line without its newline, valid until the call after.
// It fails with io.EOF behind the last line, ErrTorn if a record was not
// written to its end, and ErrLong if what follows cannot be one.
func (l *LineReader) Next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		b, err := l.r.ReadSlice('\n')
		switch {
		case err == nil && len(l.buf) == 0:
			l.Line, l.Off = l.Line+1, l.Off+int64(len(b))
			return b[:len(b)-1], nil
		case err == nil && len(l.buf)+len(b) <= maxLine:
			l.buf = append(l.buf, b...)
			l.Line, l.Off = l.Line+1, l.Off+int64(len(l.buf))
			return l.buf[:len(l.buf)-1], nil
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		// Space set aside may be long: keep no more of it than shows that it is that.
		l.buf = append(l.buf, b...)
		rest := bytes.TrimRight(l.buf, "\x00")
		if len(rest) > maxLine || err == nil {
			return nil, ErrLong
		}
		if len(rest) == 0 {
			l.buf = l.buf[:min(len(l.buf), 1)] // a line cannot begin with NUL
		}
		if errors.Is(err, io.EOF) {
			return nil, l.atEOF(rest)
		}
		if len(l.buf) > maxLine {
			l.buf = l.buf[:maxLine]
		}
	}
}

func (l *LineReader) atEOF(rest []byte) error {
	switch {
	case len(rest) == 0:
		return io.EOF
	case len(rest) > maxTorn && l.Line > 0:
		return ErrLong
	}
	return ErrTorn
}
