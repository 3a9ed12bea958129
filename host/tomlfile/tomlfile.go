// Package tomlfile reads the host's TOML files strictly: a key that nobody
// knows is an error, as is one of the wrong type, and every error says in
// which file and line it is and what would be right. It does not know what
// the files mean, and it opens none.
package tomlfile

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// Bounds of a file. They hold before the TOML decoder sees the text, because
// its time and stack grow with the depth and the length of keys.
const (
	MaxSize  = 1 << 20 // bytes
	MaxDepth = 64      // tables, arrays and dotted keys inside each other
	MaxKey   = 1 << 10 // bytes of one key
)

// A Doc remembers where the keys of a decoded file are written.
type Doc struct {
	file string
	root *node
}

// Decode decodes data into v, a pointer to a struct or a map. file is used in
// messages only.
//
// Keys go to the struct field of exactly that `toml` tag, or to the untagged
// exported field whose lower-case name they are; fields of embedded structs
// count as the outer struct's. Durations are strings such as "30s". A type
// with UnmarshalText takes strings, one with UnmarshalTOML(any) anything; both
// must have pointer receivers, and their errors are reported with the line.
//
// All errors are *sdk.Error of kind Invalid with "file:line" as the Op.
func Decode(file string, data []byte, v any) (*Doc, error) {
	d := &Doc{file: file, root: newTable(0)}
	if len(data) > MaxSize {
		return nil, d.invalid(0, fmt.Sprintf("the file has %d bytes", len(data)), fmt.Sprintf("at most %d are read", MaxSize))
	}
	text := string(data)
	if i := firstInvalid(text); i >= 0 {
		return nil, d.invalid(1+strings.Count(text[:i], "\n"), "the file is not UTF-8", "save it as UTF-8")
	}
	root, err := scan(text)
	if err != nil {
		var se *scanError
		errors.As(err, &se)
		return nil, d.invalid(se.line, se.what, "")
	}
	d.root = root
	tree, err := d.parse(text)
	if err != nil {
		return nil, err
	}
	if path, ok := agree(tree, root, nil); !ok {
		// Two readers of one text that see different things are how a
		// permission is smuggled past a reviewer.
		return nil, d.invalid(d.Pos(path...).Line, fmt.Sprintf("%q can be read in two ways", strings.Join(path, ".")), "write it as a plain table")
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return nil, &sdk.Error{Kind: sdk.Internal, Op: "tomlfile.Decode", What: fmt.Sprintf("cannot decode into %T: want a pointer", v)}
	}
	if err := (&decoder{d}).decode(nil, tree, root, rv.Elem()); err != nil {
		return nil, err
	}
	return d, nil
}

// parse runs the TOML decoder proper, whose word on syntax and values holds.
func (d *Doc) parse(text string) (tree map[string]any, err error) {
	defer func() {
		// The decoder panics on states it takes for impossible; the text is
		// a stranger's, so that must not end the host.
		if r := recover(); r != nil {
			tree, err = nil, d.invalid(0, fmt.Sprintf("not TOML: %v", r), "")
		}
	}()
	if _, err = toml.Decode(text, &tree); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, d.invalid(pe.Position.Line, strings.TrimSpace(pe.Message), "")
		}
		return nil, d.invalid(0, strings.TrimPrefix(err.Error(), "toml: "), "")
	}
	if tree == nil {
		tree = map[string]any{}
	}
	return tree, nil
}

// Pos returns where the value at path is written. Elements of arrays, of
// tables or of values, are named by their decimal index. If the path does not
// exist, Pos is that of the nearest enclosing key that does; the line is 0 if
// there is none.
func (d *Doc) Pos(path ...string) capability.Pos {
	p := capability.Pos{File: d.file}
	n := d.root
	for _, k := range path {
		if n.array {
			i, err := strconv.Atoi(k)
			if err != nil || i < 0 || i >= len(n.elems) {
				break
			}
			n = n.elems[i]
		} else if n = n.keys[k]; n == nil {
			break
		}
		p.Line = n.line
	}
	return p
}

// A Span is a run of lines, both ends included and 1-based.
type Span struct{ First, Last int }

// Spans returns the lines that say something of the value at path: all of it
// where it is one value, and for a table its headers and its keys, wherever
// they stand. Comments and empty lines between them belong to nothing.
func (d *Doc) Spans(path ...string) []Span {
	n := d.find(path)
	if n == nil {
		return nil
	}
	return n.spans(nil)
}

// Header returns the line of the header of the table at path, such as
// "[tools.greet]", or 0 if there is none: no such table, or it is written by
// other means.
func (d *Doc) Header(path ...string) int {
	if n := d.find(path); n != nil && n.header {
		return n.line
	}
	return 0
}

func (d *Doc) find(path []string) *node {
	n := d.root
	for _, k := range path {
		if n = n.keys[k]; n == nil {
			return nil
		}
	}
	return n
}

func (n *node) spans(list []Span) []Span {
	if n.end > 0 && (n.header || n.keys == nil || n.inline) && !n.tables {
		list = append(list, Span{n.line, n.end})
	}
	if n.inline || n.array && !n.tables {
		return list
	}
	for _, k := range n.order {
		list = n.keys[k].spans(list)
	}
	for _, e := range n.elems {
		list = e.spans(list)
	}
	return list
}

func (d *Doc) invalid(line int, what, hint string) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: capability.Pos{File: d.file, Line: line}.String(), What: what, Hint: hint}
}

// firstInvalid returns the index of the first byte that is not UTF-8, or -1.
func firstInvalid(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

// agree reports whether the decoder's tree and the scanner's have the same
// keys, and if not, at which path they differ.
func agree(tree any, n *node, path []string) ([]string, bool) {
	switch t := tree.(type) {
	case map[string]any:
		if n.keys == nil || len(n.keys) != len(t) {
			return path, false
		}
		for k, v := range t {
			at := append(path[:len(path):len(path)], k)
			if n.keys[k] == nil {
				return at, false
			}
			if p, ok := agree(v, n.keys[k], at); !ok {
				return p, false
			}
		}
		return nil, true
	case []map[string]any:
		if !n.array || len(n.elems) != len(t) {
			return path, false
		}
		for i := range t {
			if p, ok := agree(t[i], n.elems[i], append(path[:len(path):len(path)], strconv.Itoa(i))); !ok {
				return p, false
			}
		}
		return nil, true
	case []any:
		if !n.array || len(n.elems) != len(t) {
			return path, false
		}
		for i := range t {
			if p, ok := agree(t[i], n.elems[i], append(path[:len(path):len(path)], strconv.Itoa(i))); !ok {
				return p, false
			}
		}
		return nil, true
	}
	return path, n.keys == nil && !n.array
}
