package streamable

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/streamable/head"
	"github.com/skillhost/skill/host/mcp/streamable/mirror"
	"github.com/skillhost/skill/host/mcp/streamable/shelf"
	"github.com/skillhost/skill/host/mcp/wire"
)

// A raw is a JSON value as it stood in a message; nil if it was absent.
type raw = json.RawMessage

const (
	versionHeader = mirror.Version
	sessionHeader = "Mcp-Session-Id"
	eventHeader   = "Last-Event-Id"
)

const (
	batchless    = "2025-06-18" // the first revision without batches
	primed       = "2025-11-25" // the first whose streams begin with an event
	listenMethod = "subscriptions/listen"
)

// post takes a message, or several in the revisions that have batches, and
// finds out of which era they are.
func (h *Handler) post(v *visit) *refusal {
	if !head.IsJSON(v.r.Header) {
		return &refusal{status: http.StatusUnsupportedMediaType, what: "unsupported media type", why: "want application/json in UTF-8"}
	}
	asJSON, asEvents, rather := head.Accepts(v.r.Header)
	if !asJSON || !asEvents {
		return &refusal{status: http.StatusNotAcceptable, what: "not acceptable", why: "a client must accept application/json and text/event-stream"}
	}
	v.events = rather
	body, no := h.read(v)
	if no != nil {
		return no
	}
	if first(body) == '[' {
		return h.batch(v, body)
	}
	m := &message.Request{}
	if flt := message.Parse(body, m); flt != nil {
		return &refusal{status: http.StatusBadRequest, code: flt.Code, what: flt.Message, why: flt.Details, id: m.ID}
	}
	version, said, no := single(v.r.Header, versionHeader)
	if no != nil {
		return no
	}
	meta, _ := wire.Text(m.Meta.Version)
	if version >= message.ModernEra || meta >= message.ModernEra {
		return h.modern(v, m, version, meta)
	}
	if said && !slices.Contains(gosdk.SupportedProtocolVersions(), version) {
		return unsupported(version, m.ID)
	}
	id, has, no := single(v.r.Header, sessionHeader)
	if no != nil {
		return no
	}
	method, _ := wire.Text(m.Method)
	switch {
	case has:
		s, no := h.session(v, id, version)
		if no != nil {
			return no
		}
		defer h.sessions.leave(s)
		return s.post(v, m.ID != nil && m.Method != nil, func(t *conversation.Conversation, via conversation.Via) { t.Take(m, via) })
	case method == "initialize" && m.ID != nil:
		return h.initialize(v, m)
	}
	return h.alone(v, m.ID != nil && m.Method != nil, func(t *conversation.Conversation, via conversation.Via) { t.Take(m, via) })
}

// batch takes an array of messages.
func (h *Handler) batch(v *visit, body []byte) *refusal {
	messages, flt := wire.Elements(body)
	if flt != nil {
		return &refusal{status: http.StatusBadRequest, code: flt.Code, what: flt.Message, why: flt.Details}
	}
	version, said, no := single(v.r.Header, versionHeader)
	if no != nil {
		return no
	}
	if version >= batchless {
		return bad("this revision has no batches")
	}
	if said && !slices.Contains(gosdk.SupportedProtocolVersions(), version) {
		return unsupported(version, nil)
	}
	if len(messages) == 0 {
		return bad("empty batch")
	}
	if no := h.gate.charge(v, len(messages)-1); no != nil { // one was counted
		return no
	}
	asks := false
	for _, m := range messages {
		var e wire.Envelope
		asks = asks || wire.Parse(m, &e, nil) != nil || e.ID != nil && e.Method != nil
	}
	take := func(t *conversation.Conversation, via conversation.Via) { t.Accept(body, via) }
	id, has, no := single(v.r.Header, sessionHeader)
	if no != nil {
		return no
	}
	if !has {
		return h.alone(v, asks, take)
	}
	s, no := h.session(v, id, version)
	if no != nil {
		return no
	}
	defer h.sessions.leave(s)
	if negotiated, _ := s.talk.Met(); negotiated >= batchless {
		return bad("this revision has no batches")
	}
	return s.post(v, asks, take)
}

// alone takes the messages of a legacy client that wants no session. Its going
// away does not cancel them: these revisions say so.
func (h *Handler) alone(v *visit, asks bool, take func(*conversation.Conversation, conversation.Via)) *refusal {
	t := h.open(h.base, v.scope, nowhere{})
	defer t.Close()
	a := h.newAnswer(v, false)
	take(t, conversation.Via{Out: a})
	a.wait()
	return nil
}

// modern takes a message of an era without sessions.
func (h *Handler) modern(v *visit, m *message.Request, version, meta string) *refusal {
	method, _ := wire.Text(m.Method)
	flt := mirror.Check(v.r.Header, m, version, meta)
	if flt == nil && method == "tools/call" {
		flt = h.params.Check(v.r.Context(), v.scope, v.r.Header, m)
	}
	if flt != nil {
		return &refusal{status: http.StatusBadRequest, code: flt.Code, what: flt.Message, why: flt.Details, id: m.ID}
	}
	if method == listenMethod && m.ID != nil {
		return h.listen(v, m)
	}
	// The request's context ends with the request: nothing is left to close.
	t := h.open(v.r.Context(), v.scope, nowhere{})
	a := h.newAnswer(v, true)
	t.Take(m, conversation.Via{Out: a})
	a.wait()
	return nil
}

// listen serves a stream of changes until the client or this server goes.
func (h *Handler) listen(v *visit, m *message.Request) *refusal {
	if no := h.takeStream(v); no != nil {
		return no
	}
	defer h.leaveStream(v)
	t := h.open(v.r.Context(), v.scope, nowhere{})
	defer h.work.Drained(func() { t.Shut() })()
	r := newReader(settings{modern: true, prime: never})
	s := shelf.New("", v.scope.Caller, &h.events).Open(r.Reader)
	t.Take(m, conversation.Via{Out: s})
	h.serve(v, s, r)
	return nil
}

// status is that of an answer that reports flt, in the modern era.
func status(flt *wire.Fault) int {
	if flt != nil {
		switch flt.Code {
		case wire.CodeNoMethod:
			return http.StatusNotFound
		case wire.CodeInvalidParams, wire.CodeInvalidRequest, gosdk.CodeHeaderMismatch, gosdk.CodeMissingRequiredClientCapabilities, gosdk.CodeUnsupportedProtocolVersion:
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}

func unsupported(version string, id raw) *refusal {
	data, err := json.Marshal(gosdk.UnsupportedProtocolVersionData{Supported: gosdk.SupportedProtocolVersions(), Requested: wire.Clip(version)})
	if err != nil { // strings only: cannot happen
		data = nil
	}
	return &refusal{status: http.StatusBadRequest, code: gosdk.CodeUnsupportedProtocolVersion, what: "unsupported protocol version", data: data, id: id}
}

// single returns the value of a header that may be there once.
func single(h http.Header, key string) (value string, ok bool, no *refusal) {
	switch values := h[key]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, bad("more than one header " + key)
}

func first(body []byte) byte {
	if rest := bytes.TrimLeft(body, " \t\r\n"); len(rest) > 0 {
		return rest[0]
	}
	return 0
}

// An answer is the Outlet of one POST without a session: one JSON text, or a
// stream of events if there is more to say than the answer.
type answer struct {
	h      *Handler
	v      *visit
	modern bool
	done   chan struct{}

	mu     sync.Mutex
	events bool // the stream has begun
}

var answers = sync.Pool{New: func() any { return &answer{done: make(chan struct{}, 1)} }}

func (h *Handler) newAnswer(v *visit, modern bool) *answer {
	a := answers.Get().(*answer)
	a.h, a.v, a.modern, a.events = h, v, modern, false
	return a
}

// wait returns when the answer was written. Nobody may use a any more.
func (a *answer) wait() {
	<-a.done
	a.h, a.v = nil, nil
	answers.Put(a)
}

// Send writes a notification as an event. It waits for the client: the tool
// that says so much can wait as well.
func (a *answer) Send(b *wire.Buffer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.events {
		a.events = true
		beginEvents(a.v)
	}
	a.h.writeEvent(a.v, b)
}

// End writes the answer.
func (a *answer) End(b *wire.Buffer, f *wire.Fault) {
	a.mu.Lock()
	switch {
	case a.events && b != nil:
		a.h.writeEvent(a.v, b)
	case a.events:
	case b == nil:
		a.v.w.WriteHeader(http.StatusAccepted)
	default:
		code := http.StatusOK
		if a.modern {
			code = status(f)
		}
		if a.v.events && code == http.StatusOK {
			beginEvents(a.v)
			a.h.writeEvent(a.v, b)
			break
		}
		_ = a.h.writeJSON(a.v, code, b) // a client that is gone needs no answer
	}
	a.mu.Unlock()
	a.done <- struct{}{}
}

// nowhere is the Outlet of what belongs to no request where nobody could hear
// it.
type nowhere struct{}

func (nowhere) Send(b *wire.Buffer) { b.Free() }

func (nowhere) End(*wire.Buffer, *wire.Fault) {}
