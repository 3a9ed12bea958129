// Package streamable is the front door over HTTP: one handler for the Streamable
// HTTP transport of every revision, stateless and with sessions, and for the
// HTTP+SSE transport of 2024-11-05. It says who may come in by which address,
// how much may be said at once, and carries messages; what they mean is package
// conversation's.
//
// It does not know what a skill is, who may call what, how a token is checked,
// or how a tool runs.
//
// docs/http.md documents what it accepts and refuses.
package streamable

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/streamable/bound"
	"github.com/skillhost/skill/host/mcp/streamable/mirror"
	"github.com/skillhost/skill/host/mcp/streamable/shelf"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// Options set up a Handler. The zero value of each field but Room means its
// default.
type Options struct {
	Room  *conversation.Room
	Scope sdk.Scope // of every call; Caller and Rights are Authenticate's, if there is one

	// Authenticate says who is behind a request. Its error may be a *Refusal; any
	// other is a 500. nil lets everybody in as Scope says.
	Authenticate func(*http.Request) (caller, rights string, err error)

	// Metadata tells everybody where tokens are to be had, at
	// /.well-known/oauth-protected-resource and below. nil: 404.
	Metadata http.Handler

	// Pages are for people, at pagesPath and below. They are shown to whoever has
	// come in as far as that, and check the rest themselves. nil: 404.
	Pages http.Handler

	Origins   []string      // other web pages that may talk to this server, such as "https://chat.example.com"
	Hosts     []string      // names of this server beyond those of the loopback
	Rate      float64       // requests per second of one caller; 0: any
	Burst     int           // of them at once; 0: twice the Rate
	PollAfter time.Duration // after which the client of a session (since 2025-11-25) is to fetch an answer later; 0: never
	Limits    Limits
	Logger    *slog.Logger    // for the operator; discards
	Ended     func(sdk.Scope) // is told when a session has ended, of which no further call comes; nil: nobody is
}

// Limits bound what clients can take up. The zero value of each field means its
// default.
type Limits struct {
	Connections int           // that Serve has open; 4096
	HeaderTime  time.Duration // for the headers of a request; 10 s
	Body        int64         // bytes of a request; 4 MiB
	BodyTime    time.Duration // to send them; 30 s
	WriteTime   time.Duration // for the client to take what is written at once; 20 s
	Sessions    int           // 1000
	SessionIdle time.Duration // after which a session ends; 30 min
	Streams     int           // of server-sent events that are open; 2048
	Events      int           // bytes of events kept for each session; 1 MiB
	KeepAlive   time.Duration // silence after which a stream says that it lives; 25 s
	Share       float64       // the part of slots, sessions, streams and events that one caller may have, if Authenticate tells callers apart; a quarter
	primeAfter  time.Duration // until an answer that does not come becomes a stream
	sweepEvery  time.Duration // of the search for idle sessions
}

// eventsOfAll bounds the bytes of events that are kept for all sessions.
const eventsOfAll = 256 << 20

func (l Limits) withDefaults() Limits {
	number(&l.Body, 4<<20)
	number(&l.BodyTime, 30*time.Second)
	number(&l.WriteTime, 20*time.Second)
	number(&l.Sessions, 1000)
	number(&l.SessionIdle, 30*time.Minute)
	number(&l.Streams, 2048)
	number(&l.Events, 1<<20)
	number(&l.Connections, 4096)
	number(&l.HeaderTime, 10*time.Second)
	number(&l.KeepAlive, 25*time.Second)
	number(&l.Share, 0.25)
	number(&l.primeAfter, 50*time.Millisecond)
	number(&l.sweepEvery, min(l.SessionIdle/4, 30*time.Second))
	return l
}

// number makes n the default unless it says something.
func number[N int | int64 | float64 | time.Duration](n *N, otherwise N) {
	if *n <= 0 {
		*n = otherwise
	}
}

// A Handler serves one house to the clients of one address.
type Handler struct {
	o        Options
	room     *conversation.Room
	base     context.Context // of sessions, and of legacy requests without one
	stop     context.CancelFunc
	gate     gate
	params   mirror.Params
	sessions sessions
	streams  bound.Count
	events   shelf.Budget
	work     bound.Work
}

// New returns a Handler. Shutdown ends it.
func New(o Options) *Handler {
	o.Limits = o.Limits.withDefaults()
	number(&o.Burst, max(1, int(2*o.Rate)))
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Scope.Session == "" {
		o.Scope.Session = rand.Text()
	}
	h := &Handler{o: o, room: o.Room}
	h.base, h.stop = context.WithCancel(context.Background())
	h.gate.init(&h.o)
	h.params.Room = o.Room
	h.sessions.h = h
	h.events.Each, h.events.All = o.Limits.Events, eventsOfAll
	h.streams.What, h.streams.All = "streams", o.Limits.Streams
	h.sessions.count.What, h.sessions.count.All = "sessions", o.Limits.Sessions
	if o.Authenticate != nil {
		h.streams.Each, h.sessions.count.Each = h.shareOf(o.Limits.Streams), h.shareOf(o.Limits.Sessions)
		h.events.Caller = int64(h.shareOf(eventsOfAll))
	}
	return h
}

// shareOf is one caller's part of what there is n of.
func (h *Handler) shareOf(n int) int { return max(1, int(h.o.Limits.Share*float64(n))) }

// open begins a conversation with the caller of a request. Callers who are told
// apart have a share of the slots each, so that none can hold them all.
func (h *Handler) open(ctx context.Context, scope sdk.Scope, out wire.Outlet) *conversation.Conversation {
	lane := h.room.Slots().All()
	if h.o.Authenticate != nil {
		lane = h.room.Slots().Share(scope.Caller, h.o.Limits.Share)
	}
	return h.room.OpenIn(ctx, lane, scope, out)
}

// A visit is one request on its way to an answer.
type visit struct {
	w     http.ResponseWriter
	r     *http.Request
	scope sdk.Scope
	conn  *http.ResponseController

	events bool // the client would rather have events than one text
}

// ServeHTTP answers one request. Every refusal is a JSON-RPC error.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := &visit{w: w, r: r, scope: h.o.Scope, conn: http.NewResponseController(w)}
	if r.ContentLength != 0 { // also for what is never read: it is, before the next request
		_ = v.conn.SetReadDeadline(time.Now().Add(h.o.Limits.BodyTime)) // a connection without deadlines is a test's
	}
	if r.URL.Path == "/healthz" {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "ok\n")
		return
	}
	if no := h.answer(v); no != nil {
		h.refuse(v, no)
	}
}

// answer routes a request by its address.
func (h *Handler) answer(v *visit) *refusal {
	if !h.gate.isHost(v.r) {
		return &refusal{status: http.StatusForbidden, what: "forbidden", why: "this server has no such name; the operator can allow it"}
	}
	if rest, ok := strings.CutPrefix(v.r.URL.Path, metadata); ok && h.o.Metadata != nil && (rest == "" || rest[0] == '/') {
		h.o.Metadata.ServeHTTP(v.w, v.r)
		return nil
	}
	if h.o.Pages != nil && strings.HasPrefix(v.r.URL.Path, pagesPath) {
		h.hurry(v)
		h.o.Pages.ServeHTTP(v.w, v.r)
		return nil
	}
	if no := h.gate.origin(v); no != nil {
		return no
	}
	handle, methods := h.route(v)
	if handle == nil {
		return &refusal{status: http.StatusNotFound, what: "not found", why: "there is nothing at this address"}
	}
	if no := h.gate.method(v, methods); no != nil || v.r.Method == http.MethodOptions {
		return no
	}
	if !h.work.Begin() {
		return &refusal{status: http.StatusServiceUnavailable, what: "unavailable", why: "the server is shutting down", retry: 5 * time.Second}
	}
	defer h.work.End()
	return handle(v)
}

// route returns what answers at the address of a request, and to which methods.
func (h *Handler) route(v *visit) (handle func(*visit) *refusal, methods string) {
	switch v.r.URL.Path {
	case "/mcp":
		return h.mcp, "GET, POST, DELETE"
	case "/sse":
		return h.oldStream, "GET"
	case "/message":
		return h.oldMessage, "POST"
	}
	return nil, ""
}

// pagesPath is where Options.Pages are.
const pagesPath = "/answer/"

// metadata is where RFC 9728 puts it.
const metadata = "/.well-known/oauth-protected-resource"

// mcp answers at /mcp.
func (h *Handler) mcp(v *visit) *refusal {
	if no := h.gate.caller(v); no != nil {
		return no
	}
	if no := h.task(v); no != nil {
		return no
	}
	switch v.r.Method {
	case http.MethodGet:
		return h.get(v)
	case http.MethodDelete:
		return h.delete(v)
	}
	return h.post(v)
}

// task scopes the calls of a request that has no session by its task_id.
func (h *Handler) task(v *visit) *refusal {
	if v.r.URL.RawQuery == "" {
		return nil
	}
	ids := v.r.URL.Query()["task_id"]
	if len(ids) == 0 {
		return nil
	}
	if len(ids) > 1 || !taskID.MatchString(ids[0]) {
		return bad("task_id: want one, of at most 128 letters, digits and . _ - :")
	}
	v.scope.Session = "task:" + ids[0]
	return nil
}

var taskID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// takeStream counts one more open stream.
func (h *Handler) takeStream(v *visit) *refusal {
	if err := h.streams.Take(v.scope.Caller); err != nil {
		return &refusal{status: http.StatusServiceUnavailable, what: "limit", why: err.Error(), retry: time.Second}
	}
	return nil
}

func (h *Handler) leaveStream(v *visit) { h.streams.Leave(v.scope.Caller) }
