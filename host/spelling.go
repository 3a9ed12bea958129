package host

import (
	"encoding/json"

	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

var _ conversation.Speller = (*Host)(nil)

// Means returns which tool of the list a call of a client means, as the catalog
// resolves it, and the arguments for that. What is wrong with the call, the call
// itself says.
func (h *Host) Means(scope sdk.Scope, tool string, args json.RawMessage) (listed string, given json.RawMessage, direct bool) {
	r, err := h.Catalog.Resolve(&sdk.Call{Tool: tool, Args: args, Scope: scope}, catalog.Viewer{May: func(e *catalog.Entry) bool { return h.Dispatcher.Visible(e, scope) }})
	switch {
	case err != nil || r.Entry == nil:
		return tool, args, true
	case r.Via != nil:
		return r.Entry.Name, r.Args, false
	}
	return r.Entry.Name, r.Args, true
}
