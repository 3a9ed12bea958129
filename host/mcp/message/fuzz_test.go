package message

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/host/mcp/wire/wiretest"
)

// FuzzParse holds what Parse picks out of params and _meta against
// encoding/json.
func FuzzParse(f *testing.F) {
	for _, l := range wiretest.Lines(f, "../testdata") {
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
