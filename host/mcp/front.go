package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync/atomic"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/relay"
	"github.com/skillhost/skill/host/mcp/wire"
)

// A front is one Serve.
type front struct {
	b    Backend
	o    Options
	w    *wire.Writer
	base context.Context // of every call
	stop context.CancelFunc

	calls   *registry
	slots   *relay.Slots
	desks   *desks
	asks    *asks
	lists   *lists
	notices *notices
	relay   *relay.Relay
	clients *clients
}

func newFront(ctx context.Context, b Backend, w io.Writer, o Options) *front {
	f := &front{b: b, o: o, w: wire.NewWriter(w)}
	f.base, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	f.calls = newRegistry(o.Concurrency + o.Queue)
	f.slots = relay.NewSlots(o.Concurrency, o.Queue)
	f.clients = newClients(o)
	f.desks = newDesks(f)
	f.asks = newAsks(f)
	f.lists = &lists{}
	f.notices = newNotices(f)
	f.relay = relay.New(f.w, f.slots, f.line)
	return f
}

// line accepts one line, which the reader will overwrite, or refuses one that
// was too long.
func (f *front) line(line []byte, long error) {
	if long != nil {
		f.refuse(nil, nil, wire.BadRequest(long.Error()))
		return
	}
	line = bytes.Trim(line, " \t\r")
	if len(line) == 0 {
		return
	}
	line = bytes.Clone(line)
	if line[0] != '[' {
		f.accept(line, nil)
		return
	}
	messages, flt := wire.Elements(line)
	switch {
	case flt != nil:
	case len(messages) == 0:
		flt = wire.BadRequest("empty batch")
	case len(messages) > maxBatch:
		flt = wire.BadRequest("batch too long")
	}
	if flt != nil {
		f.refuse(nil, nil, flt)
		return
	}
	b := f.w.Batch()
	for _, m := range messages {
		f.accept(m, b)
	}
	b.Done(nil)
}

// accept takes one message, which is its own to keep.
func (f *front) accept(line []byte, b *wire.Batch) {
	c := &call{front: f, batch: b}
	flt := message.Parse(line, &c.msg)
	e := &c.msg.Envelope
	switch {
	case flt != nil:
		f.refuse(e.ID, b, flt)
	case e.Method == nil:
		f.asks.deliver(e)
	default:
		method, _ := wire.Text(e.Method)
		if e.ID == nil {
			f.notification(method, &c.msg)
			return
		}
		c.method = method
		f.request(c)
	}
}

// notification acts on the notifications that concern the front; an unknown
// one is ignored, as JSON-RPC demands.
func (f *front) notification(method string, m *message.Request) {
	switch method {
	case "notifications/cancelled":
		if m.Members.RequestID == nil {
			return
		}
		if c := f.calls.cancel(wire.IDKey(m.Members.RequestID)); c != nil {
			f.cancel(c)
		}
	case "notifications/initialized":
		if f.clients.ready() {
			f.desks.legacy.notify(method, m.Params)
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
	c.key = wire.IDKey(c.msg.ID)
	c.ctx, c.stop = context.WithCancel(f.base)
	if flt := f.calls.add(c); flt != nil {
		c.stop()
		f.refuse(c.msg.ID, c.batch, flt)
		return
	}
	if c.batch != nil {
		c.batch.Add()
	}
	flt := f.clients.identify(c)
	if flt == nil && c.era.Modern && c.batch != nil {
		flt = wire.BadRequest("this revision has no batches")
	}
	switch {
	case flt != nil:
		c.fail(flt)
	case c.method == "tools/call":
		c.pulse.start(c)
		if !f.relay.Begin(c.callTool, c.batch == nil) {
			c.fail(tooBusy("too many calls are waiting"))
		}
	case c.method == "tools/list":
		go c.listTools()
	case c.method == "shutdown" && !c.era.Modern:
		c.succeed(raw("{}"))
	default:
		f.desks.forward(c)
	}
}

// refuse answers what never became a call.
func (f *front) refuse(id raw, b *wire.Batch, flt *wire.Fault) {
	out := wire.NewAnswer(id)
	out.B = append(flt.Append(out.B), '}')
	if b != nil {
		b.Add()
		b.Done(out)
		return
	}
	out.B = append(out.B, '\n')
	f.w.Send(out)
}

const maxBatch = 1000

// clients knows who is at the other end: for good once initialize was
// answered, per request since 2026-07-28.
type clients struct {
	server raw // this server's Implementation
	legacy atomic.Pointer[message.Peer]
	last   atomic.Pointer[introduction]
	inited atomic.Bool  // notifications/initialized has come
	level  atomic.Int32 // least rank of the log messages it asked for; 0: none
}

// An introduction is a peer as a request's _meta spelled it.
type introduction struct {
	version, client, abilities raw
	peer                       *message.Peer
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
func (s *clients) identify(c *call) *wire.Fault {
	m := &c.msg.Meta
	version, ok := wire.Text(m.Version)
	if !ok || version < message.ModernEra {
		c.peer = s.legacy.Load()
		if c.peer == nil {
			c.peer = &message.Peer{}
		}
		return nil
	}
	c.era = message.Era{Modern: true, Server: s.server}
	if k := s.last.Load(); k != nil && bytes.Equal(k.version, m.Version) &&
		bytes.Equal(k.client, m.Client) && bytes.Equal(k.abilities, m.Abilities) {
		c.peer = k.peer
		return nil
	}
	p, flt := m.Introduce(version)
	if flt != nil {
		return flt
	}
	s.last.Store(&introduction{bytes.Clone(m.Version), bytes.Clone(m.Client), bytes.Clone(m.Abilities), p})
	c.peer = p
	return nil
}
