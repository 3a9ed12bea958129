package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
)

// The names that the protocol gives to what only the SDK answers.
const (
	legacyLast   = "2025-11-25"
	listenMethod = "subscriptions/listen"
	ackMethod    = "notifications/subscriptions/acknowledged"
)

// maxListens bounds the parked subscriptions/listen: each is a session.
const maxListens = 16

// desks holds the SDK sessions: one per era, because a session's first request
// fixes its era; one for what a legacy client asks before it introduces
// itself; and one per subscriptions/listen, because a session knows only one.
type desks struct {
	f      *front
	server *gosdk.Server
	prefix string // of the ids under which the SDK knows requests
	next   int

	legacy, implicit, modern *desk

	mu   sync.Mutex
	open map[*desk]struct{}
	all  sync.WaitGroup
}

func newDesks(f *front) *desks {
	s := &desks{f: f, prefix: "skill:" + rand.Text() + ":", open: map[*desk]struct{}{}}
	s.server = gosdk.NewServer(&gosdk.Implementation{Name: f.o.Name, Version: f.o.Version}, &gosdk.ServerOptions{
		Instructions: f.o.Instructions,
		Logger:       slog.New(slog.DiscardHandler), // what it calls errors are the client's
		Capabilities: &gosdk.ServerCapabilities{
			Logging: &gosdk.LoggingCapabilities{},
			Tools:   &gosdk.ToolCapabilities{ListChanged: true},
		},
		SetCacheable: func(_ context.Context, _ gosdk.Request, c *gosdk.Cacheable) { c.CacheScope = cacheScope },
	})
	s.server.AddReceivingMiddleware(f.clients.overhear)
	return s
}

// forward lets the SDK answer c. It is called by the reader only.
func (s *desks) forward(c *call) {
	d, flt := s.pick(c)
	if flt != nil {
		c.fail(flt)
		return
	}
	c.desk.Store(d)
	s.next++
	d.take(c, s.prefix+strconv.Itoa(s.next))
	switch c.method {
	case "initialize": // what follows must find the client introduced
		s.f.w.Uncork()
		<-c.ctx.Done()
	case listenMethod:
		if s.f.calls.isShut() {
			d.cancel(c)
		}
	}
}

// pick returns the session that c belongs to.
func (s *desks) pick(c *call) (*desk, *wire.Fault) {
	met := s.f.clients.legacy.Load() != nil
	switch {
	case c.method == listenMethod && !c.era.Modern:
		return nil, &wire.Fault{Code: wire.CodeNoMethod, Message: "method not found", Details: listenMethod + " came with " + message.ModernEra}
	case c.method == listenMethod:
		if s.listening() >= maxListens {
			return nil, tooBusy("too many subscriptions")
		}
		return s.connect(c, nil)
	case c.era.Modern:
		return s.lazy(&s.modern, nil)
	case c.method == "initialize" && met:
		return nil, wire.BadRequest("initialize was answered before")
	case c.method == "initialize" && c.batch != nil:
		return nil, wire.BadRequest("initialize cannot be part of a batch")
	case c.method == "initialize" || met:
		return s.lazy(&s.legacy, nil)
	}
	return s.lazy(&s.implicit, &gosdk.ServerSessionState{
		InitializeParams:  &gosdk.InitializeParams{ProtocolVersion: legacyLast, Capabilities: &gosdk.ClientCapabilities{}},
		InitializedParams: &gosdk.InitializedParams{},
	})
}

func (s *desks) listening() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for d := range s.open {
		if d.listen != nil {
			n++
		}
	}
	return n
}

func (s *desks) lazy(d **desk, state *gosdk.ServerSessionState) (*desk, *wire.Fault) {
	if *d != nil {
		return *d, nil
	}
	fresh, flt := s.connect(nil, state)
	*d = fresh
	return fresh, flt
}

// connect opens a session, for listen alone if that is not nil.
func (s *desks) connect(listen *call, state *gosdk.ServerSessionState) (*desk, *wire.Fault) {
	d := &desk{s: s, listen: listen, in: make(chan jsonrpc.Message), gone: make(chan struct{}), calls: map[string]*call{}}
	session, err := s.server.Connect(context.Background(), d, &gosdk.ServerSessionOptions{State: state})
	if err != nil {
		return nil, s.f.protocolFault(err, "open a session")
	}
	d.session = session
	s.mu.Lock()
	s.open[d] = struct{}{}
	s.mu.Unlock()
	return d, nil
}

// close ends a session in the background.
func (s *desks) close(d *desk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.open[d]; !ok {
		return
	}
	delete(s.open, d)
	s.all.Go(func() {
		if err := d.session.Close(); err != nil {
			s.f.o.Logger.Warn("close a session", "err", err)
		}
	})
}

// shut ends all sessions and returns a channel that is closed when they have.
func (s *desks) shut() <-chan struct{} {
	s.mu.Lock()
	var open []*desk
	for d := range s.open {
		open = append(open, d)
	}
	s.mu.Unlock()
	for _, d := range open {
		s.close(d)
	}
	done := make(chan struct{})
	go func() {
		s.all.Wait()
		close(done)
	}()
	return done
}

// A desk is one SDK session seen from the wire: the mcp.Connection under it.
type desk struct {
	s       *desks
	listen  *call // the one subscriptions/listen it is for, or nil
	session *gosdk.ServerSession
	in      chan jsonrpc.Message
	gone    chan struct{}
	once    sync.Once

	mu    sync.Mutex
	calls map[string]*call // by the id that the SDK knows them under
}

// Connect makes a desk its own transport.
func (d *desk) Connect(context.Context) (gosdk.Connection, error) { return d, nil }

// SessionID is empty: a stream is one session.
func (d *desk) SessionID() string { return "" }

// Close ends the session's input.
func (d *desk) Close() error {
	d.once.Do(func() { close(d.gone) })
	return nil
}

// Read hands the SDK its next message.
func (d *desk) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-d.in:
		return m, nil
	case <-d.gone:
		return nil, io.EOF
	}
}

// Write takes what the SDK has to say.
func (d *desk) Write(_ context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok {
		return d.answer(r)
	}
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	out := wire.NewBuffer()
	out.B = append(append(out.B, d.exact(line)...), '\n')
	d.s.f.w.Send(out)
	if q, ok := m.(*jsonrpc.Request); ok && q.Method == ackMethod && d.listen != nil {
		var ack gosdk.SubscriptionsAcknowledgedParams
		if json.Unmarshal(q.Params, &ack) == nil && ack.Notifications.ToolsListChanged {
			d.s.f.notices.subscribe(d.listen)
		}
	}
	return nil
}

// exact puts the client's own spelling of a listen's id in place of the SDK's.
func (d *desk) exact(b []byte) []byte {
	if d.listen == nil {
		return b
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for alias := range d.calls {
		b = bytes.ReplaceAll(b, []byte(`"`+alias+`"`), d.listen.msg.ID)
	}
	return b
}

func (d *desk) answer(r *jsonrpc.Response) error {
	alias, _ := r.ID.Raw().(string)
	result := d.exact(r.Result)
	d.mu.Lock()
	c := d.calls[alias]
	delete(d.calls, alias)
	d.mu.Unlock()
	if c == nil {
		return nil
	}
	if d.listen != nil {
		d.s.f.notices.unsubscribe(c)
		d.s.close(d)
	}
	if r.Error == nil {
		c.succeed(result)
		return nil
	}
	flt := d.fault(r, c)
	if d.listen != nil && flt.Code == wire.CodeServer { // it ended with the stream, before it was parked
		l := wire.NewList([]byte(`{"resultType":"complete","_meta":{`))
		l.Raw(message.MetaListen, c.msg.ID)
		l.Raw(message.MetaServer, c.era.Server)
		c.succeed(append(l.B, "}}"...))
		return nil
	}
	c.fail(flt)
	return nil
}

// fault turns the SDK's error into one with a proper code.
func (d *desk) fault(r *jsonrpc.Response, c *call) *wire.Fault {
	flt, err := message.Refusal(r)
	if err != nil {
		return d.s.f.protocolFault(err, c.method)
	}
	switch {
	case flt.Code != 0: // else a plain Go error
	case d.s.f.calls.isShut():
		flt.Code = wire.CodeServer
	case c.method == "initialize":
		flt.Code = wire.CodeInvalidParams
	default:
		flt.Code = wire.CodeInvalidRequest
	}
	return flt
}

// take lets the session answer c under the given id.
func (d *desk) take(c *call, alias string) {
	d.mu.Lock()
	d.calls[alias] = c
	d.mu.Unlock()
	id, err := jsonrpc.MakeID(alias)
	if err != nil { // a string is an id
		c.fail(d.s.f.protocolFault(err, c.method))
		return
	}
	if !d.push(&jsonrpc.Request{ID: id, Method: c.method, Params: c.msg.Params}) {
		c.fail(&wire.Fault{Code: wire.CodeServer, Message: "unavailable: the server is shutting down"})
	}
}

// notify passes a notification on.
func (d *desk) notify(method string, params raw) {
	d.push(&jsonrpc.Request{Method: method, Params: params})
}

// cancel tells the session that c is cancelled.
func (d *desk) cancel(c *call) {
	d.mu.Lock()
	var alias string
	for a, k := range d.calls {
		if k == c {
			alias = a
		}
	}
	d.mu.Unlock()
	if alias != "" {
		d.notify("notifications/cancelled", append(wire.AppendString([]byte(`{"requestId":`), alias), '}'))
	}
}

func (d *desk) push(m jsonrpc.Message) bool {
	select {
	case d.in <- m:
		return true
	case <-d.gone:
		return false
	}
}

// overhear notes what the SDK is told about the legacy client.
func (s *clients) overhear(next gosdk.MethodHandler) gosdk.MethodHandler {
	return func(ctx context.Context, method string, req gosdk.Request) (gosdk.Result, error) {
		if p, ok := req.GetParams().(*gosdk.SetLoggingLevelParams); ok && p != nil {
			rank := message.LevelRank(string(p.Level))
			if rank == 0 {
				return nil, &jsonrpc.Error{Code: wire.CodeInvalidParams, Message: "unknown log level " + strconv.Quote(wire.Clip(string(p.Level)))}
			}
			s.level.Store(int32(rank))
		}
		r, err := next(ctx, method, req)
		if p, ok := req.GetParams().(*gosdk.InitializeParams); ok && p != nil && err == nil {
			s.legacy.Store(message.Initialized(p))
		}
		return r, err
	}
}
