package message

import (
	"encoding/json"

	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// A Request is one message of the client, picked apart in one pass. Its slices
// alias the line; what was absent is nil. Members that are not named here are
// checked for syntax only.
type Request struct {
	wire.Envelope
	Members Members
	Meta    Meta
}

// Members are the members of a request's params.
type Members struct{ Name, Arguments, Meta, Cursor, RequestID, Responses, State json.RawMessage }

// Meta is the _meta of a request's params.
type Meta struct{ Token, Version, Client, Abilities, Level, Trace, Narrow json.RawMessage }

// paramsSink says where the members of params go.
type paramsSink Request

// Member keeps what the front acts on.
func (s *paramsSink) Member(key []byte) (*json.RawMessage, wire.Sink) {
	p := &s.Members
	switch string(key) {
	case "name":
		return &p.Name, nil
	case "arguments":
		return &p.Arguments, nil
	case "_meta":
		return &p.Meta, (*metaSink)(&s.Meta)
	case "cursor":
		return &p.Cursor, nil
	case "requestId":
		return &p.RequestID, nil
	case "inputResponses":
		return &p.Responses, nil
	case "requestState":
		return &p.State, nil
	}
	return nil, nil
}

// metaSink says where the members of _meta go.
type metaSink Meta

// Member keeps what the front acts on.
func (m *metaSink) Member(key []byte) (*json.RawMessage, wire.Sink) {
	switch string(key) {
	case "progressToken":
		return &m.Token, nil
	case metaVersion:
		return &m.Version, nil
	case metaClient:
		return &m.Client, nil
	case metaAbilities:
		return &m.Abilities, nil
	case metaLevel:
		return &m.Level, nil
	case "traceparent":
		return &m.Trace, nil
	case "skill/narrow":
		return &m.Narrow, nil
	}
	return nil, nil
}

// Parse reads line into r, which is zero. It is as strict as wire.Parse.
func Parse(line []byte, r *Request) *wire.Fault {
	return wire.Parse(line, &r.Envelope, (*paramsSink)(r))
}

// ToolCall reads the parameters of a tools/call. Arguments and Narrow alias the
// line; the Scope and the Client are the caller's to fill in.
func (r *Request) ToolCall() (sdk.Call, *wire.Fault) {
	p := &r.Members
	none := sdk.Call{}
	if !wire.IsObject(r.Params) {
		return none, wire.BadParams("params is not an object")
	}
	tool, ok := wire.Text(p.Name)
	if !ok || tool == "" {
		return none, wire.BadParams("name is not a string")
	}
	if !wire.IsNull(p.Meta) && !wire.IsObject(p.Meta) {
		return none, wire.BadParams("_meta is not an object")
	}
	sc := sdk.Call{Tool: tool, Trace: traceparent(r.Meta.Trace), Narrow: r.Meta.Narrow}
	if !wire.IsNull(p.Arguments) {
		if !wire.IsObject(p.Arguments) {
			return none, wire.BadParams("arguments is not an object")
		}
		sc.Args = p.Arguments
	}
	if !wire.IsNull(p.State) {
		if sc.State, ok = wire.Text(p.State); !ok {
			return none, wire.BadParams("requestState is not a string")
		}
	}
	if !wire.IsNull(p.Responses) {
		var err error
		if sc.Answers, err = answers(p.Responses); err != nil {
			return none, wire.BadParams("inputResponses: " + err.Error())
		}
	}
	return sc, nil
}

// traceparent returns v if it is a W3C trace parent, because it goes into
// records that others read.
func traceparent(v raw) string {
	t, _ := wire.Text(v)
	if len(t) != 55 || t[2] != '-' || t[35] != '-' || t[52] != '-' {
		return ""
	}
	for i, c := range []byte(t) {
		if i != 2 && i != 35 && i != 52 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return t
}
