package message

import (
	"encoding/json"
	"slices"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// A Peer is what a client said of itself.
type Peer struct {
	Client     sdk.Client
	Extensions map[string]json.RawMessage // their settings, by name; nil if there are none
	Channel    bool                       // it may show events of a channel to its model
}

// channelClients are the names of clients that show events of a channel to their
// model where their user has said so when they were started. They do not tell
// the server, and drop the events silently where nobody has.
var channelClients = []string{"claude-code", "crush"}

// Introduce reads what a modern request, of the given version, must say of its
// client.
func (m *Meta) Introduce(version string) (*Peer, *wire.Fault) {
	p := &Peer{}
	if m.Client != nil {
		var who gosdk.Implementation
		if !wire.IsObject(m.Client) || json.Unmarshal(m.Client, &who) != nil {
			return nil, wire.BadParams("invalid _meta field " + metaClient)
		}
		p.Client.Name = who.Name
	}
	var can struct {
		Elicitation *gosdk.ElicitationCapabilities `json:"elicitation"`
		Sampling    *struct{}                      `json:"sampling"`
		Roots       *struct{}                      `json:"roots"`
		Extensions  map[string]raw                 `json:"extensions"`
	}
	if !wire.IsObject(m.Abilities) || json.Unmarshal(m.Abilities, &can) != nil {
		return nil, wire.BadParams("missing or invalid _meta field " + metaAbilities)
	}
	p.elicits(can.Elicitation)
	p.Client.Sampling, p.Client.Roots, p.Extensions = can.Sampling != nil, can.Roots != nil, can.Extensions
	supported := gosdk.SupportedProtocolVersions()
	if !slices.Contains(supported, version) {
		data, err := json.Marshal(gosdk.UnsupportedProtocolVersionData{Supported: supported, Requested: wire.Clip(version)})
		if err != nil { // strings only: cannot happen
			data = nil
		}
		return nil, &wire.Fault{Code: gosdk.CodeUnsupportedProtocolVersion, Message: "unsupported protocol version", Data: data}
	}
	return p, nil
}

// elicits notes how the client can ask its user. A bare {} means by form.
func (p *Peer) elicits(e *gosdk.ElicitationCapabilities) {
	if e != nil {
		p.Client.Form = e.Form != nil || e.URL == nil
		p.Client.URL = e.URL != nil
	}
}

// Initialized is what a client says of itself in an initialize.
func Initialized(p *gosdk.InitializeParams) *Peer {
	out := &Peer{}
	if p.ClientInfo != nil {
		out.Client = sdk.Client{Name: p.ClientInfo.Name}
	}
	if can := p.Capabilities; can != nil {
		out.elicits(can.Elicitation)
		out.Client.Sampling, out.Client.Roots = can.Sampling != nil, can.RootsV2 != nil
		_, out.Channel = can.Experimental[Channel]
	}
	out.Channel = out.Channel || slices.Contains(channelClients, out.Client.Name)
	return out
}

// CanAsk reports whether the client can be asked all of these.
func (p *Peer) CanAsk(questions map[string]sdk.Question) bool {
	for _, q := range questions {
		if !p.can(q.Kind) {
			return false
		}
	}
	return true
}

func (p *Peer) can(kind sdk.QuestionKind) bool {
	switch kind {
	case sdk.QuestionForm:
		return p.Client.Form
	case sdk.QuestionURL:
		return p.Client.URL
	case sdk.QuestionSampling:
		return p.Client.Sampling
	case sdk.QuestionRoots:
		return p.Client.Roots
	}
	return false
}
