// Package wire knows bytes and JSON-RPC: it cuts a stream into lines, picks a
// message apart in one pass and without a copy, appends JSON to buffers, and
// writes the lines of many senders in few writes.
//
// It does not know MCP: no method, no session, no result, and nothing of who
// answers a request.
package wire

import (
	"bytes"
	"encoding/json"
)

// An Envelope is one JSON-RPC message, picked apart. What was absent is nil;
// the rest aliases the line.
type Envelope struct {
	Version, ID, Method, Params, Result, Err json.RawMessage

	params Sink // for the members of Params, while the line is parsed
}

// root says where the members of a message go.
type root Envelope

// Member keeps what JSON-RPC defines.
func (e *root) Member(key []byte) (*json.RawMessage, Sink) {
	switch string(key) {
	case "jsonrpc":
		return &e.Version, nil
	case "id":
		return &e.ID, nil
	case "method":
		return &e.Method, nil
	case "params":
		return &e.Params, e.params
	case "result":
		return &e.Result, nil
	case "error":
		return &e.Err, nil
	}
	return nil, nil
}

// Parse reads line into e, and the members of its params into params. It is
// strict: JSON in UTF-8, and no member twice that e or a Sink keeps; the rest
// is checked for syntax only. A Fault has code -32700 or CodeInvalidRequest; then
// e still holds the id if that much was certain.
func Parse(line []byte, e *Envelope, params Sink) *Fault {
	*e = Envelope{params: params}
	s := scanner{b: line}
	whole := s.whole((*root)(e))
	e.params = nil
	if !whole {
		*e = Envelope{}
		return s.fault()
	}
	switch {
	case s.dup != "":
		*e = Envelope{}
		return BadRequest("member " + s.dup + " occurs twice")
	case s.first() != '{':
		return BadRequest("not an object")
	case e.ID != nil && e.ID[0] != '"' && e.ID[0] != '-' && (e.ID[0] < '0' || e.ID[0] > '9'):
		answer := e.Method == nil && (e.Result != nil || e.Err != nil)
		e.ID = nil
		if !answer { // an error answer may carry a null id
			return BadRequest("id is neither a string nor a number")
		}
	}
	if v, _ := Text(e.Version); v != "2.0" {
		return BadRequest(`jsonrpc is not "2.0"`)
	}
	if e.Method == nil && e.Result == nil && e.Err == nil {
		return BadRequest("no method")
	}
	if e.Method != nil && e.Method[0] != '"' {
		return BadRequest("method is not a string")
	}
	return nil
}

// Elements splits a line that holds an array into its elements, which alias
// it. A Fault has code -32700.
func Elements(line []byte) ([]json.RawMessage, *Fault) {
	s := scanner{b: line, list: new([]json.RawMessage)}
	if !s.whole(nil) {
		return nil, s.fault()
	}
	return *s.list, nil
}

// IDKey returns the form under which an id is compared.
func IDKey(id json.RawMessage) string {
	if id[0] == '"' && bytes.IndexByte(id, '\\') >= 0 {
		if t, ok := Text(id); ok {
			return `"` + t + `"`
		}
	}
	return string(id)
}

// Text returns the value of a JSON string.
func Text(v json.RawMessage) (string, bool) {
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

// IsNull reports whether v is absent or null.
func IsNull(v json.RawMessage) bool { return v == nil || v[0] == 'n' }

// IsObject reports whether v is an object.
func IsObject(v json.RawMessage) bool { return v != nil && v[0] == '{' }
