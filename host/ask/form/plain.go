package form

import (
	"strings"
	"unicode"
)

// Plain makes a stranger's text safe to show on a page or a terminal: characters
// that move a cursor, talk to a terminal, are not seen, or change the direction
// of others, become U+FFFD. New lines and tabs stay.
func Plain(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return '\ufffd'
		}
		return r
	}, s)
}

// Line is Plain as a part of one line.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, Plain(s))
}

func hidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d', '\u00ad': // joiners are part of scripts and emoji
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
