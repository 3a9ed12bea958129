package message

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// notification begins a notification. Its params are left open, here and in the
// functions that return one: "}}" ends it.
func notification(method string) wire.List {
	dst := append(wire.NewBuffer().B, `{"jsonrpc":"2.0","method":"`...)
	return wire.NewList(append(append(dst, method...), `","params":{`...))
}

// Progress begins the notification that a call has come to n of total, which is
// left out unless it makes sense.
func Progress(token json.RawMessage, n, total float64, text string) wire.List {
	l := notification("notifications/progress")
	l.Raw("progressToken", token)
	l.Key("progress")
	l.B = strconv.AppendFloat(l.B, n, 'g', -1, 64)
	if total >= n && !math.IsInf(total, 1) && total > 0 {
		l.Key("total")
		l.B = strconv.AppendFloat(l.B, total, 'g', -1, 64)
	}
	l.Optional("message", wire.Clip(text))
	return l
}

// Log begins the notification of what a tool logged.
func Log(level, tool, text string) wire.List {
	l := notification("notifications/message")
	l.Text("level", level)
	l.Text("logger", tool)
	l.Text("data", text)
	return l
}

// Wishes are what a subscription is to tell of, as subscriptions/listen has it.
type Wishes struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
	Tasks     []string `json:"taskIds,omitempty"`
}

// Acknowledged begins the notification that a subscription has begun.
func Acknowledged(w *Wishes, subscription json.RawMessage) wire.List {
	l := notification("notifications/subscriptions/acknowledged")
	subscribed(&l, subscription)
	b, err := json.Marshal(w)
	if err != nil { // booleans and strings: cannot happen
		b = raw("{}")
	}
	l.Raw("notifications", b)
	return l
}

// Changed begins the notification that the list of tools, prompts or resources
// has changed, for the subscription of that id unless it is nil.
func Changed(set string, subscription json.RawMessage) wire.List {
	l := notification("notifications/" + set + "/list_changed")
	subscribed(&l, subscription)
	return l
}

// Updated begins the notification that a resource has changed.
func Updated(uri string, subscription json.RawMessage) wire.List {
	l := notification("notifications/resources/updated")
	subscribed(&l, subscription)
	l.Text("uri", uri)
	return l
}

// Channel is the capability of a server, and of a client, that has events for
// the client's model. No revision of the protocol has it; the contract is that of
// the clients which do (code.claude.com, "Channels reference").
const Channel = "claude/channel"

// ChannelEvent begins the notification of an event. The names in meta are
// identifiers.
func ChannelEvent(content string, meta [][2]string) wire.List {
	l := notification("notifications/" + Channel)
	l.Text("content", content)
	l.Key("meta")
	in := wire.NewList(append(l.B, '{'))
	for _, m := range meta {
		in.Text(m[0], m[1])
	}
	l.B = append(in.B, '}')
	return l
}

// subscribed says to which subscription a notification belongs.
func subscribed(l *wire.List, id raw) {
	if id != nil {
		l.Raw("_meta", append(append(raw(`{"`+MetaListen+`":`), id...), '}'))
	}
}

// Cancelled begins the notification that the host's own request of that id needs
// no answer any more.
func Cancelled(id string) wire.List {
	l := notification("notifications/cancelled")
	l.Text("requestId", id)
	return l
}

// LevelRank orders the RFC 5424 severities from 1; 0 is none of them.
func LevelRank(level string) int {
	return 1 + slices.Index([]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}, level)
}

// Preview is a short text for c.
func Preview(c *sdk.Content) string {
	switch {
	case c.Text != "":
		return c.Text
	case c.Data != nil:
		return fmt.Sprintf("[%s %s, %d bytes]", c.Type, c.MIME, len(c.Data))
	}
	return fmt.Sprintf("[%s %s]", c.Type, c.URI)
}
