package message

import (
	"encoding/json"
	"errors"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// NotFound is the Fault of a call that names what does not exist. The message
// has the hint with the nearest names in it: clients show nothing else.
func NotFound(err error) *wire.Fault {
	e := *outermost(err)
	e.Op = ""
	return &wire.Fault{Code: wire.CodeInvalidParams, Message: e.Error(), Details: err.Error()}
}

// outermost returns the *sdk.Error that gives err its kind.
func outermost(err error) *sdk.Error {
	var e *sdk.Error
	if errors.As(err, &e) {
		return e
	}
	return &sdk.Error{Kind: sdk.Internal, What: err.Error()}
}

// ErrorReport is what a program reads of an error that became a result.
func ErrorReport(err error) json.RawMessage {
	e := *outermost(err)
	e.Op = ""
	b, merr := json.Marshal(struct {
		Error *sdk.Error `json:"error"`
	}{&e})
	if merr != nil { // strings and numbers only: cannot happen
		return raw(`{"error":{"kind":"internal"}}`)
	}
	return b
}

// codeNoResource is the code of a resource that does not exist, until 2025-11-25.
const codeNoResource = -32002

// NoResource is the Fault of reading a resource that does not exist.
func (e Era) NoResource(err error, uri string) *wire.Fault {
	flt := NotFound(err)
	l := wire.NewList([]byte("{"))
	l.Text("uri", wire.Clip(uri))
	l.Text("details", wire.Clip(flt.Details))
	flt.Data = append(l.B, '}')
	if !e.Modern {
		flt.Code = codeNoResource
	}
	return flt
}

// MissingAbilities is the Fault of a call that needs what the client did not say
// that it can do; nil if it can ask all of the questions. onlyUser says that
// all those that it cannot ask are for its user.
func MissingAbilities(p *Peer, questions map[string]sdk.Question) (flt *wire.Fault, onlyUser bool) {
	need := map[string]any{}
	onlyUser = true
	for _, q := range questions {
		if p.can(q.Kind) {
			continue
		}
		switch q.Kind {
		case sdk.QuestionSampling:
			need["sampling"], onlyUser = struct{}{}, false
		case sdk.QuestionRoots:
			need["roots"], onlyUser = struct{}{}, false
		default:
			modes, _ := need["elicitation"].(map[string]any)
			if modes == nil {
				modes = map[string]any{}
			}
			modes[string(q.Kind)] = struct{}{}
			need["elicitation"] = modes
		}
	}
	if len(need) == 0 {
		return nil, onlyUser
	}
	return MissingCapability(need), onlyUser
}

// MissingCapability is the Fault of a request that needs the client to have
// these capabilities.
func MissingCapability(need any) *wire.Fault {
	data, err := json.Marshal(map[string]any{"requiredCapabilities": need})
	if err != nil { // maps and strings: cannot happen
		data = nil
	}
	return &wire.Fault{Code: gosdk.CodeMissingRequiredClientCapabilities, Message: "the client lacks a capability that this needs", Data: data}
}
