package page

import "bytes"

type tokenKind byte

const (
	tokenEnd tokenKind = iota
	tokenOpen
	tokenClose
	tokenText
)

// What matters of an element, by its name.
type traits byte

const (
	raw        traits = 1 << iota // what is inside is no markup
	void                          // there is nothing inside
	inline                        // it does not keep words apart
	selfEnding                    // it ends when another of its kind begins
)

// A scanner splits a page into tokens, in one pass: every byte is looked at a
// bounded number of times. The token that next found is in its fields; the
// slices are parts of the page.
type scanner struct {
	text []byte
	at   int

	name   []byte // of a tag, in lower case
	traits traits // of that name
	attrs  []byte // of an opening tag, not looked at
	void   bool   // the tag ends itself, "<x/>"
	data   []byte // a text with its character references
	isRaw  bool   // the text is a script, a style or a title

	rawName []byte // the element whose raw text follows

	only *names // the names that count
	all  bool   // all tags and texts count
	flat bool   // else, neither do end tags
}

func (s *scanner) next() tokenKind {
	if s.rawName != nil {
		name := s.rawName
		s.rawName = nil
		if s.rawText(name); len(s.data) > 0 && s.all {
			return tokenText
		}
	}
	for s.at < len(s.text) {
		if !s.all { // what is between tags is nobody's
			n := bytes.IndexByte(s.text[s.at:], '<')
			if n < 0 {
				break
			}
			s.at += n
		}
		rest := s.text[s.at:]
		if rest[0] != '<' || len(rest) < 2 {
			s.plain(rest)
			if s.all {
				return tokenText
			}
			continue
		}
		switch c := rest[1]; {
		case isLetter(c):
			if !s.all && !s.only.first[c|0x20] {
				s.at += 2
			} else if s.opening(rest) {
				return tokenOpen
			}
		case c == '/' && s.flat && !s.all:
			s.at += 2
		case c == '/' && len(rest) > 2 && isLetter(rest[2]):
			if s.closing(rest) {
				return tokenClose
			}
		case c == '!' || c == '?' || c == '/':
			if s.markup(rest) && s.all {
				return tokenText
			}
		default:
			if s.plain(rest); s.all {
				return tokenText
			}
		}
	}
	s.at = len(s.text)
	return tokenEnd
}

// plain is the text up to the next tag.
func (s *scanner) plain(rest []byte) {
	n := bytes.IndexByte(rest[1:], '<') + 1
	if n == 0 {
		n = len(rest)
	}
	s.at += n
	s.data, s.isRaw = rest[:n], false
}

// rawText is everything up to the end tag of name.
func (s *scanner) rawText(name []byte) {
	rest := s.text[s.at:]
	s.isRaw = true
	for n := 0; ; n++ {
		i := bytes.IndexByte(rest[n:], '<')
		if i < 0 {
			s.at, s.data = len(s.text), rest
			return
		}
		n += i
		after := rest[n+1:]
		if len(after) <= len(name) || after[0] != '/' || !equalFold(after[1:1+len(name)], name) {
			continue
		}
		if after = after[1+len(name):]; len(after) == 0 || !isName(after[0]) {
			s.at += n
			s.data = rest[:n]
			return
		}
	}
}

// markup skips comments, declarations and instructions. A CDATA section is a
// text, which it reports.
func (s *scanner) markup(rest []byte) bool {
	skip := func(from int, until string) int {
		if i := bytes.Index(rest[min(from, len(rest)):], []byte(until)); i >= 0 {
			return min(from, len(rest)) + i + len(until)
		}
		return len(rest)
	}
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		s.at += skip(4, "-->")
	case bytes.HasPrefix(rest, []byte("<![CDATA[")):
		n := skip(9, "]]>")
		s.at += n
		s.data, s.isRaw = bytes.TrimSuffix(rest[9:n], []byte("]]>")), false
		return len(s.data) > 0
	default:
		s.at += skip(2, ">")
	}
	return false
}

// opening reads an opening tag, and reports whether it counts. Of one that does
// not, the attributes are not read: only what they may hide is lost.
func (s *scanner) opening(rest []byte) bool {
	n := s.tagName(rest, 1)
	known, is := s.only.find(s.name)
	if !known && !s.all && is&raw == 0 {
		s.at += n
		return false
	}
	end := tagEnd(rest, n)
	s.at += min(end+1, len(rest))
	s.void = end > n && rest[end-1] == '/'
	if is&raw != 0 && !s.void {
		if !known && !s.all {
			s.rawText(s.name)
			return false
		}
		s.rawName = s.name
	}
	s.attrs, s.traits = rest[n:end], is
	if s.void {
		s.attrs = rest[n : end-1]
	}
	return known || s.all
}

// closing reads an end tag, and reports whether it counts.
func (s *scanner) closing(rest []byte) bool {
	n := s.tagName(rest, 2)
	end := n
	if n >= len(rest) || rest[n] != '>' {
		end = tagEnd(rest, n)
	}
	s.at += min(end+1, len(rest))
	var known bool
	known, s.traits = s.only.find(s.name)
	return known || s.all
}

// tagName reads the name that begins at n, and returns where it ends.
func (s *scanner) tagName(rest []byte, n int) int {
	begin, upper := n, false
	for n < len(rest) {
		c := rest[n]
		if !isName(c) {
			break
		}
		upper = upper || 'A' <= c && c <= 'Z'
		n++
	}
	s.name = rest[begin:n]
	if upper {
		s.name = bytes.ToLower(s.name)
	}
	return n
}

// tagEnd is the index of the ">" that ends a tag, which may have others in
// quotes, or len(rest).
func tagEnd(rest []byte, n int) int {
	for ; n < len(rest); n++ {
		c := rest[n]
		if c == '>' {
			return n
		}
		if c != '"' && c != '\'' || rest[n-1] != '=' && !isSpace(rest[n-1]) {
			continue // no value begins here
		}
		i := bytes.IndexByte(rest[n+1:], c)
		if i < 0 {
			return len(rest)
		}
		n += i + 1
	}
	return n
}

// attr returns the value of an attribute, with its character references.
func attr(attrs []byte, name string) (value []byte, ok bool) {
	value, _ = attr2(attrs, name, "")
	return value, value != nil
}

// attr2 returns the values of two attributes, nil of one that is not there.
func attr2(attrs []byte, name, other string) (value, otherValue []byte) {
	for i := 0; i < len(attrs); {
		for i < len(attrs) && (isSpace(attrs[i]) || attrs[i] == '/') {
			i++
		}
		begin := i
		for i < len(attrs) && attrs[i] != '=' && !isSpace(attrs[i]) && attrs[i] != '/' {
			i++
		}
		key := attrs[begin:i]
		for i < len(attrs) && isSpace(attrs[i]) {
			i++
		}
		v := attrs[:0]
		if i < len(attrs) && attrs[i] == '=' {
			v, i = attrValue(attrs, i+1)
		} else if i == begin {
			i++ // nothing that an attribute begins with
		}
		switch {
		case value == nil && len(key) == len(name) && equalFold(key, []byte(name)):
			value = v
		case otherValue == nil && len(key) == len(other) && equalFold(key, []byte(other)):
			otherValue = v
		default:
			continue
		}
		if value != nil && (otherValue != nil || other == "") {
			break
		}
	}
	return value, otherValue
}

// attrValue reads the value that begins at i, and returns where it ends.
func attrValue(attrs []byte, i int) (value []byte, end int) {
	for i < len(attrs) && isSpace(attrs[i]) {
		i++
	}
	if i == len(attrs) {
		return attrs[:0], i
	}
	if q := attrs[i]; q == '"' || q == '\'' {
		n := bytes.IndexByte(attrs[i+1:], q)
		if n < 0 {
			return attrs[i+1:], len(attrs)
		}
		return attrs[i+1 : i+1+n], i + n + 2
	}
	begin := i
	for i < len(attrs) && !isSpace(attrs[i]) {
		i++
	}
	return attrs[begin:i], i
}

// equalFold compares with a name in lower case of the same length.
func equalFold(b, lower []byte) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isName(c byte) bool { return c > ' ' && c != '>' && c != '/' && c != '<' }

func isSpace(c byte) bool {
	return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f')
}
