// Package pluck takes the fields of results out of JSON that nobody vouches
// for, without decoding the rest of it: answers are mostly what nobody asked
// for. It does not know what the fields mean.
package pluck

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// A Path leads from a value to one inside of it: names of members, decimal
// indexes of lists, and "*" for every element of a list, whose texts are
// joined. "" is the value itself. "a.b|c" is the first of "a.b" and "c" that
// has a text.
type Path string

// A Rule says where results are in a document, and what to take from each.
type Rule struct {
	List   Path
	Fields []Path
}

// Bounds of what is looked at and kept.
const (
	maxItems = 64
	maxDepth = 64
	maxText  = 4 << 10 // bytes of one field
)

// ErrAbsent says that the list of results is not where the rule says, or is
// no list.
var ErrAbsent = errors.New("no list of results")

var errMalformed = errors.New("not JSON")

// Extract returns a text for each field of each result, "" if it has none.
// Numbers and booleans are texts as they are written. The error is ErrAbsent,
// or says that doc is not JSON.
func Extract(doc []byte, r *Rule) ([][]string, error) {
	doc = bytes.TrimSpace(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf")))
	list, err := find(doc, string(r.List))
	if err != nil {
		return nil, err
	}
	items, w, full := [][]string{}, wantedBy(r.Fields), false
	_, ok := elements(list, 0, func(i int) int {
		if len(items) == maxItems {
			full = true
			return -1
		}
		fields, end := w.take(list, i)
		if end >= 0 {
			items = append(items, fields)
		}
		return end
	})
	if !ok && !full {
		return nil, errMalformed
	}
	return items, nil
}

// find returns the list at path in doc, which has to be JSON to its end.
func find(doc []byte, path string) (list []byte, err error) {
	if path == "" {
		end, ok := skip(doc, 0)
		switch {
		case !ok || end != len(doc):
			return nil, errMalformed
		case doc[0] != '[':
			return nil, ErrAbsent
		}
		return doc, nil
	}
	if len(doc) == 0 || doc[0] != '{' {
		if end, ok := skip(doc, 0); !ok || end != len(doc) {
			return nil, errMalformed
		}
		return nil, ErrAbsent
	}
	name, rest, _ := strings.Cut(path, ".")
	var found []byte
	end, ok := members(doc, 0, func(key, value []byte) bool {
		if is(key, name) {
			found = value
		}
		return true
	})
	if !ok || end != len(doc) {
		return nil, errMalformed
	}
	if list = at(found, Path(rest)); len(list) == 0 || list[0] != '[' {
		return nil, ErrAbsent
	}
	return list, nil
}

// First returns the value that doc begins with, whatever follows it.
func First(doc []byte) (value []byte, ok bool) {
	i := blank(doc, 0)
	end, ok := skip(doc, i)
	if !ok {
		return nil, false
	}
	return doc[i:end], true
}

// List returns the elements of the list that path leads to.
func List(doc []byte, path Path) (all [][]byte, ok bool) {
	list := at(doc, path)
	if len(list) == 0 || list[0] != '[' {
		return nil, false
	}
	ok = each(list, func(value []byte) bool {
		all = append(all, value)
		return true
	})
	return all[:min(len(all), maxItems)], ok
}

// Has reports whether there is a value at path, which is not null.
func Has(doc []byte, path Path) bool { v := at(doc, path); return len(v) > 0 && v[0] != 'n' }

// wanted are the members of a result that the paths of its fields begin with,
// so that a result is read once for all of its fields.
type wanted struct {
	names  []string
	fields [][]start // for each field its alternatives
	values [][]byte  // of the members, of one result
	text   []byte    // of a field
}

// A start is a path that begins with the member names[name].
type start struct {
	name int
	rest string
}

func wantedBy(fields []Path) *wanted {
	w := &wanted{}
	for _, p := range fields {
		var all []start
		for one := range strings.SplitSeq(string(p), "|") {
			name, rest, _ := strings.Cut(one, ".")
			i := slices.Index(w.names, name)
			if i < 0 {
				i, w.names = len(w.names), append(w.names, name)
			}
			all = append(all, start{i, rest})
		}
		w.fields = append(w.fields, all)
	}
	w.values = make([][]byte, len(w.names))
	return w
}

// take returns the fields of the result that begins at i of doc, and where it
// ends, or -1.
func (w *wanted) take(doc []byte, i int) (fields []string, end int) {
	clear(w.values)
	if i < len(doc) && doc[i] == '{' {
		var ok bool
		if end, ok = members(doc, i, w.keep); !ok {
			return nil, -1
		}
	} else {
		var ok bool
		if end, ok = skip(doc, i); !ok {
			return nil, -1
		}
		for n, name := range w.names {
			w.values[n] = child(doc[i:end], name)
		}
	}
	fields = make([]string, len(w.fields))
	for i, all := range w.fields {
		for _, s := range all {
			if w.text = appendTexts(w.text[:0], w.values[s.name], s.rest, 0); len(w.text) > 0 {
				fields[i] = string(w.text)
				break
			}
		}
	}
	return fields, end
}

// keep keeps a member if it is wanted. Of members with the same name the last
// counts, as for encoding/json.
func (w *wanted) keep(key, value []byte) bool {
	for i, name := range w.names {
		if is(key, name) {
			w.values[i] = value
		}
	}
	return true
}

// Text returns the text at path in the value doc, "" if there is none.
func Text(doc []byte, path Path) string {
	for one := range strings.SplitSeq(string(path), "|") {
		if s := appendTexts(nil, doc, one, 0); len(s) > 0 {
			return string(s)
		}
	}
	return ""
}

// at returns the value that path, without "*" and "|", leads to; nil: none.
func at(doc []byte, path Path) []byte {
	for rest := string(path); rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, ".")
		if doc = child(doc, name); doc == nil {
			return nil
		}
	}
	return doc
}

// child returns the member or element called name; nil: there is none. Of
// members with the same name the last counts, as for encoding/json.
func child(doc []byte, name string) (found []byte) {
	switch {
	case len(doc) > 0 && doc[0] == '{':
		members(doc, 0, func(key, value []byte) bool {
			if is(key, name) {
				found = value
			}
			return true
		})
	case len(doc) > 0 && doc[0] == '[':
		n, ok := decimal(name)
		if !ok {
			return nil
		}
		each(doc, func(value []byte) bool {
			if n == 0 {
				found = value
			}
			n--
			return n >= 0
		})
	}
	return found
}

// appendTexts adds the text at path to dst.
func appendTexts(dst, doc []byte, path string, depth int) []byte {
	if depth > maxDepth || len(dst) >= maxText {
		return dst
	}
	if path == "" {
		return appendScalar(dst, doc)
	}
	name, rest, _ := strings.Cut(path, ".")
	if name == "*" {
		if len(doc) > 0 && doc[0] == '[' {
			each(doc, func(value []byte) bool {
				dst = appendTexts(dst, value, rest, depth+1)
				return len(dst) < maxText
			})
		}
		return dst
	}
	if doc = child(doc, name); doc == nil {
		return dst
	}
	return appendTexts(dst, doc, rest, depth+1)
}

// appendScalar adds the text of a value that is no list and no object.
func appendScalar(dst, value []byte) []byte {
	switch {
	case len(value) == 0 || value[0] == '{' || value[0] == '[' || value[0] == 'n':
		return dst
	case value[0] != '"':
		return append(dst, value[:min(len(value), maxText)]...)
	}
	text := value[1 : len(value)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		text = bytes.ToValidUTF8(text[:min(len(text), maxText)], []byte("\uFFFD"))
		return append(dst, text...)
	}
	var s string
	if json.Unmarshal(value, &s) != nil { // an escape that there is not
		return dst
	}
	return append(dst, s[:min(len(s), maxText)]...)
}

// is reports whether key, a JSON string, is name.
func is(key []byte, name string) bool {
	if len(key) == len(name)+2 {
		return string(key[1:len(key)-1]) == name
	}
	if bytes.IndexByte(key, '\\') < 0 {
		return false
	}
	var s string
	return json.Unmarshal(key, &s) == nil && s == name
}

func decimal(s string) (n int, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || n > 1<<20 {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}
