package mcp

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/skillhost/skill/sdk"
)

// JSON-RPC and MCP error codes.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeServer         = -32000 // the server cannot take the request now
)

// maxDetails bounds what an error says, because it may quote its request.
const maxDetails = 2 << 10

// A fault is a JSON-RPC error.
type fault struct {
	code    int64
	message string
	details string // becomes data.details
	data    raw    // instead of details
}

// append appends the member "error".
func (e *fault) append(dst []byte) []byte {
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, e.code, 10)
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, clip(e.message))
	if e.data != nil {
		dst = append(append(dst, `,"data":`...), e.data...)
	} else if e.details != "" {
		dst = append(dst, `,"data":{"details":`...)
		dst = appendString(dst, clip(e.details))
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func clip(s string) string {
	if len(s) <= maxDetails {
		return s
	}
	return s[:maxDetails] + "…"
}

func badParams(details string) *fault {
	return &fault{code: codeInvalidParams, message: "invalid params", details: details}
}

// tooBusy is the answer to a request that would exceed a bound of the front.
func tooBusy(details string) *fault {
	return &fault{code: codeServer, message: "limit: server busy", details: details}
}

// protocolFault returns the JSON-RPC error for err, or nil if its kind is one
// that the client's model should read as a result.
func (f *front) protocolFault(err error, doing string) *fault {
	switch kind := sdk.KindOf(err); kind {
	case sdk.NotFound:
		e := outermost(err)
		message := e.What
		if e.Err != nil {
			message += ": " + e.Err.Error()
		}
		return &fault{code: codeInvalidParams, message: message, details: err.Error()}
	case sdk.Internal:
		ref := strings.ToLower(rand.Text()[:10])
		f.o.Logger.Error("internal error", "ref", ref, "doing", doing, "err", err)
		return &fault{code: codeInternal, message: "internal error",
			details: "id " + ref + "; the host's log has the details"}
	}
	return nil
}

// outermost returns the *sdk.Error that gives err its kind.
func outermost(err error) *sdk.Error {
	var e *sdk.Error
	if errors.As(err, &e) {
		return e
	}
	return &sdk.Error{Kind: sdk.Internal, What: err.Error()}
}

// errorReport is what a program reads of an error that became a result.
func errorReport(err error) raw {
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
