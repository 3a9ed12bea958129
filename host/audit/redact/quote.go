package redact

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// escaped holds the bytes that are not always written as they are.
var escaped = func() (t [256]bool) {
	for c := range t {
		t[c] = c < ' ' || c >= 0x7f || c == '"' || c == '\\'
	}
	return t
}()

// AppendQuoted appends s to dst as a JSON string of at most max bytes between
// its quotes; what does not fit is replaced by "…". Controls, invalid UTF-8 and the
// characters that reorder or hide text on a terminal are escaped, so that the
// log is safe to print.
func AppendQuoted(dst []byte, s string, max int) []byte {
	dst = append(dst, '"')
	plain := 0
	for plain < len(s) && !escaped[s[plain]] {
		plain++
	}
	if plain == len(s) && plain <= max {
		dst = append(dst, s...)
		return append(dst, '"')
	}
	limit := len(dst) + max - len("…")
	for _, r := range s {
		if len(dst)+6 > limit && len(dst)+width(r) > limit {
			dst = append(dst, "…"...)
			break
		}
		dst = appendRune(dst, r)
	}
	return append(dst, '"')
}

// width returns how many bytes appendRune appends.
func width(r rune) int {
	var b [16]byte
	return len(appendRune(b[:0], r))
}

func appendRune(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r == '\n':
		return append(dst, '\\', 'n')
	case r < ' ' || r >= 0x7f && r < 0xa0 || hidden(r):
		return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
	}
	return utf8.AppendRune(dst, r) // an invalid byte comes as U+FFFD
}

// hidden reports whether r changes how its neighbours are shown.
func hidden(r rune) bool {
	return r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff
}
