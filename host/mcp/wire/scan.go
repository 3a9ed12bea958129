package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a message, as the official SDK does.
const maxDepth = 1000

// A Sink says where a scan keeps the members of an object.
type Sink interface {
	// Member returns the place for the value of a member, nil if it is not
	// wanted, and the Sink for the members of that value, or nil. The value
	// aliases the line.
	Member(key []byte) (*json.RawMessage, Sink)
}

// A scanner checks a JSON text and keeps the values that a Sink wants.
type scanner struct {
	b    []byte
	i    int
	dup  string // a wanted member that occurred twice
	deep bool
	list *[]json.RawMessage // if not nil: the elements of the outermost array
}

func (s *scanner) fault() *Fault {
	f := &Fault{Code: codeParse, Message: "parse error", Details: "not JSON in UTF-8"}
	if s.deep {
		f.Details = "nested too deep"
	}
	return f
}

func (s *scanner) first() byte {
	return bytes.TrimLeft(s.b, " \t\r\n")[0]
}

// whole scans one value and nothing else.
func (s *scanner) whole(into Sink) bool {
	if !utf8.Valid(s.b) {
		return false
	}
	s.space()
	if !s.value(0, into) {
		return false
	}
	s.space()
	return s.i == len(s.b)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// next skips space and consumes c.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) value(depth int, into Sink) bool {
	if s.i >= len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '{', '[':
		if depth == maxDepth {
			s.deep = true
			return false
		}
		if s.b[s.i] == '{' {
			return s.object(depth+1, into)
		}
		return s.array(depth + 1)
	case '"':
		return s.str()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scanner) object(depth int, into Sink) bool {
	s.i++
	if s.next('}') {
		return true
	}
	for {
		s.space()
		from := s.i
		if s.i >= len(s.b) || s.b[s.i] != '"' || !s.str() {
			return false
		}
		var place *json.RawMessage
		var inner Sink
		key := s.b[from:s.i]
		if into != nil {
			place, inner = into.Member(name(key))
		}
		if !s.next(':') {
			return false
		}
		s.space()
		from = s.i
		if !s.value(depth, inner) {
			return false
		}
		if place != nil {
			if *place != nil {
				s.dup = string(key)
			}
			*place = s.b[from:s.i:s.i]
		}
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// name returns the text of a key without allocating in the common case.
func name(key []byte) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key[1 : len(key)-1]
	}
	t, _ := Text(key)
	return []byte(t)
}

func (s *scanner) array(depth int) bool {
	s.i++
	if s.next(']') {
		return true
	}
	for {
		s.space()
		from := s.i
		if !s.value(depth, nil) {
			return false
		}
		if depth == 1 && s.list != nil {
			*s.list = append(*s.list, s.b[from:s.i:s.i])
		}
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

func (s *scanner) str() bool {
	b := s.b
	for i := s.i + 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			s.i = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			i++
			if i >= len(b) {
				return false
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if i+4 >= len(b) || !hex(b[i+1:i+5]) {
					return false
				}
				i += 4
			default:
				return false
			}
		}
	}
	return false
}

func hex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scanner) number() bool {
	s.skip('-', '-')
	if !s.skip('0', '0') && !s.digits() {
		return false
	}
	if s.skip('.', '.') && !s.digits() {
		return false
	}
	if s.skip('e', 'e') || s.skip('E', 'E') {
		if !s.skip('+', '+') {
			s.skip('-', '-')
		}
		return s.digits()
	}
	return true
}

// skip consumes one byte between lo and hi.
func (s *scanner) skip(lo, hi byte) bool {
	if s.i < len(s.b) && s.b[s.i] >= lo && s.b[s.i] <= hi {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	if !s.skip('0', '9') {
		return false
	}
	for s.skip('0', '9') {
	}
	return true
}
