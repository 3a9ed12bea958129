package load

import (
	"bytes"
	"fmt"
	"strconv"
)

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"

	initialize  = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	meta        = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"}}`
)

// listing is a request for the tools.
func (t Target) listing() []byte {
	if t.Modern {
		return []byte(`{"jsonrpc":"2.0","id":"l","method":"tools/list","params":{` + meta + `}}`)
	}
	return []byte(`{"jsonrpc":"2.0","id":"l","method":"tools/list","params":{}}`)
}

// appendCall appends a tools/call.
func (t Target) appendCall(b []byte, id int) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, int64(id), 10)
	b = append(b, `,"method":"tools/call","params":{"name":"`...)
	b = append(b, t.Tool...)
	b = append(b, `","arguments":`...)
	b = append(b, t.Call...)
	if t.Modern {
		b = append(b, ',')
		b = append(b, meta...)
	}
	return append(b, "}}"...)
}

// number returns the id of an answer to a call.
func number(answer []byte) (id int, ok bool) {
	_, after, ok := bytes.Cut(answer, []byte(`"id":`))
	if !ok {
		return 0, false
	}
	after = bytes.TrimLeft(after, " ")
	n := 0
	for n < len(after) && after[n] >= '0' && after[n] <= '9' {
		n++
	}
	id, err := strconv.Atoi(string(after[:n]))
	return id, err == nil
}

// check returns an error unless the answer is a result with what is wanted.
func check(answer []byte, want string) error {
	if bytes.Contains(answer, []byte(`"error":{`)) || bytes.Contains(answer, []byte(`"isError":true`)) || !bytes.Contains(answer, []byte(want)) {
		return fmt.Errorf("the server answers %.300s", answer)
	}
	return nil
}

// checkCall is check of the answer to the call of that id.
func (t Target) checkCall(answer []byte, id int) error {
	if n, ok := number(answer); !ok || n != id {
		return fmt.Errorf("not the answer to call %d: %.300s", id, answer)
	}
	return check(answer, t.Want)
}
