package pluck

import "bytes"

// The structure of JSON, without a tree. What is not JSON makes these
// functions report false; whether numbers and escapes are well formed they do
// not ask, since only what is taken matters.

// members calls f for each member of the object that begins at i, with the key
// as it is written, in quotes, until f returns false. It returns where the
// object ends, or where it has stopped.
func members(doc []byte, i int, f func(key, value []byte) bool) (end int, ok bool) {
	if i = blank(doc, i+1); i < len(doc) && doc[i] == '}' {
		return i + 1, true
	}
	for i < len(doc) && doc[i] == '"' {
		end, ok := quoted(doc, i)
		if !ok {
			return 0, false
		}
		key := doc[i:end]
		if i = blank(doc, end); i >= len(doc) || doc[i] != ':' {
			return 0, false
		}
		i = blank(doc, i+1)
		if end, ok = skip(doc, i); !ok {
			return 0, false
		}
		if !f(key, doc[i:end]) {
			return end, true
		}
		var last bool
		if i, last, ok = next(doc, end, '}'); !ok || last {
			return i, ok
		}
	}
	return 0, false
}

// elements calls f with where each element of the list that begins at i begins,
// until the list ends. f returns where the element ends; one that is below 0 ends
// the reading, which is then not ok.
func elements(doc []byte, i int, f func(i int) (end int)) (end int, ok bool) {
	if i = blank(doc, i+1); i < len(doc) && doc[i] == ']' {
		return i + 1, true
	}
	for {
		if i = f(i); i < 0 {
			return 0, false
		}
		var last bool
		if i, last, ok = next(doc, i, ']'); !ok || last {
			return i, ok
		}
	}
}

// next returns where the value after a comma begins, or, if it is the last one,
// where the list or object ends.
func next(doc []byte, i int, close byte) (at int, last, ok bool) {
	i = blank(doc, i)
	switch {
	case i >= len(doc):
		return 0, false, false
	case doc[i] == close:
		return i + 1, true, true
	case doc[i] == ',':
		return blank(doc, i+1), false, true
	}
	return 0, false, false
}

// each calls f for each element of the list that doc is, until f returns false.
func each(doc []byte, f func(value []byte) bool) bool {
	_, ok := elements(doc, 0, func(i int) int {
		end, ok := skip(doc, i)
		if !ok || !f(doc[i:end]) {
			return -1
		}
		return end
	})
	return ok
}

// skip returns the end of the value that begins at i.
func skip(doc []byte, i int) (end int, ok bool) {
	if i >= len(doc) {
		return 0, false
	}
	switch doc[i] {
	case '"':
		return quoted(doc, i)
	case '{', '[':
		return nested(doc, i)
	case 't', 'f', 'n', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		for end = i + 1; end < len(doc); end++ {
			switch doc[end] {
			case ',', ']', '}', ' ', '\n', '\t', '\r', ':', '"', '[', '{':
				return end, true
			}
		}
		return end, true
	}
	return 0, false
}

// nested returns the end of the list or object that begins at i.
func nested(doc []byte, i int) (end int, ok bool) {
	var open [maxDepth]byte
	depth := 0
	for i < len(doc) {
		switch c := doc[i]; c {
		case '"':
			if i, ok = quoted(doc, i); !ok {
				return 0, false
			}
			continue
		case '{', '[':
			if depth == maxDepth {
				return 0, false
			}
			open[depth] = c + 2 // "{" and "}", "[" and "]" are two apart
			depth++
		case '}', ']':
			if depth--; open[depth] != c {
				return 0, false
			}
			if depth == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return 0, false
}

// quoted returns the end of the string that begins at i.
func quoted(doc []byte, i int) (end int, ok bool) {
	for i++; ; {
		n := bytes.IndexByte(doc[i:], '"')
		if n < 0 {
			return 0, false
		}
		i += n + 1
		slashes := 0
		for k := i - 2; doc[k] == '\\'; k-- { // ends at the quote that the string begins with
			slashes++
		}
		if slashes%2 == 0 {
			return i, true
		}
	}
}

func blank(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	return i
}
