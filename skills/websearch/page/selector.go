package page

import (
	"bytes"
	"strings"
)

// A Selector names elements, as "ol#b_results li.b_algo h2 a" does: each step is
// inside of an element of the step before, however deep.
type Selector []step

type step struct {
	tag     string // in lower case; "" is any
	id      string
	classes []string
}

// Select reads a selector: names, "#id" and ".class" only.
func Select(text string) Selector {
	var s Selector
	for _, word := range strings.Fields(text) {
		var p step
		for word != "" {
			n := strings.IndexAny(word[1:], ".#") + 1
			if n == 0 {
				n = len(word)
			}
			switch part := word[:n]; part[0] {
			case '.':
				p.classes = append(p.classes, part[1:])
			case '#':
				p.id = part[1:]
			default:
				p.tag = part
			}
			word = word[n:]
		}
		s = append(s, p)
	}
	return s
}

// may reports whether an element of that name with these attributes can be one
// that s names: most cannot, which saves looking at them.
func (s Selector) may(name, attrs []byte) bool {
	if len(s) == 0 {
		return false
	}
	p := &s[len(s)-1]
	if p.tag != "" && p.tag != string(name) {
		return false
	}
	switch {
	case p.id != "":
		return bytes.Contains(attrs, []byte(p.id))
	case len(p.classes) > 0:
		return bytes.Contains(attrs, []byte(p.classes[0]))
	}
	return true
}

// fits reports whether the element on top of stack is one that s names, with
// all of its steps at index from of the stack or above.
func (s Selector) fits(stack []element, from int) bool {
	top := len(stack) - 1
	if len(s) == 0 || top < from || !s[len(s)-1].is(&stack[top]) {
		return false
	}
	n := len(s) - 2
	for i := top - 1; n >= 0 && i >= from; i-- {
		if s[n].is(&stack[i]) {
			n--
		}
	}
	return n < 0
}

// needle is a text that every element has which p names.
func (p *step) needle() string {
	switch {
	case p.id != "":
		return p.id
	case len(p.classes) > 0:
		return p.classes[0]
	}
	return "<" + p.tag
}

func (p *step) is(e *element) bool {
	if p.tag != "" && p.tag != string(e.name) {
		return false
	}
	if p.id == "" && len(p.classes) == 0 {
		return true
	}
	if !e.known {
		e.look()
	}
	if p.id != "" && string(e.id) != p.id {
		return false
	}
	for _, c := range p.classes {
		if !hasWord(e.class, c) {
			return false
		}
	}
	return true
}

// hasWord reports whether word is one of the words of list.
func hasWord(list []byte, word string) bool {
	for {
		i := bytes.Index(list, []byte(word))
		if i < 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || isSpace(list[i-1])) && (end == len(list) || isSpace(list[end])) {
			return true
		}
		list = list[end:]
	}
}
