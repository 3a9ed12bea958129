package egress

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A form is one spelling of a secret and what stands in its place.
type form struct{ text, with []byte }

// forms returns the spellings of the values of s, longest first, in which
// servers echo what they were sent. What a server encodes in another way is
// not found: the list of hosts is what keeps a secret, and this what keeps an
// honest server's echo from undoing it.
func (s Secrets) forms() []form {
	var forms []form
	for i := range s {
		v := s[i].Value
		with := []byte("[secret " + s[i].Name + "]")
		quoted, _ := json.Marshal(v) // a string: cannot fail
		escaped := url.QueryEscape(v)
		for _, text := range []string{
			v, escaped, url.PathEscape(v), lowerEscapes(escaped), string(quoted[1 : len(quoted)-1]), html.EscapeString(v), hex.EncodeToString([]byte(v)),
			base64.StdEncoding.EncodeToString([]byte(v)), base64.RawStdEncoding.EncodeToString([]byte(v)),
			base64.URLEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)),
		} {
			if !slices.ContainsFunc(forms, func(f form) bool { return string(f.text) == text }) {
				forms = append(forms, form{[]byte(text), with})
			}
		}
	}
	slices.SortStableFunc(forms, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
	return forms
}

// lowerEscapes spells the escapes of s as "%2f" instead of "%2F".
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// redactHeader returns h with the forms replaced in its values, and without
// those whose name holds one.
func redactHeader(h http.Header, forms []form) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		lower := strings.ToLower(name)
		if slices.ContainsFunc(forms, func(f form) bool { return strings.Contains(lower, strings.ToLower(string(f.text))) }) {
			continue
		}
		for _, v := range values {
			clean, _ := replace(nil, []byte(v), forms, true)
			out[name] = append(out[name], string(clean))
		}
	}
	return out
}

// replace appends in with the forms replaced to out. Unless final it leaves
// off where more input could make, or lengthen, a match, and returns the rest.
func replace(out, in []byte, forms []form, final bool) (done, rest []byte) {
	safe := len(in)
	if !final { // a match counts only where the longest form would have been seen
		safe = max(0, len(in)-len(forms[0].text)+1)
	}
	next := make([]int, len(forms)) // where each form is found at or after at
	for i := range next {
		next[i] = -1
	}
	for at := 0; ; {
		pos, found := max(safe, at), -1
		for i := range forms {
			if next[i] < at {
				next[i] = len(in)
				if j := bytes.Index(in[at:], forms[i].text); j >= 0 {
					next[i] = at + j
				}
			}
			if next[i] < pos { // of two at one place the longer comes first
				pos, found = next[i], i
			}
		}
		out = append(out, in[at:pos]...)
		if found < 0 {
			return out, in[pos:]
		}
		out = append(out, forms[found].with...)
		at = pos + len(forms[found].text)
	}
}

// A redactor replaces the forms in what it reads from src.
type redactor struct {
	src   io.ReadCloser
	forms []form // not empty
	chunk []byte
	held  []byte // read, and not yet searched to its end
	ready []byte // searched
	out   []byte // the buffer behind ready
	err   error
}

func newRedactor(src io.ReadCloser, forms []form) *redactor {
	return &redactor{src: src, forms: forms, chunk: make([]byte, 16<<10)}
}

func (r *redactor) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		n, err := r.src.Read(r.chunk)
		r.err = err
		// What comes before an error other than the end may be half a secret.
		final := err == io.EOF
		var rest []byte
		r.out, rest = replace(r.out[:0], append(r.held, r.chunk[:n]...), r.forms, final)
		r.ready = r.out
		r.held = append(r.held[:0], rest...)
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

func (r *redactor) Close() error { return r.src.Close() }
