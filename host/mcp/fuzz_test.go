package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire/wiretest"
)

// FuzzServe feeds a whole conversation. Whatever comes, what goes out is JSON
// by the line, and each request that has an id of its own is answered once.
func FuzzServe(f *testing.F) {
	lines := wiretest.Lines(f, "testdata")
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
