package conversation

import (
	"crypto/rand"
	"errors"
	"strings"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// tooBusy is the answer to a request that would exceed a bound of the host.
func tooBusy(details string) *wire.Fault {
	return &wire.Fault{Code: wire.CodeServer, Message: "limit: server busy", Details: details}
}

// protocolFault returns the JSON-RPC error for err, or nil if its kind is one
// that the client's model should read as a result.
func (r *Room) protocolFault(err error, doing string) *wire.Fault {
	if errors.Is(err, sdk.ErrState) { // not for a model to mend
		return wire.BadParams(err.Error())
	}
	switch kind := sdk.KindOf(err); kind {
	case sdk.NotFound:
		return message.NotFound(err)
	case sdk.Internal:
		ref := strings.ToLower(rand.Text()[:10])
		r.o.Logger.Error("internal error", "ref", ref, "doing", doing, "err", err)
		return &wire.Fault{Code: wire.CodeInternal, Message: "internal error",
			Details: "id " + ref + "; the host's log has the details"}
	}
	return nil
}
