package wire

import (
	"encoding/json"
	"strconv"
)

// The error codes of JSON-RPC.
const (
	codeParse          = -32700
	CodeInvalidRequest = -32600
	CodeNoMethod       = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeServer         = -32000 // the server cannot take the request now
)

// maxDetails bounds what an error says, in bytes, because it may quote its
// request.
const maxDetails = 2 << 10

// A Fault is a JSON-RPC error.
type Fault struct {
	Code    int64
	Message string
	Details string          // becomes data.details
	Data    json.RawMessage // instead of Details
}

// BadRequest is the Fault of what is JSON and no request.
func BadRequest(details string) *Fault {
	return &Fault{Code: CodeInvalidRequest, Message: "invalid request", Details: details}
}

// BadParams is the Fault of a request whose params are wrong.
func BadParams(details string) *Fault {
	return &Fault{Code: CodeInvalidParams, Message: "invalid params", Details: details}
}

// Append appends the member "error".
func (e *Fault) Append(dst []byte) []byte {
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, e.Code, 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, Clip(e.Message))
	if e.Data != nil {
		dst = append(append(dst, `,"data":`...), e.Data...)
	} else if e.Details != "" {
		dst = append(dst, `,"data":{"details":`...)
		dst = AppendString(dst, Clip(e.Details))
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// Clip bounds a text that the other end may have written: what is longer than
// 2 KiB ends in an ellipsis.
func Clip(s string) string {
	if len(s) <= maxDetails {
		return s
	}
	return s[:maxDetails] + "…"
}
