package capability

import (
	"fmt"
	"strings"
	"unicode"
)

// Quote returns s as a TOML string. What a guest names may stand in a line
// that an operator is asked to copy, so nothing in s can end the string or
// move the cursor.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// QuoteKey returns k as a TOML key: bare if it can be.
func QuoteKey(k string) string {
	if k == "" || strings.Trim(k, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return Quote(k)
	}
	return k
}

// display returns s for a sentence: bare if nothing in it can mislead.
func display(s string) string {
	if s != "" && printable(s) && !strings.ContainsAny(s, "\"()") {
		return s
	}
	return Quote(s)
}
