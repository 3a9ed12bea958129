package page

import "bytes"

// Index is bytes.Index for a long text, made for modules: it looks for the byte
// of the needle that is rarest in pages, which is the one loop that is fast
// there, and compares the rest where it finds one.
func Index(text []byte, needle string) int {
	if needle == "" {
		return 0
	}
	rare := rarest(needle)
	for at := rare; at < len(text); at++ {
		n := bytes.IndexByte(text[at:], needle[rare])
		if n < 0 {
			return -1
		}
		at += n
		if begin := at - rare; begin+len(needle) <= len(text) && string(text[begin:begin+len(needle)]) == needle {
			return begin
		}
	}
	return -1
}

// rarest is the index of the byte of s that comes last in the list of those
// that are common in pages.
func rarest(s string) (at int) {
	const common = " etaoinsrlhdcumpfgyb\"<>=/.-:;wv0123456789(),{}kxj'_qz"
	most := -1
	for i := range len(s) {
		n := bytes.IndexByte([]byte(common), s[i])
		if n < 0 {
			n = len(common)
		}
		if n > most {
			at, most = i, n
		}
	}
	return at
}
