package shell

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// The most text of one result.
const (
	maxRunes = 30_000
	maxLines = 2_000
)

// clip keeps the beginning and the end of a text, as much as a result may
// hold, whatever its length is.
type clip struct {
	head []byte // everything, until it is too much
	tail []byte // what came after
	cut  bool   // something between them is gone

	bytes      int64
	runes, nls int // of head
	over       bool
}

// write takes valid UTF-8.
func (c *clip) write(p []byte) {
	c.bytes += int64(len(p))
	if !c.over {
		c.runes += utf8.RuneCount(p)
		c.nls += bytes.Count(p, []byte("\n"))
		if c.runes <= maxRunes && c.nls <= maxLines {
			c.head = append(c.head, p...)
			return
		}
		c.over = true
	}
	c.tail = append(c.tail, p...)
	if len(c.tail) > 8*maxRunes { // of which the last half are more runes than are ever shown
		keep := c.tail[len(c.tail)-4*maxRunes:]
		for len(keep) > 0 && !utf8.RuneStart(keep[0]) {
			keep = keep[1:]
		}
		c.tail, c.cut = c.tail[:copy(c.tail, keep)], true
	}
}

// room is what a marker takes of the runes that may be shown.
const room = 100

// show returns at most runes characters and lines lines of the text, and how
// many bytes of it are left out. There is a line where they are missing.
func (c *clip) show(runes, lines int) (string, int64) {
	head, tail := c.head, c.tail
	if !c.cut {
		all := append(head[:len(head):len(head)], tail...)
		if utf8.RuneCount(all) <= runes && bytes.Count(all, []byte("\n")) <= lines {
			return string(all), 0
		}
		head, tail = all, all
	}
	runes = max(runes-room, 0)
	head = first(head, runes/2, lines/2)
	tail = last(tail, runes/2, lines/2)
	omitted := c.bytes - int64(len(head)) - int64(len(tail))
	var b bytes.Buffer
	b.Write(head)
	if len(head) > 0 && head[len(head)-1] != '\n' {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[... %d bytes left out ...]\n", omitted)
	b.Write(tail)
	return b.String(), omitted
}

// first returns the beginning of b, at most so many runes and lines of it. It
// ends with a line, unless that would take more than half of it.
func first(b []byte, runes, lines int) []byte {
	end := 0
	for end < len(b) && runes > 0 && lines > 0 {
		_, n := utf8.DecodeRune(b[end:])
		if b[end] == '\n' {
			lines--
		}
		end += n
		runes--
	}
	if nl := bytes.LastIndexByte(b[:end], '\n'); end < len(b) && nl >= end/2 {
		end = nl + 1
	}
	return b[:end]
}

// last is first for the end of b.
func last(b []byte, runes, lines int) []byte {
	start := len(b)
	for start > 0 && runes > 0 {
		_, n := utf8.DecodeLastRune(b[:start])
		if b[start-1] == '\n' && start < len(b) {
			if lines--; lines <= 0 {
				break
			}
		}
		start -= n
		runes--
	}
	if start == 0 || b[start-1] == '\n' {
		return b[start:]
	}
	if nl := bytes.IndexByte(b[start:], '\n'); nl >= 0 && nl < (len(b)-start)/2 {
		start += nl + 1
	}
	return b[start:]
}

// size and lines are what the text has of both, up to what can be shown.
func (c *clip) size() int {
	if c.over {
		return maxRunes
	}
	return c.runes
}

func (c *clip) lines() int {
	if c.over {
		return maxLines
	}
	return c.nls
}
