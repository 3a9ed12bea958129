package host

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

// Front is the Host as MCP clients see it: what config.Offer leaves out is not
// there.
func (h *Host) Front() conversation.Backend { return front{h} }

type front struct{ *Host }

func (f front) List(ctx context.Context, scope sdk.Scope, kind conversation.Kind, cursor string, n int) (conversation.Page, error) {
	if kind == conversation.Tools && !f.Config.Offer.Tools {
		return conversation.Page{}, nil
	}
	return f.Host.List(ctx, scope, kind, cursor, n)
}

func (f front) Call(ctx context.Context, c sdk.Call, emit func(sdk.Event)) (sdk.Result, error) {
	o := &f.Config.Offer
	if c.Kind == sdk.CallTool && !o.Tools {
		return sdk.Result{}, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no tool %.80q", c.Tool), Hint: "this server is set to serve no tools"}
	}
	if !o.Streaming && emit != nil {
		all := emit
		emit = func(e sdk.Event) {
			if e.Kind != sdk.EventPartial {
				all(e)
			}
		}
	}
	r, err := f.Host.Call(ctx, c, emit)
	if err == nil && o.Model != "" {
		for id, q := range r.Questions {
			if q.Kind == sdk.QuestionSampling {
				q.Params = preferring(o.Model, q.Params)
				r.Questions[id] = q
			}
		}
	}
	return r, err
}

// preferring adds a hint at model to the params of sampling/createMessage,
// unless the tool has preferences of its own (specification 2025-11-25,
// client/sampling, "Model Preferences").
func preferring(model string, params json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(params, &members) != nil || members == nil || members["modelPreferences"] != nil {
		return params
	}
	hint, err := json.Marshal(map[string]any{"hints": []map[string]string{{"name": model}}})
	if err != nil { // two strings: cannot happen
		return params
	}
	members["modelPreferences"] = hint
	out, err := json.Marshal(members)
	if err != nil {
		return params
	}
	return out
}
