package redact

import (
	"bytes"
	"strconv"
)

// Bounds of a shape.
const (
	maxKeys     = 64  // entries
	maxElements = 4   // elements of one array that are described; the rest is counted
	maxDepth    = 16  // nested containers
	maxPath     = 120 // bytes of one entry's path
	maxName     = 48  // bytes of one key
)

// AppendShape appends to dst a JSON array with one string for each value in
// raw, a JSON text: its path, type and size, such as "opts.tags[0]:string:5".
// Sizes are bytes as encoded for strings, counts for arrays and objects. No
// value is ever in it, and a key that may be data rather than a name, or holds
// a secret, is "?". whole is false if raw was not described to its end:
// because it is large, deep or no JSON.
func (r Redactor) AppendShape(dst, raw []byte) (_ []byte, whole bool) {
	s := shaper{scanner: scanner{b: raw}, r: r, dst: append(dst, '[')}
	whole = s.value(0, 0) && s.atEnd()
	return append(s.dst, ']'), whole
}

// A shaper writes the shape of a JSON text in one pass.
type shaper struct {
	scanner
	r    Redactor
	dst  []byte
	path [maxPath]byte
	n    int // entries written
}

// value describes the value at the cursor, whose path is path[:at]. It returns
// false if it cannot go on.
func (s *shaper) value(at, depth int) bool {
	switch s.peek() {
	case '{':
		n, ok := s.object(at, depth)
		return s.entry(at, "object", n, ok)
	case '[':
		n, ok := s.array(at, depth)
		return s.entry(at, "array", n, ok)
	case '"':
		text, ok := s.str()
		return s.entry(at, "string", len(text), ok)
	case 't', 'f':
		_, ok := s.word()
		return s.entry(at, "boolean", -1, ok)
	case 'n':
		_, ok := s.word()
		return s.entry(at, "null", -1, ok)
	default:
		_, ok := s.word()
		return s.entry(at, "number", -1, ok)
	}
}

// object describes the members of an object and counts them.
func (s *shaper) object(at, depth int) (n int, ok bool) {
	s.i++
	if depth >= maxDepth {
		return 0, false
	}
	if s.peek() == '}' {
		s.i++
		return 0, true
	}
	for {
		if s.peek() != '"' {
			return n, false
		}
		key, ok := s.str()
		if !ok || s.peek() != ':' {
			return n, false
		}
		s.i++
		if !s.value(s.name(at, key), depth+1) {
			return n, false
		}
		n++
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			return n, true
		default:
			return n, false
		}
	}
}

// array describes the first elements of an array and counts them all.
func (s *shaper) array(at, depth int) (n int, ok bool) {
	s.i++
	if depth >= maxDepth {
		return 0, false
	}
	if s.peek() == ']' {
		s.i++
		return 0, true
	}
	for {
		if n < maxElements {
			ok = s.value(s.index(at, n), depth+1)
		} else {
			ok = s.skip()
		}
		if !ok {
			return n, false
		}
		n++
		switch s.peek() {
		case ',':
			s.i++
		case ']':
			s.i++
			return n, true
		default:
			return n, false
		}
	}
}

// entry writes one entry unless the value was not understood (ok is false).
// The root is the arguments' object itself and has no entry.
func (s *shaper) entry(at int, kind string, n int, ok bool) bool {
	if !ok || at == 0 {
		return ok
	}
	if s.n == maxKeys {
		return false
	}
	if s.n++; s.n > 1 {
		s.dst = append(s.dst, ',')
	}
	s.dst = append(s.dst, '"')
	s.dst = append(s.dst, s.path[:at]...)
	s.dst = append(s.dst, ':')
	s.dst = append(s.dst, kind...)
	if n >= 0 {
		s.dst = append(s.dst, ':')
		s.dst = strconv.AppendInt(s.dst, int64(n), 10)
	}
	s.dst = append(s.dst, '"')
	return true
}

// name puts key behind path[:at] and returns the new length.
func (s *shaper) name(at int, key []byte) int {
	if at > 0 {
		at += copy(s.path[at:], ".")
	}
	if !s.plain(key) {
		key = []byte("?")
	}
	return at + copy(s.path[at:], key)
}

// index puts "[n]" behind path[:at] and returns the new length.
func (s *shaper) index(at, n int) int {
	return at + copy(s.path[at:], []byte{'[', '0' + byte(n), ']'})
}

// plain reports whether key is a name that may be shown.
func (s *shaper) plain(key []byte) bool {
	if len(key) > maxName || len(key) == 0 {
		return false
	}
	for _, c := range key {
		if !tokenByte(c) && c != '$' {
			return false
		}
	}
	if len(key) < 12 && len(s.r.Secrets) == 0 { // no form of token is shorter
		return true
	}
	return s.r.Clean(string(key))
}

// A scanner walks over a JSON text. It finds the ends of values; it does not
// check escapes or the spelling of numbers.
type scanner struct {
	b []byte
	i int
}

// peek returns the next byte that is no space, or 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) atEnd() bool { return s.peek() == 0 && s.i == len(s.b) }

// str returns what is between the quotes of the string at the cursor, escapes
// as they are.
func (s *scanner) str() ([]byte, bool) {
	from := s.i + 1
	for at := from; ; {
		k := bytes.IndexByte(s.b[at:], '"')
		if k < 0 {
			return nil, false
		}
		at += k
		slashes := 0
		for at-1-slashes >= from && s.b[at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			s.i = at + 1
			return s.b[from:at], true
		}
		at++
	}
}

// word returns the number or name at the cursor.
func (s *scanner) word() ([]byte, bool) {
	from := s.i
	for s.i < len(s.b) && (tokenByte(s.b[s.i]) || s.b[s.i] == '+') {
		s.i++
	}
	return s.b[from:s.i], s.i > from
}

// skip passes over the value at the cursor.
func (s *scanner) skip() bool {
	for depth := 0; ; {
		switch s.peek() {
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			if depth--; depth < 0 {
				return false
			}
			s.i++
		case '"':
			if _, ok := s.str(); !ok {
				return false
			}
		case ',', ':':
			if depth == 0 {
				return false
			}
			s.i++
			continue
		default:
			if _, ok := s.word(); !ok {
				return false
			}
		}
		if depth == 0 {
			return true
		}
	}
}
