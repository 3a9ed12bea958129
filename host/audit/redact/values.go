package redact

import (
	"bytes"
	"encoding/json"
)

const (
	maxString = 256 // bytes of one value that are kept
	maxNumber = 64
)

// AppendValues appends raw, a JSON text, to dst as JSON without secrets: what
// stands under a Sensitive key is dropped, strings and names go through Text
// and are cut, and so is what comes after about max bytes. It always appends
// one valid JSON value. whole is false if raw was not copied to its end.
func (r Redactor) AppendValues(dst, raw []byte, max int) (_ []byte, whole bool) {
	v := valuer{scanner: scanner{b: raw}, r: r, dst: dst, limit: len(dst) + max}
	whole = v.value(0) && v.atEnd()
	return v.dst, whole
}

// A valuer copies a JSON text in one pass.
type valuer struct {
	scanner
	r     Redactor
	dst   []byte
	limit int
}

// value appends exactly one value; false means that nothing after it is
// understood or wanted.
func (v *valuer) value(depth int) bool {
	switch v.peek() {
	case '{', '[':
		if depth >= maxDepth {
			v.dst = append(v.dst, `"…"`...)
			return v.skip()
		}
		return v.container(depth)
	case '"':
		text, ok := v.text()
		v.dst = AppendQuoted(v.dst, v.r.Text(text, maxString), 2*maxString)
		return ok
	}
	word, ok := v.word()
	if !ok || len(word) > maxNumber || !json.Valid(word) {
		v.dst = append(v.dst, "null"...)
		return false
	}
	if !v.r.Clean(string(word)) {
		v.dst = append(v.dst, `"`+Mark+`"`...)
		return true
	}
	v.dst = append(v.dst, word...)
	return true
}

// container appends an object or an array, closed even where raw is not.
func (v *valuer) container(depth int) bool {
	closing := v.b[v.i] + 2 // of ASCII "{" and "["
	v.dst = append(v.dst, v.b[v.i])
	v.i++
	ok := true
	if v.peek() == closing {
		v.i++
	} else {
		ok = v.members(depth, closing)
	}
	v.dst = append(v.dst, closing)
	return ok
}

// members appends the members of a container up to its end.
func (v *valuer) members(depth int, closing byte) bool {
	for n := 0; ; n++ {
		if len(v.dst) > v.limit {
			return false
		}
		if n > 0 {
			v.dst = append(v.dst, ',')
		}
		var ok bool
		if closing == '}' {
			ok = v.member(depth)
		} else {
			ok = v.value(depth + 1)
		}
		if !ok {
			return false
		}
		switch v.peek() {
		case ',':
			v.i++
		case closing:
			v.i++
			return true
		default:
			return false
		}
	}
}

// member appends one name and its value.
func (v *valuer) member(depth int) bool {
	key, ok := "", false
	if v.peek() == '"' {
		key, ok = v.text()
	}
	v.dst = AppendQuoted(v.dst, v.r.Text(key, maxName), 2*maxName)
	v.dst = append(v.dst, ':')
	if !ok || v.peek() != ':' {
		v.dst = append(v.dst, "null"...)
		return false
	}
	v.i++
	if Sensitive(key) {
		v.dst = append(v.dst, `"`+Mark+`"`...)
		return v.skip()
	}
	return v.value(depth + 1)
}

// text returns the string at the cursor with its escapes undone, because a
// detector that sees "\u0073k-…" sees nothing.
func (v *valuer) text() (string, bool) {
	from := v.i
	raw, ok := v.str()
	if !ok {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	var s string
	err := json.Unmarshal(v.b[from:v.i], &s)
	return s, err == nil
}
