package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of a number: what no program computes with, and what would make the
// exact arithmetic of the checks slow.
const (
	maxDigits   = 256 // bytes of its text
	maxExponent = 512
)

// A parser reads JSON strictly (RFC 8259): one value, no duplicate keys, only
// UTF-8. encoding/json keeps the last of several equal keys and replaces what
// is not UTF-8, and a guest's parser may do otherwise.
type parser struct {
	text  []byte
	i     int
	depth int // how much deeper it may get
}

// parse returns the value of text as nil, bool, json.Number, string, []any or
// map[string]any.
func parse(text []byte, depth int) (any, error) {
	if i := firstInvalid(text); i >= 0 {
		return nil, fmt.Errorf("not UTF-8 at byte %d", i)
	}
	p := &parser{text: text, depth: depth}
	p.space()
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.space(); p.i < len(text) {
		return nil, p.fail("want the end, found %s", p.found())
	}
	return v, nil
}

func firstInvalid(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("not JSON at byte %d: %s", p.i, fmt.Sprintf(format, args...))
}

func (p *parser) found() string {
	if p.i >= len(p.text) {
		return "the end"
	}
	r, _ := utf8.DecodeRune(p.text[p.i:])
	return strconv.QuoteRune(r)
}

func (p *parser) space() {
	for p.i < len(p.text) {
		switch p.text[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

func (p *parser) at(c byte) bool { return p.i < len(p.text) && p.text[p.i] == c }

// take skips c and reports whether it was there.
func (p *parser) take(c byte) bool {
	if p.at(c) {
		p.i++
		return true
	}
	return false
}

func (p *parser) value() (any, error) {
	if p.i == len(p.text) {
		return nil, p.fail("want a value, found the end")
	}
	switch c := p.text[p.i]; {
	case c == '{' || c == '[':
		if p.depth == 0 {
			return nil, fmt.Errorf("nested too deep at byte %d", p.i)
		}
		p.depth--
		defer func() { p.depth++ }()
		if c == '{' {
			return p.object()
		}
		return p.array()
	case c == '"':
		return p.str()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case p.literal("true"):
		return true, nil
	case p.literal("false"):
		return false, nil
	case p.literal("null"):
		return nil, nil
	}
	return nil, p.fail("want a value, found %s", p.found())
}

func (p *parser) literal(word string) bool {
	if len(p.text)-p.i < len(word) || string(p.text[p.i:p.i+len(word)]) != word {
		return false
	}
	p.i += len(word)
	return true
}

func (p *parser) object() (any, error) {
	p.i++
	m := map[string]any{}
	for p.space(); !p.take('}'); p.space() {
		if len(m) > 0 {
			if !p.take(',') {
				return nil, p.fail("want ',' or '}', found %s", p.found())
			}
			p.space()
		}
		if !p.at('"') {
			return nil, p.fail("want a key, found %s", p.found())
		}
		start := p.i
		k, err := p.str()
		if err != nil {
			return nil, err
		}
		if _, ok := m[k]; ok {
			return nil, fmt.Errorf("duplicate key %s at byte %d", quote(k), start)
		}
		if p.space(); !p.take(':') {
			return nil, p.fail("want ':', found %s", p.found())
		}
		p.space()
		if m[k], err = p.value(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (p *parser) array() (any, error) {
	p.i++
	a := []any{}
	for p.space(); !p.take(']'); p.space() {
		if len(a) > 0 {
			if !p.take(',') {
				return nil, p.fail("want ',' or ']', found %s", p.found())
			}
			p.space()
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	return a, nil
}

// number reads a number as it is written.
func (p *parser) number() (json.Number, error) {
	start := p.i
	if !p.skipNumber() {
		return "", p.fail("bad number")
	}
	if p.i-start > maxDigits || !sane(p.text[start:p.i]) {
		return "", fmt.Errorf("a number of more than %d digits, or with an exponent beyond %d, at byte %d", maxDigits, maxExponent, start)
	}
	return json.Number(p.text[start:p.i]), nil
}

// skipNumber skips a number and reports whether it is well-formed.
func (p *parser) skipNumber() bool {
	p.take('-')
	if !p.take('0') && !p.digits() {
		return false
	}
	if p.take('.') && !p.digits() {
		return false
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		return p.digits()
	}
	return true
}

func (p *parser) digits() bool {
	start := p.i
	for p.i < len(p.text) && p.text[p.i] >= '0' && p.text[p.i] <= '9' {
		p.i++
	}
	return p.i > start
}

// sane reports whether a well-formed number's exponent is within bounds.
func sane(number []byte) bool {
	for i, c := range number {
		if c == 'e' || c == 'E' {
			n, err := strconv.Atoi(string(number[i+1:]))
			return err == nil && n <= maxExponent && n >= -maxExponent
		}
	}
	return true
}

var errSurrogate = errors.New("half of a surrogate pair")

// str reads a string.
func (p *parser) str() (string, error) {
	p.i++
	start := p.i
	for ; p.i < len(p.text); p.i++ {
		switch c := p.text[p.i]; {
		case c == '"':
			s := string(p.text[start:p.i])
			p.i++
			return s, nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", p.fail("a control character in a string")
		}
	}
	return "", p.fail("a string does not end")
}

// escaped reads on from the first escape of a string that began at start.
func (p *parser) escaped(start int) (string, error) {
	b := append([]byte(nil), p.text[start:p.i]...)
	for p.i < len(p.text) {
		c := p.text[p.i]
		p.i++
		switch {
		case c == '"':
			return string(b), nil
		case c < ' ':
			return "", p.fail("a control character in a string")
		case c != '\\':
			b = append(b, c)
			continue
		}
		if p.i == len(p.text) {
			break
		}
		c = p.text[p.i]
		p.i++
		switch c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, err := p.unicode()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
		default:
			return "", p.fail("bad escape")
		}
	}
	return "", p.fail("a string does not end")
}

// unicode reads the digits of a \u escape, and the second one of a pair.
func (p *parser) unicode() (rune, error) {
	r, ok := p.hex()
	if !ok {
		return 0, p.fail("bad escape")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if !p.take('\\') || !p.take('u') {
		return 0, p.fail("%v", errSurrogate)
	}
	low, ok := p.hex()
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, p.fail("%v", errSurrogate)
	}
	return r, nil
}

func (p *parser) hex() (rune, bool) {
	if len(p.text)-p.i < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.text[p.i:p.i+4]), 16, 16)
	p.i += 4
	return rune(n), err == nil
}
