package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(append(dst, s[start:i]...), "\uFFFD"...)
			start = i + n
		case r == '\u2028', r == '\u2029': // line ends to some readers of lines
			dst = append(append(dst, s[start:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&15])
			start = i + n
		}
		i += n
	}
	return append(append(dst, s[start:]...), '"')
}

// Compact returns v as one line of valid JSON, or nil if v is not JSON. It
// copies only what must change: v may come from a guest.
func Compact(v json.RawMessage) json.RawMessage {
	if !utf8.Valid(v) {
		v = bytes.ToValidUTF8(v, []byte("\uFFFD"))
	}
	if s := (scanner{b: v}); !s.whole(nil) {
		return nil
	}
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 {
		return v
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return nil
	}
	return b.Bytes()
}

// A List appends the members of an object or an array to B, with commas between
// them. List{B: b} goes on behind a member, NewList begins.
type List struct {
	B     []byte
	first bool
}

// NewList returns a List whose members come behind dst, which ends in the
// bracket that opens them.
func NewList(dst []byte) List { return List{B: dst, first: true} }

// Key appends the name of a member, which needs no escapes; its value is to
// follow.
func (l *List) Key(k string) {
	l.Comma()
	l.B = append(append(append(l.B, '"'), k...), '"', ':')
}

// Comma appends what separates the next member from the last, if there is one.
func (l *List) Comma() {
	if !l.first {
		l.B = append(l.B, ',')
	}
	l.first = false
}

// Text appends a member that is a string.
func (l *List) Text(k, v string) {
	l.Key(k)
	l.B = AppendString(l.B, v)
}

// Optional is Text unless v is empty.
func (l *List) Optional(k, v string) {
	if v != "" {
		l.Text(k, v)
	}
}

// Raw appends a member that is JSON already.
func (l *List) Raw(k string, v json.RawMessage) {
	l.Key(k)
	l.B = append(l.B, v...)
}

// Base64 appends a member that is a string of base64.
func (l *List) Base64(k string, v []byte) {
	l.Key(k)
	l.B = append(l.B, '"')
	l.B = append(base64.StdEncoding.AppendEncode(l.B, v), '"')
}
