package page

import (
	"bytes"
	"strings"
	"testing"
)

func FuzzIndex(f *testing.F) {
	f.Add("a page with b_results and links", "b_results")
	f.Add("", "")
	f.Add("aaab", "aab")
	f.Add("_b_", "b_")
	f.Fuzz(func(t *testing.T, text, needle string) {
		if got, want := Index([]byte(text), needle), bytes.Index([]byte(text), []byte(needle)); got != want {
			t.Fatalf("%q in %q: %d, want %d", needle, text, got, want)
		}
		if len(needle) > 0 && Index([]byte(strings.Repeat(text, 3)+needle), needle) < 0 {
			t.Fatalf("%q is not found behind %q", needle, text)
		}
	})
}
