package ring

import (
	"bytes"
	"unicode/utf8"
)

// A Chunk is a piece of the stream.
type Chunk struct {
	Data    []byte
	At      int64 // the offset of Data
	Next    int64 // the offset of what follows
	Dropped int64 // bytes between the offset asked for and At, no longer kept
}

// Read returns up to n bytes from offset at. The piece ends with a whole line,
// unless a line is longer than n: then it ends with a whole character. If final,
// what is there is all there will be, and the last line needs no end. Where the
// beginning of what was asked for is gone, the rest of its line is skipped.
func (l *Log) Read(at int64, n int, final bool) (Chunk, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, end := l.bounds()
	c := Chunk{At: max(at, first), Next: max(at, first)}
	c.Dropped = c.At - at
	if c.At >= end {
		return c, nil
	}
	window := make([]byte, min(int64(n), end-c.At))
	got, err := l.readAt(window, c.At)
	window = window[:got]
	if err != nil {
		return c, err
	}
	full, last := got == n, final && c.At+int64(got) == end
	skip := 0
	if c.Dropped > 0 {
		skip = beginning(window, full || last)
		if skip < 0 {
			return Chunk{At: at, Next: at}, nil
		}
	}
	// After a skip there may be less room than the next line is long.
	keep := ending(window[skip:], full && skip == 0, last)
	c.At += int64(skip)
	c.Dropped += int64(skip)
	c.Data = window[skip : skip+keep]
	c.Next = c.At + int64(keep)
	return c, nil
}

// beginning returns where the first line begins in a window whose first line
// has lost its beginning, or -1 if that line goes on. In a window that is all
// there is to look at, it is where the first character begins.
func beginning(window []byte, all bool) int {
	if i := bytes.IndexByte(window, '\n'); i >= 0 {
		return i + 1
	}
	if !all {
		return -1
	}
	i := 0
	for i < min(len(window), utf8.UTFMax-1) && !utf8.RuneStart(window[i]) {
		i++
	}
	return i
}

// ending returns how much of window can be given out: whole lines; if it is
// full and holds no end of a line, whole characters; all of it if it is the last.
func ending(window []byte, full, last bool) int {
	if last {
		return len(window)
	}
	if i := bytes.LastIndexByte(window, '\n'); i >= 0 {
		return i + 1
	}
	if !full {
		return 0
	}
	for i := len(window) - 1; i >= max(0, len(window)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(window[i]) {
			if !utf8.FullRune(window[i:]) {
				return i
			}
			break
		}
	}
	return len(window)
}
