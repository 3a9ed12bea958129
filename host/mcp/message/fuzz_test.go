package message

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/mcp/wire"
)

// seedLines returns every line a client sends in the transcripts.
func seedLines(f *testing.F) []string {
	files, _ := filepath.Glob("../testdata/*/*.txt")
	if len(files) == 0 {
		f.Fatal("no transcripts")
	}
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
	return lines
}

// FuzzParse holds what Parse picks out of params and _meta against
// encoding/json.
func FuzzParse(f *testing.F) {
	for _, l := range seedLines(f) {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Request
		if Parse(b, &r) != nil || !wire.IsObject(r.Params) {
			return
		}
		p, x := &r.Members, &r.Meta
		same(t, members(t, r.Params), map[string]raw{"name": p.Name, "arguments": p.Arguments, "_meta": p.Meta, "cursor": p.Cursor, "requestId": p.RequestID, "inputResponses": p.Responses, "requestState": p.State})
		if wire.IsObject(p.Meta) {
			same(t, members(t, p.Meta), map[string]raw{"progressToken": x.Token, metaVersion: x.Version, metaClient: x.Client, metaAbilities: x.Abilities, metaLevel: x.Level, "traceparent": x.Trace, "skill/narrow": x.Narrow})
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
		if !bytes.Equal(v, want[k]) {
			t.Fatalf("%s is %q, want %q", k, v, want[k])
		}
	}
}
