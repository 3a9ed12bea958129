// Package message turns the messages of the Model Context Protocol into the
// words of the sdk and back: requests into calls, results and questions into
// JSON, a client's introduction into what it can do. It is pure: each function
// takes a value and returns one.
//
// It does not know streams, sessions or who answers a request, and it keeps
// nothing.
package message

import (
	"encoding/json"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A raw is a JSON value as it stood in the line; nil if it was absent.
type raw = json.RawMessage

// ModernEra is the first revision without sessions.
const ModernEra = "2026-07-28"

// The keys of _meta that the protocol reserves.
const (
	metaReserved  = "io.modelcontextprotocol/"
	metaVersion   = gosdk.MetaKeyProtocolVersion
	metaClient    = gosdk.MetaKeyClientInfo
	metaAbilities = gosdk.MetaKeyClientCapabilities
	metaLevel     = gosdk.MetaKeyLogLevel
	metaRelated   = "io.modelcontextprotocol/related-task"
	metaAllJobs   = "skill/related-tasks" // the host's own: a list of what metaRelated is one of

	MetaServer = gosdk.MetaKeyServerInfo
	MetaListen = gosdk.MetaKeySubscriptionID
)
