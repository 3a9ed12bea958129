package sdk

import (
	"encoding/json"
	"errors"
	"strings"
)

// A Kind classifies an error by what its reader can do about it. Kinds are
// written to the audit log and to the wire; they are never renamed.
type Kind string

// The kinds of error. docs/errors.md says how each one reaches an MCP client,
// the exit status and the audit log.
const (
	Invalid     Kind = "invalid"     // the arguments or a file are wrong: correct them
	NotFound    Kind = "not_found"   // no such tool or skill: correct the name
	Denied      Kind = "denied"      // a capability was not granted: ask the operator
	Limit       Kind = "limit"       // time, memory, output, rate or size ran out
	Guest       Kind = "guest"       // the tool itself failed
	Unavailable Kind = "unavailable" // a runtime, upstream or store is not there: retry later
	Canceled    Kind = "canceled"    // the caller went away
	Internal    Kind = "internal"    // a bug in the host
)

// An Error says what was attempted, what is wrong and what would help. One
// Error in a chain carries the Kind; layers above it wrap with %w.
type Error struct {
	Kind Kind   `json:"kind"`
	Op   string `json:"op,omitempty"`   // the step, such as "manifest.Read"
	What string `json:"what"`           // the thing acted on and what is wrong with it
	Hint string `json:"hint,omitempty"` // how to put it right, or empty
	Err  error  `json:"-"`              // the cause, or nil

	// Denial is set on errors of kind Denied that a layer of the grant caused.
	Denial *Denial `json:"denied,omitempty"`
}

// A Denial says which layer refused what, for programs; the Error around it
// says the same for people.
type Denial struct {
	Capability string `json:"capability"`      // kind and verb, such as "filesystem.read"
	Resource   string `json:"resource"`        // the target, such as "/etc/passwd"
	Layer      string `json:"layer,omitempty"` // "manifest", "operator", "session", "call"
	File       string `json:"file,omitempty"`  // where that layer is written
	Line       int    `json:"line,omitempty"`  // 1-based; 0 if the layer is not a file
	Allow      string `json:"allow,omitempty"`
	Entry      string `json:"-"` // what is new in Allow
}

// Error formats e as "op: what: cause (hint)".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	b.WriteString(e.What)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString(" (")
		b.WriteString(e.Hint)
		b.WriteByte(')')
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// MarshalJSON folds the cause into "what", because a cause has no form of its
// own on the wire.
func (e *Error) MarshalJSON() ([]byte, error) {
	type wire Error // without this method
	w := wire(*e)
	if w.Err != nil {
		w.What += ": " + w.Err.Error()
	}
	return json.Marshal(w)
}

// ErrState is the error of a call whose State is not one that the host gave for
// it, or was used before.
var ErrState = &Error{Kind: Invalid, What: "the request state is not valid for this call", Hint: "states are used once, by the same caller, for the same tool and arguments; call the tool again without it"}

// KindOf reports the Kind of the outermost Error in err's chain, or Internal
// if there is none. KindOf(nil) is "".
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) && e.Kind != "" {
		return e.Kind
	}
	return Internal
}
