package shell

import (
	"bytes"
	"unicode/utf8"
)

// plain makes lines of text of what a program writes to a terminal: without
// escape sequences and control characters, valid UTF-8, and with only the last
// state of a line that is written over. It keeps one line, of bounded length.
type plain struct {
	emit func([]byte) // gets whole lines, but for long ones and the last; may not keep them

	in   escape
	n    int    // bytes of the escape sequence so far
	part []byte // of a rune
	line []byte
	over bool // a carriage return was seen: what comes next replaces the line
}

// An escape is a place within an escape sequence (ECMA-48, xterm).
type escape byte

const (
	text    escape = iota
	escaped        // after ESC
	inter          // after ESC and an intermediate byte
	csi            // control sequence: up to a final byte
	str            // a string, such as OSC: up to BEL or ST
	strEnd         // after ESC inside a string
)

const (
	maxLine   = 16 << 10 // bytes after which a line is passed on in parts
	maxEscape = 4 << 10  // bytes after which an escape sequence is none
)

func (p *plain) write(b []byte) {
	for _, c := range b {
		if p.in != text && p.escape(c) {
			continue
		}
		p.char(c)
	}
}

// escape takes a byte of an escape sequence. It reports false if c ends the
// sequence without being a part of it.
func (p *plain) escape(c byte) bool {
	if p.n++; c == 0x1b {
		switch p.in {
		case str:
			p.in = strEnd
		default:
			p.in, p.n = escaped, 0
		}
		return true
	}
	if p.n > maxEscape || c == '\n' || c == 0x18 || c == 0x1a { // CAN and SUB abort
		p.in = text
		return false
	}
	switch p.in {
	case escaped, strEnd:
		p.in = after(c)
	case inter:
		if c < 0x20 || c > 0x2f {
			p.in = text
		}
	case csi:
		switch {
		case c >= 0x40 && c <= 0x7e:
			p.in = text
		case c < 0x20 || c > 0x3f:
			p.in = text
			return false
		}
	case str:
		if c == 0x07 {
			p.in = text
		}
	}
	return true
}

// after returns what ESC and c begin.
func after(c byte) escape {
	switch {
	case c == '[':
		return csi
	case c == ']', c == 'P', c == 'X', c == '^', c == '_':
		return str
	case c >= 0x20 && c <= 0x2f:
		return inter
	}
	return text // a whole sequence: ESC c
}

// char takes a byte of text.
func (p *plain) char(c byte) {
	if c >= utf8.RuneSelf {
		p.part = append(p.part, c)
		p.runes(false)
		return
	}
	p.runes(true)
	switch {
	case c == 0x1b:
		p.in, p.n = escaped, 0
	case c == '\n':
		p.over = false
		p.line = append(p.line, '\n')
		p.pass()
	case c == '\r':
		p.over = true
	case c == '\b':
		_, n := utf8.DecodeLastRune(p.line)
		p.line = p.line[:len(p.line)-n]
	case c == 0:
		p.put(utf8.RuneError)
	case c >= ' ' && c != 0x7f || c == '\t':
		p.put(rune(c))
	}
}

// runes takes the runes that p.part holds; at the end, also what is none.
func (p *plain) runes(end bool) {
	for len(p.part) > 0 && (end || utf8.FullRune(p.part)) {
		r, n := utf8.DecodeRune(p.part)
		if r < 0x80 || r > 0x9f { // C1 controls
			p.put(r)
		}
		p.part = p.part[:copy(p.part, p.part[n:])]
	}
}

func (p *plain) put(r rune) {
	if p.over {
		p.line, p.over = p.line[:0], false
	}
	p.line = utf8.AppendRune(p.line, r)
	if len(p.line) >= maxLine {
		p.pass()
	}
}

func (p *plain) pass() {
	p.emit(p.line)
	p.line = p.line[:0]
}

// flush passes on what is left.
func (p *plain) flush() {
	p.runes(true)
	if len(p.line) > 0 {
		p.pass()
	}
	p.over, p.in = false, text
}

// sniff is how much of a stream tells whether it is binary: text has no NUL
// there. Bytes.
const sniff = 4096

// isBinary reports whether b, the beginning of an output, is not text.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), sniff)], 0) >= 0 }

// pending reports whether flush would pass on something.
func (p *plain) pending() bool { return len(p.line)+len(p.part) > 0 }
