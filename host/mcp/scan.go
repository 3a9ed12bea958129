package mcp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// A raw is a JSON value as it stood in the line; nil if it was absent.
type raw = json.RawMessage

// maxDepth bounds the nesting of a message, as the SDK does.
const maxDepth = 1000

// A message is one JSON-RPC message, picked apart in one pass. Its slices
// alias the line. Members that are not named here are checked for syntax only.
type message struct {
	envelope envelope
	params   params
	meta     meta
}

type envelope struct{ version, id, method, params, result, err raw }

type params struct{ name, arguments, meta, cursor, requestID, responses, state raw }

type meta struct{ token, version, client, abilities, level, trace, narrow raw }

// sink says where a scanner keeps the members of an object.
type sink interface {
	// member returns the place for the value of a member, nil if it is not
	// wanted, and the sink for the members of that value, or nil.
	member(key []byte) (*raw, sink)
}

func (m *message) member(key []byte) (*raw, sink) {
	e := &m.envelope
	switch string(key) {
	case "jsonrpc":
		return &e.version, nil
	case "id":
		return &e.id, nil
	case "method":
		return &e.method, nil
	case "params":
		return &e.params, paramsSink{m}
	case "result":
		return &e.result, nil
	case "error":
		return &e.err, nil
	}
	return nil, nil
}

type paramsSink struct{ m *message }

func (s paramsSink) member(key []byte) (*raw, sink) {
	p := &s.m.params
	switch string(key) {
	case "name":
		return &p.name, nil
	case "arguments":
		return &p.arguments, nil
	case "_meta":
		return &p.meta, &s.m.meta
	case "cursor":
		return &p.cursor, nil
	case "requestId":
		return &p.requestID, nil
	case "inputResponses":
		return &p.responses, nil
	case "requestState":
		return &p.state, nil
	}
	return nil, nil
}

func (m *meta) member(key []byte) (*raw, sink) {
	switch string(key) {
	case "progressToken":
		return &m.token, nil
	case metaVersion:
		return &m.version, nil
	case metaClient:
		return &m.client, nil
	case metaAbilities:
		return &m.abilities, nil
	case metaLevel:
		return &m.level, nil
	case "traceparent":
		return &m.trace, nil
	case "skill/narrow":
		return &m.narrow, nil
	}
	return nil, nil
}

// parse reads line into m. It is strict: JSON in UTF-8, no member of the
// envelope, of params or of _meta that matters twice. On a fault m still holds
// the id if that much was certain.
func parse(line []byte, m *message) *fault {
	s := scanner{b: line}
	if !s.whole(m) {
		*m = message{}
		return s.fault()
	}
	e := &m.envelope
	switch {
	case s.dup != "":
		*m = message{}
		return &fault{code: codeInvalidRequest, message: "invalid request", details: "member " + s.dup + " occurs twice"}
	case s.first() != '{':
		return &fault{code: codeInvalidRequest, message: "invalid request", details: "not an object"}
	case e.id != nil && e.id[0] != '"' && e.id[0] != '-' && (e.id[0] < '0' || e.id[0] > '9'):
		answer := e.method == nil && (e.result != nil || e.err != nil)
		e.id = nil
		if !answer { // an error answer may carry a null id
			return &fault{code: codeInvalidRequest, message: "invalid request", details: "id is neither a string nor a number"}
		}
	}
	if v, _ := text(e.version); v != "2.0" {
		return &fault{code: codeInvalidRequest, message: "invalid request", details: `jsonrpc is not "2.0"`}
	}
	if e.method == nil && e.result == nil && e.err == nil {
		return &fault{code: codeInvalidRequest, message: "invalid request", details: "no method"}
	}
	if e.method != nil && e.method[0] != '"' {
		return &fault{code: codeInvalidRequest, message: "invalid request", details: "method is not a string"}
	}
	return nil
}

// elements splits a line that holds an array into its elements.
func elements(line []byte) ([]raw, *fault) {
	s := scanner{b: line}
	s.list = new([]raw)
	if !s.whole(nil) {
		return nil, s.fault()
	}
	return *s.list, nil
}

// text returns the value of a JSON string.
func text(v raw) (string, bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), true
	}
	var s string
	err := json.Unmarshal(v, &s)
	return s, err == nil
}

// isNull reports whether v is absent or null.
func isNull(v raw) bool { return v == nil || v[0] == 'n' }

// isObject reports whether v is an object.
func isObject(v raw) bool { return v != nil && v[0] == '{' }

// A scanner checks a JSON text and keeps the values that a sink wants.
type scanner struct {
	b    []byte
	i    int
	dup  string // a wanted member that occurred twice
	deep bool
	list *[]raw // if not nil: the elements of the outermost array
}

func (s *scanner) fault() *fault {
	f := &fault{code: codeParse, message: "parse error", details: "not JSON in UTF-8"}
	if s.deep {
		f.details = "nested too deep"
	}
	return f
}

func (s *scanner) first() byte {
	return bytes.TrimLeft(s.b, " \t\r\n")[0]
}

// whole scans one value and nothing else.
func (s *scanner) whole(into sink) bool {
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

func (s *scanner) value(depth int, into sink) bool {
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

func (s *scanner) object(depth int, into sink) bool {
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
		var place *raw
		var inner sink
		key := s.b[from:s.i]
		if into != nil {
			place, inner = into.member(name(key))
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
	t, _ := text(key)
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
