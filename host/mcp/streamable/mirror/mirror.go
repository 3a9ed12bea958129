// Package mirror compares the headers of a request with its body. Since
// 2026-07-28 some repeat what the body says, so that proxies can route by them
// (SEP-2243). The body decides; a header that says something else is a lie, which
// is refused: somebody on the way may have believed it.
//
// It does not know connections, sessions, or what a request does.
package mirror

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
)

// A raw is a JSON value as it stood in a message; nil if it was absent.
type raw = json.RawMessage

// The headers that repeat a body.
const (
	Version = "Mcp-Protocol-Version"
	Method  = "Mcp-Method"
	Name    = "Mcp-Name"
	Param   = "Mcp-Param-"
)

// Check refuses a modern message whose headers are not those of its body.
// version is the header's, meta the body's.
func Check(head http.Header, m *message.Request, version, meta string) *wire.Fault {
	asks := m.ID != nil && m.Method != nil
	switch {
	case version == "":
		return lie("missing header " + Version)
	case meta == "" && asks:
		return wire.BadParams("missing or invalid _meta field " + gosdk.MetaKeyProtocolVersion)
	case meta != "" && version != meta:
		return lie("header " + Version + " and the body name different revisions")
	case m.Method == nil:
		return nil
	}
	method, _ := wire.Text(m.Method)
	if flt := repeats(head, Method, method, asks); flt != nil {
		return flt
	}
	if name, named := nameOf(m, method); named {
		return repeats(head, Name, name, asks)
	}
	return nil
}

// repeats refuses a message unless the header of that key says the value, or is
// absent where it may be.
func repeats(head http.Header, key, value string, must bool) *wire.Fault {
	values := head[key]
	if len(values) == 0 {
		values = []string{""}
	}
	said := values[0]
	switch {
	case len(values) > 1:
		return lie("more than one header " + key)
	case said == "":
		if must {
			return lie("missing header " + key)
		}
		return nil
	case said == value:
		return nil
	}
	if plain, ok := decoded(said); !ok || plain != value {
		return lie("header " + key + " and the body say different things")
	}
	return nil
}

func lie(why string) *wire.Fault {
	return &wire.Fault{Code: gosdk.CodeHeaderMismatch, Message: "header mismatch: " + why, Details: why}
}

// nameOf returns what a message is about, if its method has such a thing.
func nameOf(m *message.Request, method string) (name string, named bool) {
	switch method {
	case "tools/call", "prompts/get":
		name, _ = wire.Text(m.Members.Name)
		return name, true
	case "resources/read":
		name, _ = wire.Text(m.Members.URI)
		return name, true
	case "tasks/get", "tasks/update", "tasks/cancel":
		var p struct {
			ID string `json:"taskId"`
		}
		_ = json.Unmarshal(m.Params, &p) // what is wrong with the params is said by who serves them
		return p.ID, true
	}
	return "", false
}

// decoded undoes how a header carries what is not plain ASCII.
func decoded(v string) (string, bool) {
	inner, ok := strings.CutPrefix(v, "=?base64?")
	if !ok {
		return v, true
	}
	if inner, ok = strings.CutSuffix(inner, "?="); !ok {
		return v, true
	}
	plain, err := base64.StdEncoding.DecodeString(inner)
	return string(plain), err == nil
}
