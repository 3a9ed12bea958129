package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/skillhost/skill/host/mcp/wire/wiretest"
)

// FuzzScan holds the scanner against encoding/json: the same texts are valid,
// and the members it picks out are the same.
func FuzzScan(f *testing.F) {
	for _, l := range wiretest.Lines(f, "../testdata") {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := scanner{b: b}
		valid := s.whole(nil)
		want := utf8.Valid(b) && json.Valid(b) && depth(b) <= maxDepth
		if valid != want {
			t.Fatalf("valid %v, want %v: %q", valid, want, b)
		}
		if items, flt := Elements(b); flt == nil {
			var want []json.RawMessage
			if json.Unmarshal(b, &want) == nil && !slices.EqualFunc(items, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				t.Fatalf("elements %q, want %q", items, want)
			}
		}
		var e Envelope
		flt := Parse(b, &e, nil)
		if !valid {
			if flt == nil || flt.Code != codeParse {
				t.Fatalf("not JSON, but %+v", flt)
			}
			return
		}
		if flt != nil {
			if flt.Code != CodeInvalidRequest {
				t.Fatalf("JSON, but %+v", flt)
			}
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(b, &members); err != nil {
			t.Fatalf("an object to us, but %v: %q", err, b)
		}
		for k, v := range map[string]json.RawMessage{"jsonrpc": e.Version, "id": e.ID, "method": e.Method, "params": e.Params, "result": e.Result, "error": e.Err} {
			if k == "id" && v == nil && string(members[k]) == "null" {
				continue
			}
			if !bytes.Equal(v, members[k]) {
				t.Fatalf("%s is %q, want %q", k, v, members[k])
			}
		}
		if method, ok := Text(e.Method); e.Method != nil {
			var want string
			if err := json.Unmarshal(e.Method, &want); err != nil || !ok || method != want {
				t.Fatalf("method %q, want %q", method, want)
			}
		}
	})
}

// depth returns how deep a valid text nests.
func depth(b []byte) int {
	d := json.NewDecoder(bytes.NewReader(b))
	deepest, now := 0, 0
	for {
		tok, err := d.Token()
		if err != nil {
			return deepest
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}

// FuzzLines holds the line reader against a plain split, in reads of any size.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 4)
	f.Add([]byte(strings.Repeat("x", 100)+"\nshort\n"), 10)
	f.Add([]byte("\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, max int) {
		if max < 1 || max > 1<<16 {
			return
		}
		var want []string
		for l := range bytes.SplitSeq(b, []byte("\n")) {
			if len(l) > max {
				want = append(want, "LONG")
			} else {
				want = append(want, string(l))
			}
		}
		if want[len(want)-1] == "" { // nothing behind the last newline
			want = want[:len(want)-1]
		}
		for _, r := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
			lines := NewReader(r, max)
			var got []string
			for {
				l, err := lines.Next()
				if err == ErrLong {
					got = append(got, "LONG")
				} else if err != nil {
					break
				} else {
					got = append(got, string(l))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	})
}
