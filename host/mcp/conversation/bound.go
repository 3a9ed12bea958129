package conversation

import (
	"bytes"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
)

// What a client can make the host remember or say again is bounded in bytes: a
// request may be large, and there may be many clients.
const (
	maxName       = 256       // of what a client calls itself
	maxID         = 1 << 10   // of an id, and of a token for progress
	maxURI        = 8 << 10   // of a resource that it subscribes to, and of a root
	maxSubscribed = 256 << 10 // of the URIs of one conversation, or of one listen
	maxAnswers    = 16 << 20  // of the answers to one batch, which are kept until the last one is there
)

// oversized refuses a request that would be echoed at length.
func oversized(m *message.Request) *wire.Fault {
	switch {
	case len(m.ID) > maxID:
		return wire.BadRequest("the id is longer than " + strconv.Itoa(maxID) + " bytes")
	case len(m.Meta.Token) > maxID:
		return wire.BadParams("progressToken is longer than " + strconv.Itoa(maxID) + " bytes")
	}
	return nil
}

// A batch weighs the answers to an array of requests.
type batch struct{ bytes atomic.Int64 }

// holds reports whether there is room for an answer of n bytes. Small ones,
// errors among them, always find some: there are only so many in a batch.
func (b *batch) holds(n int) bool {
	if n <= 4<<10 {
		return true
	}
	if b.bytes.Add(int64(n)) <= maxAnswers {
		return true
	}
	b.bytes.Add(int64(-n))
	return false
}

// tooLarge takes the place of an answer that a batch does not hold.
var tooLarge = &wire.Fault{Code: wire.CodeServer, Message: "limit: the answers to this batch are too large",
	Details: "the request was served; ask again for its answer alone, if it may be repeated"}

// remembered cuts what is kept of a client's introduction.
func remembered(p *message.Peer) *message.Peer {
	if name := p.Client.Name; len(name) > maxName {
		p.Client.Name = strings.Clone(strings.ToValidUTF8(name[:maxName], ""))
	}
	return p
}

// shorten keeps nothing of a request but its id: it may stay open for long.
func (c *call) shorten() {
	id := bytes.Clone(c.msg.ID)
	c.msg = message.Request{}
	c.msg.ID = id
}

// urisWeigh returns how many bytes the URIs have, and whether each may be as
// long as it is.
func urisWeigh(uris []string) (n int, ok bool) {
	for _, u := range uris {
		if len(u) > maxURI {
			return 0, false
		}
		n += len(u)
	}
	return n, true
}
