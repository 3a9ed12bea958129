package tomlfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A node is where one key, table or array element is written. Exactly one of
// the forms holds: a table (keys is not nil), an array (array is set) or a
// plain value.
type node struct {
	line   int
	end    int // the last line of the value, or of the header
	keys   map[string]*node
	order  []string // of keys, as written
	elems  []*node
	array  bool
	header bool // made by "[x]": a second "[x]" is a duplicate
	tables bool // an array made by "[[x]]": the next "[[x]]" appends
	inline bool // "{…}": complete where it stands
}

func newTable(line int) *node { return &node{line: line, keys: map[string]*node{}} }

func (n *node) add(key string, child *node) {
	n.keys[key] = child
	n.order = append(n.order, key)
}

// A scanner finds where keys and values are written. It accepts a superset of
// TOML, so that the decoder proper has the last word on what is valid, and it
// bounds depth and key length before the decoder sees the text.
type scanner struct {
	s    string
	i    int
	line int
}

// A scanError is a text that is no TOML whatever its details.
type scanError struct {
	line int
	what string
	dup  bool // a key or table was defined twice
}

func (e *scanError) Error() string { return e.what }

func (sc *scanner) fail(format string, args ...any) error {
	return &scanError{line: sc.line, what: fmt.Sprintf(format, args...)}
}

// scan returns the tree of positions of text.
func scan(text string) (*node, error) {
	sc := &scanner{s: strings.TrimPrefix(text, "\uFEFF"), line: 1}
	root := newTable(0)
	current, depth := root, 0
	for {
		sc.skipBlank(true)
		if sc.i == len(sc.s) {
			return root, nil
		}
		var err error
		if sc.s[sc.i] == '[' {
			current, depth, err = sc.tableHeader(root)
		} else {
			err = sc.keyValue(current, depth)
		}
		if err != nil {
			return nil, err
		}
		sc.skipBlank(false)
		if sc.i < len(sc.s) && sc.s[sc.i] != '\n' {
			return nil, sc.fail("want the end of the line, found %s", sc.found())
		}
	}
}

// skipBlank skips spaces and a comment, and newlines with what follows them if
// lines is set.
func (sc *scanner) skipBlank(lines bool) {
	for ; sc.i < len(sc.s); sc.i++ {
		switch c := sc.s[sc.i]; {
		case c == ' ' || c == '\t' || c == '\r':
		case c == '\n' && lines:
			sc.line++
		case c == '#':
			for sc.i+1 < len(sc.s) && sc.s[sc.i+1] != '\n' {
				sc.i++
			}
		default:
			return
		}
	}
}

// found describes what stands at the scanner, for messages.
func (sc *scanner) found() string {
	if sc.i >= len(sc.s) {
		return "the end of the file"
	}
	if sc.s[sc.i] == '\n' {
		return "the end of the line"
	}
	r, _ := utf8.DecodeRuneInString(sc.s[sc.i:])
	return strconv.QuoteRune(r)
}

func (sc *scanner) at(c byte) bool { return sc.i < len(sc.s) && sc.s[sc.i] == c }

// tableHeader reads "[a.b]" or "[[a.b]]" and returns the table it opens.
func (sc *scanner) tableHeader(root *node) (*node, int, error) {
	sc.i++
	double := sc.at('[')
	if double {
		sc.i++
	}
	path, err := sc.key()
	if err != nil {
		return nil, 0, err
	}
	end := "]"
	if double {
		end = "]]"
	}
	if !strings.HasPrefix(sc.s[sc.i:], end) {
		return nil, 0, sc.fail("want %q after a table's name, found %s", end, sc.found())
	}
	sc.i += len(end)
	last := len(path) - 1
	parent, err := sc.descend(root, path[:last])
	if err != nil {
		return nil, 0, err
	}
	table := newTable(sc.line)
	table.header, table.end = true, sc.line
	old := parent.keys[path[last]]
	switch {
	case double && old == nil:
		parent.add(path[last], &node{line: sc.line, array: true, tables: true, elems: []*node{table}})
	case double && old.tables:
		old.elems = append(old.elems, table)
	case double:
		return nil, 0, sc.duplicate(path[last], old)
	case old == nil:
		parent.add(path[last], table)
	case old.keys == nil || old.header || old.inline:
		return nil, 0, sc.duplicate(path[last], old)
	default: // implied by an earlier "[x.y]"
		old.line, old.end, old.header = sc.line, sc.line, true
		table = old
	}
	return table, len(path), nil
}

func (sc *scanner) duplicate(key string, old *node) error {
	return &scanError{line: sc.line, what: fmt.Sprintf("duplicate key %q: it is already defined on line %d", key, old.line), dup: true}
}

// descend follows path from t, making the tables that do not exist yet.
func (sc *scanner) descend(t *node, path []string) (*node, error) {
	for _, k := range path {
		next := t.keys[k]
		if next == nil {
			next = newTable(sc.line)
			t.add(k, next)
		}
		if next.tables {
			next = next.elems[len(next.elems)-1]
		}
		if next.keys == nil || next.inline {
			return nil, &scanError{line: sc.line, dup: true,
				what: fmt.Sprintf("%q on line %d is a complete value: nothing can be added to it", k, next.line)}
		}
		t = next
	}
	return t, nil
}

// keyValue reads "a.b = value" into t, which lies at the given depth.
func (sc *scanner) keyValue(t *node, depth int) error {
	path, err := sc.key()
	if err != nil {
		return err
	}
	if !sc.at('=') {
		return sc.fail("want %q after the key %q, found %s", "=", strings.Join(path, "."), sc.found())
	}
	sc.i++
	last := len(path) - 1
	if t, err = sc.descend(t, path[:last]); err != nil {
		return err
	}
	if old := t.keys[path[last]]; old != nil {
		return sc.duplicate(path[last], old)
	}
	line := sc.line
	v, err := sc.value(depth + len(path))
	if err != nil {
		return err
	}
	v.line, v.end = line, sc.line
	t.add(path[last], v)
	return nil
}

// key reads a key with its dots and the blanks around it.
func (sc *scanner) key() ([]string, error) {
	var path []string
	for {
		sc.skipSpaces()
		k, err := sc.keyPart()
		if err != nil {
			return nil, err
		}
		if len(k) > MaxKey {
			return nil, sc.fail("a key is longer than %d bytes", MaxKey)
		}
		if path = append(path, k); len(path) > MaxDepth {
			return nil, sc.fail("keys are nested more than %d deep", MaxDepth)
		}
		sc.skipSpaces()
		if !sc.at('.') {
			return path, nil
		}
		sc.i++
	}
}

func (sc *scanner) skipSpaces() {
	for sc.at(' ') || sc.at('\t') {
		sc.i++
	}
}

func (sc *scanner) keyPart() (string, error) {
	start := sc.i
	if sc.at('"') || sc.at('\'') {
		quote := sc.s[sc.i]
		if err := sc.line1String(quote); err != nil {
			return "", err
		}
		body := sc.s[start+1 : sc.i-1]
		if quote == '\'' {
			return body, nil
		}
		k, ok := unescape(body)
		if !ok {
			return "", sc.fail("bad escape in the key %s", strconv.Quote(body))
		}
		return k, nil
	}
	for sc.i < len(sc.s) && strings.IndexByte(".=[]{}\"'#, \t\r\n", sc.s[sc.i]) < 0 {
		sc.i++
	}
	if sc.i == start {
		return "", sc.fail("want a key, found %s", sc.found())
	}
	return sc.s[start:sc.i], nil
}

// line1String skips a string on one line, quotes included.
func (sc *scanner) line1String(quote byte) error {
	for sc.i++; sc.i < len(sc.s); sc.i++ {
		switch c := sc.s[sc.i]; {
		case c == quote:
			sc.i++
			return nil
		case c == '\n':
			return sc.fail("a string does not end on its line")
		case c == '\\' && quote == '"':
			sc.i++
			if sc.at('\n') {
				return sc.fail("a string does not end on its line")
			}
		}
	}
	return sc.fail("a string does not end")
}

// longString skips a """ or ”' string, whose opening quotes are at hand.
func (sc *scanner) longString(quote byte) error {
	start := sc.line
	end := strings.Repeat(string(quote), 3)
	for sc.i += 3; sc.i < len(sc.s); sc.i++ {
		switch c := sc.s[sc.i]; {
		case c == '\n':
			sc.line++
		case c == '\\' && quote == '"':
			sc.i++
			if sc.at('\n') {
				sc.line++
			}
		case strings.HasPrefix(sc.s[sc.i:], end):
			sc.i += 3
			for n := 0; n < 2 && sc.at(quote); n++ { // quotes just inside the end
				sc.i++
			}
			return nil
		}
	}
	return &scanError{line: start, what: fmt.Sprintf("the string that starts with %s does not end", end)}
}

// value reads a value at the given depth; its line is where it starts.
func (sc *scanner) value(depth int) (*node, error) {
	if depth > MaxDepth {
		return nil, sc.fail("values are nested more than %d deep", MaxDepth)
	}
	sc.skipSpaces()
	line := sc.line
	if sc.i == len(sc.s) {
		return nil, sc.fail("want a value, found the end of the file")
	}
	var err error
	switch c := sc.s[sc.i]; c {
	case '[':
		return sc.arrayValue(depth)
	case '{':
		return sc.inlineTable(depth)
	case '"', '\'':
		if strings.HasPrefix(sc.s[sc.i:], strings.Repeat(string(c), 3)) {
			err = sc.longString(c)
		} else {
			err = sc.line1String(c)
		}
	default:
		start := sc.i
		for sc.i < len(sc.s) && strings.IndexByte(",]}#\r\n", sc.s[sc.i]) < 0 {
			sc.i++
		}
		if sc.i == start {
			err = sc.fail("want a value, found %s", sc.found())
		}
	}
	return &node{line: line}, err
}

func (sc *scanner) arrayValue(depth int) (*node, error) {
	a := &node{line: sc.line, array: true}
	sc.i++
	for {
		sc.skipBlank(true)
		if sc.at(']') {
			sc.i++
			return a, nil
		}
		v, err := sc.value(depth + 1)
		if err != nil {
			return nil, err
		}
		a.elems = append(a.elems, v)
		sc.skipBlank(true)
		if sc.at(',') {
			sc.i++
		} else if !sc.at(']') {
			return nil, sc.fail("want %q or %q in the array that starts on line %d, found %s", ",", "]", a.line, sc.found())
		}
	}
}

func (sc *scanner) inlineTable(depth int) (*node, error) {
	t := newTable(sc.line)
	sc.i++
	for {
		sc.skipBlank(true)
		if sc.at('}') {
			sc.i++
			t.seal()
			return t, nil
		}
		if err := sc.keyValue(t, depth); err != nil {
			return nil, err
		}
		sc.skipBlank(true)
		if sc.at(',') {
			sc.i++
		} else if !sc.at('}') {
			return nil, sc.fail("want %q or %q in the table that starts on line %d, found %s", ",", "}", t.line, sc.found())
		}
	}
}

// seal marks an inline table and the tables that its dotted keys made.
func (n *node) seal() {
	n.inline = true
	for _, k := range n.keys {
		if k.keys != nil && !k.inline {
			k.seal()
		}
	}
}

// unescape reads the escapes of a basic string.
func unescape(s string) (string, bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		if j := strings.IndexByte(`btnfre"\`, s[i]); j >= 0 {
			b.WriteByte("\b\t\n\f\r\x1b\"\\"[j])
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		if digits == 0 || i+digits >= len(s) {
			return "", false
		}
		r, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
		if err != nil || r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
			return "", false
		}
		b.WriteRune(rune(r))
		i += digits
	}
	return b.String(), true
}
