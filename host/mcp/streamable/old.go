package streamable

import (
	"net/http"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/streamable/head"
	"github.com/skillhost/skill/host/mcp/streamable/shelf"
	"github.com/skillhost/skill/host/mcp/wire"
)

// Clients of 2024-11-05 open one stream of events, which names an address; they
// post what they say there, and hear all answers on the stream.

// oldStream opens a session of that transport, which lasts as long as its
// stream.
func (h *Handler) oldStream(v *visit) *refusal {
	if no := h.gate.caller(v); no != nil {
		return no
	}
	if _, asEvents, _ := head.Accepts(v.r.Header); !asEvents {
		return &refusal{status: http.StatusNotAcceptable, what: "not acceptable", why: "a client must accept text/event-stream"}
	}
	if no := h.takeStream(v); no != nil {
		return no
	}
	defer h.leaveStream(v)
	s, no := h.start(v, "")
	if no != nil {
		return no
	}
	r := newReader(settings{hello: "event: endpoint\ndata: /message?sessionId=" + s.id + "\n\n"})
	s.apart.Attach(r.Reader, false)
	if !h.sessions.add(s) {
		h.sessions.end(s)
		return &refusal{status: http.StatusServiceUnavailable, what: "unavailable", why: "no session can be opened"}
	}
	defer h.sessions.end(s)
	defer h.sessions.leave(s)
	h.serve(v, s.apart, r)
	return nil
}

// oldMessage takes what a client of that transport says.
func (h *Handler) oldMessage(v *visit) *refusal {
	if no := h.gate.caller(v); no != nil {
		return no
	}
	if !head.IsJSON(v.r.Header) {
		return &refusal{status: http.StatusUnsupportedMediaType, what: "unsupported media type", why: "want application/json in UTF-8"}
	}
	ids := v.r.URL.Query()["sessionId"]
	if len(ids) != 1 {
		return bad("sessionId: want one")
	}
	s := h.sessions.enter(ids[0], v.scope.Caller, true)
	if s == nil {
		return &refusal{status: http.StatusNotFound, what: "session not found", why: "it has ended, or is not yours"}
	}
	defer h.sessions.leave(s)
	body, no := h.read(v)
	if no != nil {
		return no
	}
	var flt *wire.Fault
	if first(body) == '[' {
		_, flt = wire.Elements(body)
	} else {
		flt = wire.Parse(body, &wire.Envelope{}, nil)
	}
	if flt != nil {
		return &refusal{status: http.StatusBadRequest, code: flt.Code, what: flt.Message, why: flt.Details}
	}
	s.talk.Accept(body, conversation.Via{Out: old{s.apart}, Begin: s.talk.Begin})
	v.w.WriteHeader(http.StatusAccepted)
	return nil
}

// old is the Outlet of a request whose answer goes where all else goes.
type old struct{ *shelf.Stream }

// End sends the answer.
func (o old) End(b *wire.Buffer, _ *wire.Fault) {
	if b != nil {
		o.Send(b)
	}
}
