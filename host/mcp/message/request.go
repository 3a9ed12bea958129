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
type Members struct {
	Name, URI, Arguments, Meta, Cursor, RequestID, Responses, State, TaskID json.RawMessage
}

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
	case "uri":
		return &p.URI, nil
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
	case "taskId":
		return &p.TaskID, nil
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
// message; the Scope and the Client are the caller's to fill in.
func (r *Request) ToolCall() (sdk.Call, *wire.Fault) {
	return r.named(sdk.CallTool, "name", r.Members.Name)
}

// PromptGet reads the parameters of a prompts/get, as ToolCall does.
func (r *Request) PromptGet() (sdk.Call, *wire.Fault) {
	sc, flt := r.named(sdk.CallPrompt, "name", r.Members.Name)
	if flt == nil && sc.Args != nil {
		var texts map[string]string
		if err := json.Unmarshal(sc.Args, &texts); err != nil {
			return sdk.Call{}, wire.BadParams("arguments are not all strings")
		}
	}
	return sc, flt
}

// ResourceRead reads the parameters of a resources/read, as ToolCall does.
func (r *Request) ResourceRead() (sdk.Call, *wire.Fault) {
	sc, flt := r.named(sdk.CallResource, "uri", r.Members.URI)
	sc.Args = nil
	return sc, flt
}

// Completion reads the parameters of a completion/complete.
func (r *Request) Completion() (sdk.Call, *wire.Fault) {
	var p struct {
		Ref struct {
			Type string `json:"type"`
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"ref"`
		Argument struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"argument"`
		Context struct {
			Arguments map[string]string `json:"arguments"`
		} `json:"context"`
	}
	if !wire.IsObject(r.Params) || json.Unmarshal(r.Params, &p) != nil {
		return sdk.Call{}, wire.BadParams("want a ref, an argument with a name and a value, and perhaps a context")
	}
	args := map[string]any{"argument": p.Argument}
	if p.Context.Arguments != nil {
		args["context"] = p.Context.Arguments
	}
	sc := sdk.Call{Kind: sdk.CallCompletion, Trace: traceparent(r.Meta.Trace), Narrow: r.Meta.Narrow}
	switch {
	case p.Argument.Name == "":
		return sdk.Call{}, wire.BadParams("the argument has no name")
	case p.Ref.Type == "ref/prompt" && p.Ref.Name != "":
		sc.Tool, args["prompt"] = p.Ref.Name, p.Ref.Name
	case p.Ref.Type == "ref/resource" && p.Ref.URI != "":
		sc.Tool, args["uri"] = p.Ref.URI, p.Ref.URI
	default:
		return sdk.Call{}, wire.BadParams("ref is neither a ref/prompt with a name nor a ref/resource with a uri")
	}
	var err error
	if sc.Args, err = json.Marshal(args); err != nil {
		return sdk.Call{}, wire.BadParams(err.Error())
	}
	return sc, nil
}

// named reads the parameters of what is called by a name, which is the member
// of that key.
func (r *Request) named(kind sdk.CallKind, key string, member raw) (sdk.Call, *wire.Fault) {
	p := &r.Members
	none := sdk.Call{}
	if !wire.IsObject(r.Params) {
		return none, wire.BadParams("params is not an object")
	}
	name, ok := wire.Text(member)
	if !ok || name == "" {
		return none, wire.BadParams(key + " is not a string")
	}
	if !wire.IsNull(p.Meta) && !wire.IsObject(p.Meta) {
		return none, wire.BadParams("_meta is not an object")
	}
	sc := sdk.Call{Kind: kind, Tool: name, Trace: traceparent(r.Meta.Trace), Narrow: r.Meta.Narrow}
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
