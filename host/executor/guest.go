package executor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/skillhost/skill/sdk"
)

// What follows is the same for every guest that speaks in frames: how its
// words are read, and how its operations are done.

// Ended is the error of a run whose hard context is done.
func Ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	var e *sdk.Error
	switch {
	case errors.As(cause, &e) && (e.Kind == sdk.Limit || e.Kind == sdk.Canceled):
		return cause
	case errors.Is(cause, context.Canceled):
		return &sdk.Error{Kind: sdk.Canceled, What: "the call was canceled", Err: cause}
	}
	return &sdk.Error{Kind: sdk.Limit, What: "the tool was stopped at its deadline", Err: cause, Hint: "limits.timeout in its manifest"}
}

// GuestError is e as far as a guest may say it: it cannot speak of bugs in the
// host, of the caller's going away, or in the name of a layer of its grant.
func GuestError(e *sdk.Error) error {
	out := &sdk.Error{Kind: e.Kind, Op: e.Op, What: e.What, Hint: e.Hint}
	switch e.Kind {
	case sdk.Invalid, sdk.NotFound, sdk.Denied, sdk.Limit, sdk.Unavailable:
	default:
		out.Kind = sdk.Guest
	}
	return out
}

// Perform does one operation. Whatever goes wrong is in the reply; unknown
// says that the host has no such operation.
func Perform(ctx context.Context, ops Ops, frame sdk.Frame) (reply []byte, unknown bool) {
	defer func() {
		if r := recover(); r != nil {
			reply = sdk.AppendError(nil, &sdk.Error{Kind: sdk.Internal, What: "the operation failed in the host"})
		}
	}()
	reply, err := ops.Do(ctx, frame)
	var e *sdk.Error
	switch {
	case err == nil:
		return reply, false
	case errors.Is(err, ErrUnknownOp):
		return nil, true
	case errors.As(err, &e) && e.Kind != sdk.Internal:
	case ctx.Err() != nil:
		e = &sdk.Error{Kind: sdk.Canceled, What: "the call is past its deadline"}
	default:
		e = &sdk.Error{Kind: sdk.Internal, What: "the operation failed in the host"}
	}
	return sdk.AppendError(nil, e), false
}

// ParseEvent reads what a guest emits before its result: kind is
// sdk.EmitPartial, sdk.EmitProgress or sdk.EmitLog.
func ParseEvent(kind int32, b []byte) (sdk.Event, bool) {
	switch kind {
	case sdk.EmitPartial:
		content, err := sdk.ParseContent(b)
		return sdk.Event{Kind: sdk.EventPartial, Content: content}, err == nil
	case sdk.EmitProgress:
		var p struct {
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
			Message  string  `json:"message"`
		}
		err := json.Unmarshal(b, &p)
		return sdk.Event{Kind: sdk.EventProgress, Progress: p.Progress, Total: p.Total, Message: p.Message}, err == nil
	}
	var l struct {
		Level   string `json:"level"`
		Message string `json:"message"`
	}
	err := json.Unmarshal(b, &l)
	return sdk.Event{Kind: sdk.EventLog, Level: l.Level, Message: l.Message}, err == nil && slices.Contains(levels, l.Level)
}

// levels are the severities of RFC 5424 as MCP spells them.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
