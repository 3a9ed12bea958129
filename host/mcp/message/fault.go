package message

import (
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

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

// Refusal reads the error of an SDK's answer. A plain Go error, which the SDK
// gives no code, has Code 0.
func Refusal(r *jsonrpc.Response) (*wire.Fault, error) {
	var m struct {
		Error jsonrpc.Error `json:"error"`
	}
	line, err := jsonrpc.EncodeMessage(r)
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	e := &m.Error
	return &wire.Fault{Code: e.Code, Message: e.Message, Details: e.Message, Data: e.Data}, err
}
