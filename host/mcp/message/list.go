package message

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"

	"github.com/skillhost/skill/host/mcp/wire"
)

// AppendList appends the list of that name and, unless next is empty,
// "nextCursor". It returns the names of the tools that have an output schema as
// well, and how many items it left out because they are no JSON objects.
func AppendList(dst []byte, name string, items []json.RawMessage, next string) (members []byte, shaped []string, bad int) {
	l := wire.NewList(append(wire.AppendString(dst, name), ":["...))
	for _, item := range items {
		var tool struct {
			Name   string `json:"name"`
			Output raw    `json:"outputSchema"`
		}
		item = wire.Compact(item)
		if item == nil || json.Unmarshal(item, &tool) != nil {
			bad++
			continue
		}
		if tool.Output != nil {
			shaped = append(shaped, tool.Name)
		}
		l.Comma()
		l.B = append(l.B, item...)
	}
	l = wire.List{B: append(l.B, ']')}
	if next != "" {
		l.Text("nextCursor", sealCursor(next))
	}
	return l.B, shaped, bad
}

// ListCursor reads the parameters of a list request: the cursor that AppendList
// was given as next, or empty.
func (r *Request) ListCursor() (string, *wire.Fault) {
	if !wire.IsNull(r.Params) && !wire.IsObject(r.Params) {
		return "", wire.BadParams("params is not an object")
	}
	if wire.IsNull(r.Members.Cursor) {
		return "", nil
	}
	cursor := ""
	t, ok := wire.Text(r.Members.Cursor)
	if ok && t != "" {
		cursor, ok = openCursor(t)
	}
	if !ok {
		return "", wire.BadParams("cursor: not one that this server gave")
	}
	return cursor, nil
}

// sealCursor makes a Backend's cursor opaque, with a sum that tells garbage
// apart. It is no secret: a cursor grants nothing.
func sealCursor(c string) string {
	b := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(c)))
	return base64.RawURLEncoding.EncodeToString(append(b, c...))
}

// openCursor undoes sealCursor; false means that this server never sealed it.
func openCursor(s string) (string, bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) < 5 || binary.BigEndian.Uint32(b) != crc32.ChecksumIEEE(b[4:]) {
		return "", false
	}
	return string(b[4:]), true
}
