// Package page pulls the fields of results out of HTML and XML that nobody
// vouches for. It reads the text once, from the front to the back, keeps no
// tree, and never fails: of a page that is no page it finds nothing. It does
// not know what the fields mean.
package page

import (
	"bytes"
	"strings"
)

// A Rule says where results are on a page, and what to take from each. It is
// made by NewRule and not changed afterwards.
type Rule struct {
	region Selector // the element that holds the results
	item   Selector // one result; a new one ends the one before
	fields []Field
	names  *names // that count in the region
	marks  []Selector
	looked *names // that count when marks are looked for
}

// A Field is one text to take from a result: that of the first element which
// fits, or one of its attributes.
type Field struct {
	Of   Selector // inside of the result
	Attr string   // "" takes the text
	Not  Selector // elements whose text is left out; may be nil
}

// NewRule returns a Rule. The region is one element with an id, a class or at
// least a name; the item and the marks, too, name elements in their last steps.
func NewRule(region, item Selector, fields []Field, marks ...Selector) *Rule {
	r := &Rule{region: region, item: item, fields: fields, marks: marks}
	name := func(s Selector) string {
		if len(s) != 1 || s[0].tag == "" {
			panic("page.NewRule: want one step with a name")
		}
		return s[0].tag
	}
	r.names = newNames(name(region), name(item))
	var looked []string
	for _, m := range marks {
		looked = append(looked, name(m))
	}
	r.looked = newNames(looked...)
	return r
}

// Bounds of what is kept.
const (
	maxItems = 64
	maxText  = 4 << 10 // bytes of one field
	maxDepth = 128     // elements inside of each other
	maxClose = 64      // elements that one end tag may close
	maxToken = 200_000 // tags and texts of one page
	maxValue = 512     // bytes of a class or id
)

// Extract returns for each result of body a text for each field of r, "" if it
// has none.
func Extract(body []byte, r *Rule) [][]string {
	x := extractor{rule: r, item: -1, taking: make([]capture, len(r.fields))}
	for at := 0; ; {
		n := r.find(body, at)
		if n < 0 {
			return nil
		}
		s := scanner{text: body, at: n, only: r.names}
		if x.read(&s); len(x.items) > 0 {
			return x.items
		}
		at = max(s.at, n+1)
	}
}

// Marks says which marks of r are on a page, wherever.
func Marks(body []byte, r *Rule) []bool {
	found := make([]bool, len(r.marks))
	s := scanner{text: body, only: r.looked, flat: true}
	for range maxToken {
		switch s.next() {
		case tokenEnd:
			return found
		case tokenOpen:
			stack := []element{{name: s.name, attrs: s.attrs}}
			for i, m := range r.marks {
				found[i] = found[i] || m.may(s.name, s.attrs) && m.fits(stack, 0)
			}
		}
	}
	return found
}

// find returns where the first element from at on begins that is the region,
// or -1. Nothing before it is read: only what the region has to have is looked
// for. So what a script says of such an element may pass for one; it has no
// results then.
func (r *Rule) find(body []byte, at int) int {
	needle := r.region[0].needle()
	tried := -1
	for {
		n := Index(body[at:], needle)
		if n < 0 {
			return -1
		}
		n += at
		at = n + len(needle)
		begin := n
		if needle[0] != '<' {
			from := max(0, n-maxTag)
			begin = from + bytes.LastIndexByte(body[from:n], '<')
			if begin < from {
				continue
			}
		}
		if begin == tried {
			continue
		}
		tried = begin
		tag := body[begin:min(len(body), n+maxTag)]
		s := scanner{text: tag, only: r.names}
		if len(tag) > 1 && isLetter(tag[1]) && s.opening(tag) && s.at > n-begin && r.region.fits([]element{{name: s.name, attrs: s.attrs}}, 0) {
			return begin
		}
	}
}

// maxTag is how far before and behind its id or class the tag of a region may
// reach, in bytes.
const maxTag = 512

// An element is an open one.
type element struct {
	name      []byte // in lower case
	attrs     []byte
	class, id []byte
	known     bool // class and id are those of attrs
}

// look finds class and id, once: an element is asked for by all that is in it.
func (e *element) look() {
	e.known = true
	if len(e.attrs) > 0 {
		class, id := attr2(e.attrs, "class", "id")
		e.class, e.id = clip(class, maxValue), clip(id, maxValue)
	}
}

// A capture is a field of the result that is being read.
type capture struct {
	text  []byte
	depth int  // of the element whose text is taken, 1 for the outermost; 0: none
	done  bool // there is one already
	not   int  // depth of an element that is left out; 0: none
}

type extractor struct {
	rule   *Rule
	items  [][]string
	stack  []element
	item   int // index in stack of the result's element, -1: none is open
	taking []capture
}

// read reads one region, to its end.
func (x *extractor) read(s *scanner) {
	x.stack = make([]element, 0, maxDepth)
	for i := range maxToken {
		s.all = x.item >= 0
		switch s.next() {
		case tokenEnd:
			x.endItem()
			return
		case tokenOpen:
			x.open(s)
		case tokenClose:
			x.close(s)
		case tokenText:
			if x.item >= 0 {
				x.take(s)
			}
		}
		if i > 0 && len(x.stack) == 0 {
			return
		}
	}
	x.endItem()
}

func (x *extractor) open(s *scanner) {
	if n := len(x.stack); s.traits&selfEnding != 0 && n > 0 && bytes.Equal(x.stack[n-1].name, s.name) {
		x.pop(n - 1)
	}
	if x.item >= 0 && s.traits&inline == 0 {
		x.space()
	}
	if len(x.stack) >= maxDepth {
		return
	}
	x.stack = append(x.stack, element{name: s.name, attrs: s.attrs})
	if len(x.stack) > 1 && x.rule.item.may(s.name, s.attrs) && x.rule.item.fits(x.stack, 1) {
		x.endItem()
		if len(x.items) < maxItems {
			x.item = len(x.stack) - 1
		}
	}
	if x.item >= 0 {
		x.begin(s.name, s.attrs)
	}
	if s.void || s.traits&void != 0 {
		x.pop(len(x.stack) - 1)
	}
}

// begin starts the fields that the element on top of the stack is.
func (x *extractor) begin(name, attrs []byte) {
	for i := range x.rule.fields {
		f, c := &x.rule.fields[i], &x.taking[i]
		switch {
		case c.depth > 0:
			if c.not == 0 && f.Not.may(name, attrs) && f.Not.fits(x.stack, c.depth) {
				c.not = len(x.stack)
			}
		case c.done || !f.Of.may(name, attrs) || !f.Of.fits(x.stack, x.item):
		case f.Attr == "":
			c.depth = len(x.stack)
		default:
			if v, ok := attr(attrs, f.Attr); ok {
				c.text, c.done = unescape(c.text[:0], clip(v, maxText)), true
			}
		}
	}
}

func (x *extractor) close(s *scanner) {
	for i := len(x.stack) - 1; i >= 0 && i >= len(x.stack)-maxClose; i-- {
		if bytes.Equal(x.stack[i].name, s.name) {
			x.pop(i)
			break
		}
	}
	if x.item >= 0 && s.traits&inline == 0 {
		x.space()
	}
}

// pop closes the elements from index n of the stack on.
func (x *extractor) pop(n int) {
	x.stack = x.stack[:n]
	if x.item < 0 {
		return
	}
	for i := range x.taking {
		c := &x.taking[i]
		if c.not > n {
			c.not = 0
		}
		if c.depth > n {
			c.depth, c.done = 0, true
		}
	}
	if x.item >= n {
		x.endItem()
	}
}

// endItem keeps the result that is being read, if there is one.
func (x *extractor) endItem() {
	if x.item < 0 {
		return
	}
	fields := make([]string, len(x.taking))
	for i := range x.taking {
		fields[i] = string(bytes.TrimSpace(x.taking[i].text))
		x.taking[i] = capture{text: x.taking[i].text[:0]}
	}
	x.items = append(x.items, fields)
	x.item = -1
}

// take adds text to the fields that are being read.
func (x *extractor) take(s *scanner) {
	if s.isRaw && string(x.stack[len(x.stack)-1].name) != "title" {
		return // scripts and styles are no text
	}
	for i := range x.taking {
		if c := &x.taking[i]; c.depth > 0 && c.not == 0 && len(c.text) < maxText {
			c.text = appendText(c.text, clip(s.data, maxText-len(c.text)))
		}
	}
}

// space keeps words apart that stand in different blocks.
func (x *extractor) space() {
	for i := range x.taking {
		if c := &x.taking[i]; c.depth > 0 && c.not == 0 && len(c.text) > 0 && c.text[len(c.text)-1] != ' ' {
			c.text = append(c.text, ' ')
		}
	}
}

// Text returns the text of a fragment of HTML: without tags, with blanks
// collapsed.
func Text(fragment string) string {
	if strings.IndexByte(fragment, '<') < 0 && strings.IndexByte(fragment, '&') < 0 && !strings.ContainsAny(fragment, "\t\n\r") {
		return fragment
	}
	s := scanner{text: []byte(fragment), only: anyNames, all: true}
	var out []byte
	for {
		switch k := s.next(); {
		case k == tokenEnd:
			return string(bytes.TrimSpace(out))
		case k == tokenText && !s.isRaw:
			out = appendText(out, s.data)
		case k != tokenText && s.traits&inline == 0 && len(out) > 0 && out[len(out)-1] != ' ':
			out = append(out, ' ')
		}
	}
}

func clip(b []byte, n int) []byte { return b[:min(len(b), n)] }
