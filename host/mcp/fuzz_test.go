package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"
)

// seedLines returns every line a client sends in the transcripts.
func seedLines(f *testing.F) []string {
	files, _ := filepath.Glob("testdata/*/*.txt")
	var lines []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for l := range strings.Lines(string(b)) {
			if line, ok := strings.CutPrefix(strings.TrimSpace(l), "> "); ok {
				lines = append(lines, line)
			}
		}
	}
	return append(lines, `{"a":[1,-0.5e+3,true,false,null,"\u00e9\n"]}`, `[]`, `{}`, "\"\xff\"", `1.e3`, `-`, strings.Repeat("[", 1001)+strings.Repeat("]", 1001))
}

// FuzzScan holds the scanner against encoding/json: the same texts are valid,
// and the members it picks out are the same.
func FuzzScan(f *testing.F) {
	for _, l := range seedLines(f) {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := scanner{b: b}
		valid := s.whole(nil)
		want := utf8.Valid(b) && json.Valid(b) && depth(b) <= maxDepth
		if valid != want {
			t.Fatalf("valid %v, want %v: %q", valid, want, b)
		}
		if items, flt := elements(b); flt == nil {
			var want []json.RawMessage
			if json.Unmarshal(b, &want) == nil && !slices.EqualFunc(items, want, func(a, b raw) bool { return bytes.Equal(a, b) }) {
				t.Fatalf("elements %q, want %q", items, want)
			}
		}
		var m message
		flt := parse(b, &m)
		if !valid {
			if flt == nil || flt.code != codeParse {
				t.Fatalf("not JSON, but %+v", flt)
			}
			return
		}
		if flt != nil {
			if flt.code != codeInvalidRequest {
				t.Fatalf("JSON, but %+v", flt)
			}
			return
		}
		envelope := members(t, b)
		e, p := &m.envelope, &m.params
		same(t, envelope, map[string]raw{"jsonrpc": e.version, "id": e.id, "method": e.method, "params": e.params, "result": e.result, "error": e.err})
		if isObject(e.params) {
			params := members(t, e.params)
			same(t, params, map[string]raw{"name": p.name, "arguments": p.arguments, "_meta": p.meta, "cursor": p.cursor, "requestId": p.requestID, "inputResponses": p.responses, "requestState": p.state})
			if isObject(p.meta) {
				x := &m.meta
				same(t, members(t, p.meta), map[string]raw{"progressToken": x.token, metaVersion: x.version, metaClient: x.client, metaAbilities: x.abilities, metaLevel: x.level, "traceparent": x.trace, "skill/narrow": x.narrow})
			}
		}
		if method, ok := text(e.method); e.method != nil {
			var want string
			if err := json.Unmarshal(e.method, &want); err != nil || !ok || method != want {
				t.Fatalf("method %q, want %q", method, want)
			}
		}
	})
}

func members(t *testing.T, b []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("an object to us, but %v: %q", err, b)
	}
	return m
}

func same(t *testing.T, want map[string]json.RawMessage, got map[string]raw) {
	for k, v := range got {
		if k == "id" && v == nil && string(want[k]) == "null" {
			continue
		}
		if !bytes.Equal(v, want[k]) {
			t.Fatalf("%s is %q, want %q", k, v, want[k])
		}
	}
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
			lines := newLineReader(r, max)
			var got []string
			for {
				l, err := lines.next()
				if err == errLong {
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

// FuzzServe feeds a whole conversation. Whatever comes, what goes out is JSON
// by the line, and each request that has an id of its own is answered once.
func FuzzServe(f *testing.F) {
	lines := seedLines(f)
	for i := range lines {
		f.Add([]byte(strings.Join(lines[i:min(i+4, len(lines))], "\n")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Contains(b, []byte("wait")) || bytes.Contains(b, []byte("stubborn")) || bytes.Contains(b, []byte(`\u`)) {
			return // tools that wait for the test
		}
		var out bytes.Buffer
		err := Serve(context.Background(), newHouse(), bytes.NewReader(b), &out, Options{MaxLine: 1 << 16, Drain: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		answered := map[string]int{}
		for line := range strings.Lines(out.String()) {
			var ms []json.RawMessage
			if json.Unmarshal([]byte(line), &ms) != nil {
				ms = []json.RawMessage{json.RawMessage(line)}
			}
			for _, m := range ms {
				var r struct {
					V      string          `json:"jsonrpc"`
					ID     json.RawMessage `json:"id"`
					Method *string         `json:"method"`
					Result json.RawMessage `json:"result"`
					Error  json.RawMessage `json:"error"`
				}
				if err := json.Unmarshal(m, &r); err != nil || r.V != "2.0" {
					t.Fatalf("not a message: %v: %q", err, line)
				}
				if r.Method == nil && (r.Result == nil) == (r.Error == nil) {
					t.Fatalf("not an answer: %q", line)
				}
				if r.Method == nil {
					answered[string(r.ID)]++
				}
			}
		}
		asked := map[string]int{}
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			var m message
			line = bytes.TrimSpace(line)
			if len(line) == 0 || len(line) > 1<<16 || bytes.Contains(line, []byte("cancelled")) || line[0] == '[' {
				return
			}
			if flt := parse(line, &m); flt == nil && m.envelope.method != nil && m.envelope.id != nil {
				asked[string(m.envelope.id)]++
			}
		}
		for id, n := range asked {
			if answered[id] < n {
				t.Fatalf("id %s: %d requests, %d answers: %q", id, n, answered[id], out.String())
			}
		}
	})
}
