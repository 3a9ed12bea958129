package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"slices"
	"sync"
	"sync/atomic"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/sdk"
)

// A front is one Serve.
type front struct {
	b    Backend
	o    Options
	w    *lineWriter
	base context.Context // of every call
	stop context.CancelFunc

	calls   *registry
	slots   *slots
	desks   *desks
	asks    *asks
	lists   *lists
	notices *notices
	relay   *relay
	clients *clients
}

func newFront(ctx context.Context, b Backend, w io.Writer, o Options) *front {
	f := &front{b: b, o: o, w: newLineWriter(w)}
	f.base, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	f.calls = newRegistry(o.Concurrency + o.Queue)
	f.slots = &slots{cap: o.Concurrency}
	f.clients = newClients(o)
	f.desks = newDesks(f)
	f.asks = newAsks(f)
	f.lists = &lists{}
	f.notices = newNotices(f)
	f.relay = newRelay(f)
	return f
}

// line accepts one line, which the reader will overwrite.
func (f *front) line(line []byte) {
	line = bytes.Trim(line, " \t\r")
	if len(line) == 0 {
		return
	}
	line = bytes.Clone(line)
	if line[0] != '[' {
		f.accept(line, nil)
		return
	}
	messages, flt := elements(line)
	switch {
	case flt != nil:
	case len(messages) == 0:
		flt = &fault{code: codeInvalidRequest, message: "invalid request", details: "empty batch"}
	case len(messages) > maxBatch:
		flt = &fault{code: codeInvalidRequest, message: "invalid request", details: "batch too long"}
	}
	if flt != nil {
		f.refuse(nil, nil, flt)
		return
	}
	b := &batch{w: f.w, left: 1}
	for _, m := range messages {
		f.accept(m, b)
	}
	b.done(nil)
}

// accept takes one message, which is its own to keep.
func (f *front) accept(line []byte, b *batch) {
	c := &call{front: f, batch: b}
	flt := parse(line, &c.msg)
	e := &c.msg.envelope
	switch {
	case flt != nil:
		f.refuse(e.id, b, flt)
	case e.method == nil:
		f.asks.deliver(e)
	default:
		method, _ := text(e.method)
		if e.id == nil {
			f.notification(method, &c.msg)
			return
		}
		c.method = method
		f.request(c)
	}
}

// notification acts on the notifications that concern the front; an unknown
// one is ignored, as JSON-RPC demands.
func (f *front) notification(method string, m *message) {
	switch method {
	case "notifications/cancelled":
		if m.params.requestID == nil {
			return
		}
		if c := f.calls.cancel(idKey(m.params.requestID)); c != nil {
			f.cancel(c)
		}
	case "notifications/initialized":
		if f.clients.ready() {
			f.desks.legacy.notify(method, m.envelope.params)
		}
	}
}

// cancel ends the work on c.
func (f *front) cancel(c *call) {
	if d := c.desk.Load(); d != nil {
		d.cancel(c)
		return
	}
	c.stop()
}

func (f *front) cancelListens(calls []*call) {
	for _, c := range calls {
		if c.method == listenMethod {
			f.cancel(c)
		}
	}
}

// request takes one request through to an answer.
func (f *front) request(c *call) {
	c.key = idKey(c.msg.envelope.id)
	c.ctx, c.stop = context.WithCancel(f.base)
	if flt := f.calls.add(c); flt != nil {
		c.stop()
		f.refuse(c.msg.envelope.id, c.batch, flt)
		return
	}
	if c.batch != nil {
		c.batch.add()
	}
	flt := f.clients.identify(c)
	if flt == nil && c.era.modern && c.batch != nil {
		flt = &fault{code: codeInvalidRequest, message: "invalid request", details: "this revision has no batches"}
	}
	switch {
	case flt != nil:
		c.fail(flt)
	case c.method == "tools/call":
		c.pulse.start(c)
		if !f.relay.begin(c) {
			c.fail(tooBusy("too many calls are waiting"))
		}
	case c.method == "tools/list":
		go c.listTools()
	case c.method == "shutdown" && !c.era.modern:
		c.succeed(raw("{}"))
	default:
		f.desks.forward(c)
	}
}

// refuse answers what never became a call.
func (f *front) refuse(id raw, b *batch, flt *fault) {
	if id == nil {
		id = raw("null")
	}
	out := newBuffer()
	out.b = append(append(append(out.b, `{"jsonrpc":"2.0","id":`...), id...), ',')
	out.b = append(flt.append(out.b), '}')
	if b != nil {
		b.add()
		b.done(out)
		return
	}
	out.b = append(out.b, '\n')
	f.w.send(out)
}

// idKey returns the form under which an id is compared.
func idKey(id raw) string {
	if id[0] == '"' && bytes.IndexByte(id, '\\') >= 0 {
		if t, ok := text(id); ok {
			return `"` + t + `"`
		}
	}
	return string(id)
}

const maxBatch = 1000

// A batch gathers the answers to an array of requests.
type batch struct {
	w    *lineWriter
	mu   sync.Mutex
	left int
	out  []*buffer
}

func (b *batch) add() {
	b.mu.Lock()
	b.left++
	b.mu.Unlock()
}

// done adds one answer, or none, and sends the array when it is complete.
func (b *batch) done(answer *buffer) {
	b.mu.Lock()
	if answer != nil {
		b.out = append(b.out, answer)
	}
	b.left--
	complete := b.left == 0 && len(b.out) > 0
	b.mu.Unlock()
	if !complete {
		return
	}
	whole := newBuffer()
	whole.b = append(whole.b, '[')
	for i, a := range b.out {
		if i > 0 {
			whole.b = append(whole.b, ',')
		}
		whole.b = append(whole.b, a.b...)
		a.free()
	}
	whole.b = append(whole.b, "]\n"...)
	b.w.send(whole)
}

// clients knows who is at the other end: for good once initialize was
// answered, per request since 2026-07-28.
type clients struct {
	server raw // this server's Implementation
	legacy atomic.Pointer[peer]
	last   atomic.Pointer[introduction]
	inited atomic.Bool  // notifications/initialized has come
	level  atomic.Int32 // least rank of the log messages it asked for; 0: none
}

// A peer is what a client said of itself.
type peer struct {
	client          sdk.Client
	sampling, roots bool
}

// An introduction is a peer as a request's _meta spelled it.
type introduction struct {
	version, client, abilities raw
	peer                       *peer
}

func newClients(o Options) *clients {
	server, err := json.Marshal(gosdk.Implementation{Name: o.Name, Version: o.Version})
	if err != nil { // strings only: cannot happen
		server = raw("{}")
	}
	return &clients{server: server}
}

// ready notes that the legacy client is initialized; false if it never began.
func (s *clients) ready() bool {
	if s.legacy.Load() == nil {
		return false
	}
	s.inited.Store(true)
	return true
}

// identify finds out of which era a request is, and whose.
func (s *clients) identify(c *call) *fault {
	m := &c.msg.meta
	version, ok := text(m.version)
	if !ok || version < modernEra {
		c.peer = s.legacy.Load()
		if c.peer == nil {
			c.peer = &peer{}
		}
		return nil
	}
	c.era = era{modern: true, server: s.server}
	if k := s.last.Load(); k != nil && bytes.Equal(k.version, m.version) &&
		bytes.Equal(k.client, m.client) && bytes.Equal(k.abilities, m.abilities) {
		c.peer = k.peer
		return nil
	}
	p, flt := introduce(m, version)
	if flt != nil {
		return flt
	}
	s.last.Store(&introduction{bytes.Clone(m.version), bytes.Clone(m.client), bytes.Clone(m.abilities), p})
	c.peer = p
	return nil
}

// introduce checks what a modern request must say of its client.
func introduce(m *meta, version string) (*peer, *fault) {
	p := &peer{}
	if m.client != nil {
		var who gosdk.Implementation
		if !isObject(m.client) || json.Unmarshal(m.client, &who) != nil {
			return nil, badParams("invalid _meta field " + metaClient)
		}
		p.client.Name = who.Name
	}
	var can struct {
		Elicitation *gosdk.ElicitationCapabilities `json:"elicitation"`
		Sampling    *struct{}                      `json:"sampling"`
		Roots       *struct{}                      `json:"roots"`
	}
	if !isObject(m.abilities) || json.Unmarshal(m.abilities, &can) != nil {
		return nil, badParams("missing or invalid _meta field " + metaAbilities)
	}
	p.elicits(can.Elicitation)
	p.sampling, p.roots = can.Sampling != nil, can.Roots != nil
	supported := gosdk.SupportedProtocolVersions()
	if !slices.Contains(supported, version) {
		data, err := json.Marshal(gosdk.UnsupportedProtocolVersionData{Supported: supported, Requested: clip(version)})
		if err != nil { // strings only: cannot happen
			data = nil
		}
		return nil, &fault{code: gosdk.CodeUnsupportedProtocolVersion, message: "unsupported protocol version", data: data}
	}
	return p, nil
}

// elicits notes how the client can ask its user. A bare {} means by form.
func (p *peer) elicits(e *gosdk.ElicitationCapabilities) {
	if e != nil {
		p.client.Form = e.Form != nil || e.URL == nil
		p.client.URL = e.URL != nil
	}
}
