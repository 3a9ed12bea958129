// Package view is what people and programs see of the commands: skills,
// grants, results and records, as text and as JSON. It knows nothing of how
// they came about, and it trusts none of what they say: see Visible.
package view

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible returns a writer for a terminal. Whatever a guest, a manifest or a
// record says, a control character other than a new line and a tab, or one
// that is not seen or changes the direction of what is, is written to w as
// `\x1b` or `\u202e`: no text can move the cursor, hide another one, or talk to
// the terminal. JSON stays the same JSON.
func Visible(w io.Writer) io.Writer { return visible{w} }

type visible struct{ w io.Writer }

func (v visible) Write(p []byte) (int, error) {
	if _, err := io.WriteString(v.w, spelled(string(p), false)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Line returns s as part of one line: new lines and tabs are spelled out too,
// so that no text can pretend to be the next line.
func Line(s string) string { return spelled(s, true) }

// Short returns the first line of s, cut to n characters.
func Short(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > n {
		s = string(r[:n-1]) + "…"
	}
	return Line(s)
}

// row writes one line.
func row(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, Line(fmt.Sprintf(format, args...)))
}

func spelled(s string, line bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return hidden(r, line) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1: // a byte by itself is a control character to some terminals
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hidden(r, line):
			b.WriteRune(r)
		case r < ' ':
			b.WriteString(map[rune]string{'\n': `\n`, '\t': `\t`}[r])
			if r != '\n' && r != '\t' {
				fmt.Fprintf(&b, `\x%02x`, r)
			}
		default: // as JSON spells it
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
		i += n
	}
	return b.String()
}

// hidden reports whether r is not seen, or changes how others are seen.
func hidden(r rune, line bool) bool {
	switch r {
	case '\n', '\t':
		return line
	case '\u200c', '\u200d', '\u00ad', '\u2028', '\u2029': // joiners are part of scripts and emoji
		return r >= '\u2028'
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
