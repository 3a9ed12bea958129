package main

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// tidy is text of a stranger on one line, of at most n characters: without what
// is not seen, which could say something to a model that no reader notices.
func tidy(text string, n int) string {
	var b strings.Builder
	b.Grow(min(len(text), 4*n))
	blank, count := false, 0
	for _, r := range text {
		if ' ' < r && r < 0x7f && !blank && count < n { // most of it
			b.WriteByte(byte(r))
			count++
			continue
		}
		switch {
		case unicode.IsSpace(r) || r == utf8.RuneError:
			blank = b.Len() > 0
			continue
		case isControl(r) || unseen(r):
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank, count = false, count+1
		}
		if count >= n {
			return strings.TrimSpace(b.String()) + "…"
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// unseen reports whether r takes no room: marks of direction, joiners, variation
// selectors beyond those of emoji, and the tags of plane 14.
func unseen(r rune) bool {
	switch {
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff, r == 0xad, r == 0x61c, r == 0x180e, r == 0x3164, r == 0x115f, r == 0x1160:
		return r != 0x200d // joins emoji
	case r >= 0xfff0 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff, r >= 0xfe00 && r <= 0xfe0e:
		return true
	}
	return unicode.Is(unicode.Co, r)
}

// day is when a result was published, as YYYY-MM-DD, or "" if that cannot be
// told. Engines write moments, seconds of the epoch, dates in words and ages.
func day(text string, now time.Time) string {
	if text = strings.Trim(text, " \t\n-–—·,"); text == "" {
		return ""
	}
	if len(text) >= 10 && text[4] == '-' && text[7] == '-' {
		if t, err := time.Parse(time.DateOnly, text[:10]); err == nil {
			return t.Format(time.DateOnly)
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n > 1e11 {
			n /= 1000 // milliseconds
		}
		if n > 1e8 && n < 1e11 {
			return time.Unix(n, 0).UTC().Format(time.DateOnly)
		}
		return ""
	}
	for _, layout := range []string{"Jan 2, 2006", "January 2, 2006", "2 Jan 2006", "2 January 2006", "Mon, 02 Jan 2006 15:04:05 MST"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Format(time.DateOnly)
		}
	}
	return ago(text, now)
}

// ago reads "3 days ago".
func ago(text string, now time.Time) string {
	words := strings.Fields(strings.ToLower(text))
	if len(words) != 3 || words[2] != "ago" {
		return ""
	}
	n, err := strconv.Atoi(words[0])
	if err != nil || n < 0 || n > 10_000 {
		return ""
	}
	then := now.UTC()
	switch strings.TrimSuffix(words[1], "s") {
	case "second", "sec", "minute", "min":
	case "hour":
		then = then.Add(-time.Duration(n) * time.Hour)
	case "day":
		then = then.AddDate(0, 0, -n)
	case "week":
		then = then.AddDate(0, 0, -7*n)
	case "month":
		then = then.AddDate(0, -n, 0)
	case "year":
		then = then.AddDate(-n, 0, 0)
	default:
		return ""
	}
	return then.Format(time.DateOnly)
}
