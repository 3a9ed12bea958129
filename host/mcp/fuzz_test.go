package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/message"
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
			var m message.Request
			line = bytes.TrimSpace(line)
			if len(line) == 0 || len(line) > 1<<16 || bytes.Contains(line, []byte("cancelled")) || line[0] == '[' {
				return
			}
			if flt := message.Parse(line, &m); flt == nil && m.Method != nil && m.ID != nil {
				asked[string(m.ID)]++
			}
		}
		for id, n := range asked {
			if answered[id] < n {
				t.Fatalf("id %s: %d requests, %d answers: %q", id, n, answered[id], out.String())
			}
		}
	})
}
