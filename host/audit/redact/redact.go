// Package redact takes secrets out of text and out of JSON before they are
// written down, and describes JSON by its shape alone. It works by form (what
// looks like a token) and by the exact values it is given. It knows nothing of
// the log, of callers or of where secrets are kept.
package redact

import (
	"slices"
	"strings"
)

// Mark stands where something was taken out.
const Mark = "[redacted]"

// Bounds of the text that is looked at. What lies between seen and scanned is
// scanned but never shown, so that a token cut at the end is still recognised.
const (
	scanned = 64 << 10
	seen    = 56 << 10
)

// A Redactor takes out what looks like a secret and the exact values of
// Secrets. The zero Redactor goes by looks alone.
type Redactor struct {
	Secrets []string
}

// A span is a half-open range of bytes.
type span struct{ from, to int }

// Text returns s without secrets, cut to limit bytes and then ended by "…". It
// returns s itself, without allocating, if there is nothing to take out.
func (r Redactor) Text(s string, limit int) string {
	limit = min(limit, seen)
	looked := s
	if len(looked) > scanned {
		looked = looked[:scanned]
	}
	spans := r.exact(detect(looked), s)
	if len(spans) == 0 {
		if len(s) <= limit {
			return s
		}
		return cut(s, limit)
	}
	if len(looked) < len(s) {
		looked = looked[:seen]
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for k, sp := range spans {
		if sp.from >= len(looked) || b.Len() > limit {
			break
		}
		if k == 0 || sp.from > at {
			b.WriteString(looked[at:max(at, sp.from)])
			b.WriteString(Mark)
		}
		at = max(at, sp.to)
	}
	if at < len(looked) {
		b.WriteString(looked[at:])
	}
	out := b.String()
	if len(out) <= limit && len(looked) == len(s) {
		return out
	}
	return cut(out, limit)
}

// exact appends the spans of every occurrence of the known secrets in s,
// overlapping ones included.
func (r Redactor) exact(spans []span, s string) []span {
	for _, secret := range r.Secrets {
		if secret == "" {
			continue
		}
		for at := 0; ; {
			k := strings.Index(s[at:], secret)
			if k < 0 {
				break
			}
			spans = append(spans, span{at + k, at + k + len(secret)})
			at += k + 1
		}
	}
	return spans
}

// Clean reports whether s holds nothing that Text would take out.
func (r Redactor) Clean(s string) bool {
	return len(s) <= scanned && len(r.exact(detect(s), s)) == 0
}

// cut shortens s to at most n bytes and an ellipsis, between two runes.
func cut(s string, n int) string {
	if len(s) > n {
		for n > 0 && s[n]&0xc0 == 0x80 {
			n--
		}
		s = s[:n]
	}
	return s + "…"
}
