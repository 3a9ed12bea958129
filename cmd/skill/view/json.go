package view

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/skillhost/skill/sdk"
)

// JSON writes v as indented JSON.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// JSONLine writes v as one line of JSON.
func JSONLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// An Error is the JSON form of an error: {"error": {…}} with the members that
// structuredContent has over MCP.
type Error struct {
	Error struct {
		Kind   sdk.Kind    `json:"kind"`
		What   string      `json:"what"` // with the step and the cause
		Hint   string      `json:"hint,omitempty"`
		Denied *sdk.Denial `json:"denied,omitempty"`
	} `json:"error"`
}

// NewError returns the JSON form of err.
func NewError(err error) (v Error) {
	v.Error.Kind, v.Error.What = sdk.KindOf(err), err.Error()
	var e *sdk.Error
	if !errors.As(err, &e) {
		return v
	}
	v.Error.Denied = e.Denial
	if err == error(e) { // else the hint is in the middle of the text
		plain := *e
		plain.Hint = ""
		v.Error.What, v.Error.Hint = plain.Error(), e.Hint
	}
	return v
}
