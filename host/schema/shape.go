package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// A shape accepts values of a simple schema straight from their text, without
// allocating. It may only ever accept what the library accepts; what it does
// not accept, the library decides and explains.
type shape struct {
	types      types
	properties []property // by name
	required   uint64     // bits of properties
	items      *shape
	minItems   int
	maxItems   int
	enum       [][]byte // of strings, as they are written without escapes
	minLength  int
	maxLength  int
	min, max   int64 // of whole numbers
	bounded    bool  // min and max are set: other numbers are left to the library
}

type property struct {
	name  string
	shape *shape
}

// types is a set of JSON types.
type types uint8

const (
	typeNull types = 1 << iota
	typeBoolean
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
	typeAny types = 1<<iota - 1
)

var typeNames = map[string]types{"null": typeNull, "boolean": typeBoolean, "integer": typeInteger, "number": typeNumber | typeInteger,
	"string": typeString, "array": typeArray, "object": typeObject}

// maxProperties is how many properties a shape has bits for.
const maxProperties = 64

// shapeOf returns the shape of a schema that uses nothing but the keywords it
// knows, or nil. root is set for the whole schema.
func shapeOf(doc any, root bool) *shape {
	m, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	s := &shape{types: typeAny, maxItems: math.MaxInt, maxLength: math.MaxInt, min: math.MinInt64, max: math.MaxInt64}
	for key, v := range m {
		if !s.keyword(key, v, root) {
			return nil
		}
	}
	slices.SortFunc(s.properties, func(a, b property) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return s.require(m["required"])
}

// require sets the bits of required properties, once they are in order.
func (s *shape) require(list any) *shape {
	names, _ := list.([]any)
	for _, name := range names {
		i := slices.IndexFunc(s.properties, func(p property) bool { return p.name == name })
		if i < 0 {
			return nil
		}
		s.required |= 1 << i
	}
	return s
}

// keyword takes one keyword in, and reports whether it is a simple one.
func (s *shape) keyword(key string, v any, root bool) (ok bool) {
	switch key {
	case "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment":
		return true
	case "$schema":
		return root && (v == "https://json-schema.org/draft/2020-12/schema" || v == "http://json-schema.org/draft-07/schema#")
	case "required":
		_, ok = v.([]any)
		return ok
	case "type":
		return s.setTypes(v)
	case "properties":
		return s.setProperties(v)
	case "additionalProperties":
		_, ok = v.(bool) // properties that are not declared are left to the library
		return ok
	case "items":
		s.items = shapeOf(v, false)
		return s.items != nil
	case "enum":
		return s.setEnum(v)
	case "minItems":
		return setInt(&s.minItems, v)
	case "maxItems":
		return setInt(&s.maxItems, v)
	case "minLength":
		return setInt(&s.minLength, v)
	case "maxLength":
		return setInt(&s.maxLength, v)
	case "minimum", "maximum":
		n, isNumber := v.(json.Number)
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if key == "minimum" {
			s.min = i
		} else {
			s.max = i
		}
		s.bounded = true
		return isNumber && err == nil
	}
	return false
}

func setInt(to *int, v any) bool {
	n, ok := v.(json.Number)
	i, err := strconv.ParseInt(n.String(), 10, 32)
	*to = int(i)
	return ok && err == nil && i >= 0
}

func (s *shape) setTypes(v any) bool {
	names := []any{v}
	if list, ok := v.([]any); ok {
		names = list
	}
	s.types = 0
	for _, name := range names {
		str, ok := name.(string)
		if t := typeNames[str]; !ok || t == 0 {
			return false
		} else {
			s.types |= t
		}
	}
	return true
}

func (s *shape) setProperties(v any) bool {
	m, ok := v.(map[string]any)
	if !ok || len(m) > maxProperties {
		return false
	}
	for name, sub := range m {
		p := property{name, shapeOf(sub, false)}
		if p.shape == nil {
			return false
		}
		s.properties = append(s.properties, p)
	}
	return true
}

var plain = regexp.MustCompile(`^[ !#-\[\]-~]*$`)

func (s *shape) setEnum(v any) bool {
	list, ok := v.([]any)
	for _, e := range list {
		str, isString := e.(string)
		if !isString || !plain.MatchString(str) {
			return false // may be written in several ways
		}
		s.enum = append(s.enum, []byte(str))
	}
	return ok && len(list) > 0
}

// accepts reports whether text is certainly a value of this shape, strictly
// written.
func (s *shape) accepts(text []byte) bool {
	p := &parser{text: text, depth: MaxInstanceDepth}
	p.space()
	if !s.value(p) {
		return false
	}
	p.space()
	return p.i == len(text) && utf8.Valid(text)
}

func (s *shape) value(p *parser) bool {
	if p.i == len(p.text) {
		return false
	}
	if s.enum != nil && p.text[p.i] != '"' {
		return false
	}
	switch c := p.text[p.i]; c {
	case '{':
		return s.types&typeObject != 0 && s.object(p)
	case '[':
		return s.types&typeArray != 0 && s.array(p)
	case '"':
		return s.types&typeString != 0 && s.str(p)
	case 't':
		return s.types&typeBoolean != 0 && p.literal("true")
	case 'f':
		return s.types&typeBoolean != 0 && p.literal("false")
	case 'n':
		return s.types&typeNull != 0 && p.literal("null")
	}
	return s.number(p)
}

func (s *shape) object(p *parser) bool {
	var seen uint64
	p.i++
	p.space()
	for first := true; !p.take('}'); first = false {
		if !first {
			if !p.take(',') {
				return false
			}
			p.space()
		}
		name, ok := p.plainString()
		if !ok {
			return false
		}
		i := s.index(name)
		if i < 0 || seen&(1<<i) != 0 {
			return false
		}
		seen |= 1 << i
		if p.space(); !p.take(':') {
			return false
		}
		p.space()
		if !s.properties[i].shape.value(p) {
			return false
		}
		p.space()
	}
	return seen&s.required == s.required
}

// index finds the property called name.
func (s *shape) index(name []byte) int {
	for i := range s.properties {
		if s.properties[i].name == string(name) {
			return i
		}
	}
	return -1
}

// array is not recursive in the value: the shape is as deep as its schema.
func (s *shape) array(p *parser) bool {
	if s.items == nil {
		return false
	}
	n := 0
	p.i++
	p.space()
	for ; !p.take(']'); n++ {
		if n > 0 {
			if !p.take(',') {
				return false
			}
			p.space()
		}
		if !s.items.value(p) {
			return false
		}
		p.space()
	}
	return n >= s.minItems && n <= s.maxItems
}

// plainString reads a string without escapes.
func (p *parser) plainString() ([]byte, bool) {
	if !p.take('"') {
		return nil, false
	}
	start := p.i
	for ; p.i < len(p.text); p.i++ {
		switch c := p.text[p.i]; {
		case c == '"':
			p.i++
			return p.text[start : p.i-1], true
		case c == '\\' || c < ' ':
			return nil, false
		}
	}
	return nil, false
}

func (s *shape) str(p *parser) bool {
	start := p.i + 1
	runes, ok := p.skipString()
	if !ok || runes < s.minLength || runes > s.maxLength {
		return false
	}
	text := p.text[start : p.i-1] // if there are escapes in it, it is no value of the list
	return s.enum == nil || slices.ContainsFunc(s.enum, func(e []byte) bool { return bytes.Equal(e, text) })
}

// skipString skips a string and counts its characters.
func (p *parser) skipString() (runes int, ok bool) {
	for p.i++; p.i < len(p.text); {
		c := p.text[p.i]
		p.i++
		switch {
		case c == '"':
			return runes, true
		case c < ' ':
			return 0, false
		case c >= 0x80 && c < 0xc0: // goes with the byte before
			continue
		case c == '\\' && !p.skipEscape():
			return 0, false
		}
		runes++
	}
	return 0, false
}

// skipEscape skips what follows a backslash.
func (p *parser) skipEscape() bool {
	if p.i == len(p.text) {
		return false
	}
	c := p.text[p.i]
	p.i++
	if c == 'u' {
		_, err := p.unicode()
		return err == nil
	}
	return bytes.IndexByte([]byte(`"\/bfnrt`), c) >= 0
}

// number accepts numbers of ordinary size.
func (s *shape) number(p *parser) bool {
	if s.types&(typeNumber|typeInteger) == 0 {
		return false
	}
	start := p.i
	if !p.skipNumber() || p.i-start > 18 {
		return false
	}
	text := p.text[start:p.i]
	var n int64
	whole := true
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n = n*10 + int64(c-'0')
		} else if c != '-' {
			whole = false
		}
	}
	if !whole {
		return s.types&typeNumber != 0 && !s.bounded && !bytes.ContainsAny(text, "eE")
	}
	if text[0] == '-' {
		n = -n
	}
	return !s.bounded || n >= s.min && n <= s.max
}
