package conversation

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/relay"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// maxBatch is how many messages one array may hold.
const maxBatch = 1000

// A Conversation is one client's: a stream of lines, an HTTP session, or one
// request that needs none.
type Conversation struct {
	room  *Room
	lane  relay.Lane // of its calls
	scope sdk.Scope
	out   wire.Outlet     // for what belongs to no request
	base  context.Context // of every call
	stop  context.CancelFunc
	calls registry
	asks  asks
	roots roots
	ears  ears
	client
	mailbox mailbox
}

// client is what is known of a client that introduced itself for good.
type client struct {
	legacy  atomic.Pointer[message.Peer]
	version atomic.Pointer[string] // negotiated
	inited  atomic.Bool            // notifications/initialized has come
	level   atomic.Int32           // least rank of the log messages it asked for; 0: none
}

// Open begins a conversation. out takes what belongs to no request; its End is
// not called. Nothing runs on after ctx is done and Close. Its calls may take all
// of the Room's slots.
func (r *Room) Open(ctx context.Context, scope sdk.Scope, out wire.Outlet) *Conversation {
	return r.OpenIn(ctx, r.slots.All(), scope, out)
}

// OpenIn is Open for a caller whose calls are to keep to a lane of the Room's
// slots.
func (r *Room) OpenIn(ctx context.Context, lane relay.Lane, scope sdk.Scope, out wire.Outlet) *Conversation {
	t := &Conversation{room: r, lane: lane, scope: scope, out: out}
	t.base, t.stop = context.WithCancel(ctx)
	t.calls.max = r.o.Concurrency + r.o.Queue
	t.asks.t, t.ears.t = t, t
	return t
}

// Via says how a message has come, and where its answer goes.
type Via struct {
	Out wire.Outlet

	// Begin runs a call; the error is that too many wait. single says that it may
	// be run in place. nil is the Begin of the Conversation's lane.
	Begin func(run func(), single bool) error

	batch *batch // that it is part of, or nil
}

// Accept takes one message or an array of them, which it keeps. It calls
// v.Out.End once.
func (t *Conversation) Accept(body []byte, v Via) {
	body = bytes.Trim(body, " \t\r\n")
	if len(body) == 0 || body[0] != '[' {
		t.one(body, v)
		return
	}
	messages, flt := wire.Elements(body)
	switch {
	case flt != nil:
	case len(messages) == 0:
		flt = wire.BadRequest("empty batch")
	case len(messages) > maxBatch:
		flt = wire.BadRequest("batch too long")
	}
	if flt != nil {
		Refuse(v.Out, nil, flt)
		return
	}
	v.Out, v.batch = wire.NewBatch(v.Out, len(messages)), &batch{}
	for _, m := range messages {
		t.one(m, v)
	}
}

func (t *Conversation) one(line []byte, v Via) {
	c := &call{}
	if flt := message.Parse(line, &c.msg); flt != nil {
		Refuse(v.Out, c.msg.ID, flt)
		return
	}
	t.take(c, v)
}

// Take is Accept for a message that was parsed already. Its slices are kept.
func (t *Conversation) Take(m *message.Request, v Via) { t.take(&call{msg: *m}, v) }

func (t *Conversation) take(c *call, v Via) {
	e := &c.msg.Envelope
	if e.Method == nil {
		t.asks.deliver(e)
		v.Out.End(nil, nil)
		return
	}
	method, _ := wire.Text(e.Method)
	if e.ID == nil {
		t.notification(method, &c.msg)
		v.Out.End(nil, nil)
		return
	}
	c.Conversation, c.method, c.via, c.out = t, method, v, v.Out
	c.request()
}

// Refuse answers what never became a request; id may be nil.
func Refuse(out wire.Outlet, id raw, flt *wire.Fault) {
	b := wire.NewAnswer(id)
	b.B = append(flt.Append(b.B), '}')
	out.End(b, flt)
}

// notification acts on the notifications that concern the host; an unknown one
// is ignored, as JSON-RPC demands.
func (t *Conversation) notification(method string, m *message.Request) {
	switch method {
	case "notifications/cancelled":
		if m.Members.RequestID == nil {
			return
		}
		if c := t.calls.cancel(wire.IDKey(m.Members.RequestID)); c != nil {
			c.stop()
		}
	case "notifications/initialized":
		if t.legacy.Load() != nil && t.inited.CompareAndSwap(false, true) {
			t.ears.legacy()
			t.attend()
		}
	case "notifications/roots/list_changed":
		t.roots.forget()
	}
}

// request takes one request through to an answer.
func (c *call) request() {
	t := c.Conversation
	if flt := oversized(&c.msg); flt != nil {
		Refuse(c.out, c.msg.ID, flt)
		return
	}
	c.key = wire.IDKey(c.msg.ID)
	c.ctx, c.stop = context.WithCancel(t.base)
	if flt := t.calls.add(c); flt != nil {
		c.stop()
		Refuse(c.out, c.msg.ID, flt)
		return
	}
	if flt := c.identify(); flt != nil {
		c.fail(flt)
		return
	}
	c.serve()
}

// identify finds out of which era a request is, and whose.
func (c *call) identify() *wire.Fault {
	m, r := &c.msg.Meta, c.room
	version, ok := wire.Text(m.Version)
	if !ok || version < message.ModernEra {
		if c.peer = c.legacy.Load(); c.peer == nil {
			c.peer = &nobody
		}
		return nil
	}
	c.era = message.Era{Modern: true, Server: r.server}
	if c.via.batch != nil {
		return wire.BadRequest("this revision has no batches")
	}
	if k := r.met.Load(); k != nil && bytes.Equal(k.version, m.Version) &&
		bytes.Equal(k.client, m.Client) && bytes.Equal(k.abilities, m.Abilities) {
		c.peer = k.peer
		return nil
	}
	p, flt := m.Introduce(version)
	if flt != nil {
		return flt
	}
	p = remembered(p)
	r.met.Store(&introduction{bytes.Clone(m.Version), bytes.Clone(m.Client), bytes.Clone(m.Abilities), p})
	c.peer = p
	return nil
}

// nobody is a client that has not introduced itself.
var nobody message.Peer

// Met reports whether the client has introduced itself, and as of which
// revision.
func (t *Conversation) Met() (version string, ok bool) {
	if v := t.version.Load(); v != nil {
		return *v, true
	}
	return "", false
}

// Begin runs a call beside whoever brings it, once there is a slot for it.
func (t *Conversation) Begin(run func(), _ bool) error { return t.lane.Begin(run, false) }

// Scope is the scope of every call.
func (t *Conversation) Scope() sdk.Scope { return t.scope }

// Deaf says that no answers of the client come any more: who waits for one is
// told so.
func (t *Conversation) Deaf() { t.asks.shut() }

// Shut accepts no more requests and ends subscriptions. It returns a channel
// that is closed when all requests are answered.
func (t *Conversation) Shut() <-chan struct{} {
	idle, open := t.calls.shut()
	for _, c := range open {
		if c.method == listenMethod {
			c.endListen()
		}
	}
	return idle
}

// Close cancels what still runs, and says nothing more.
func (t *Conversation) Close() {
	t.asks.shut()
	t.stop()
	t.ears.stop()
	t.mailbox.close()
}

// A registry knows the calls that are accepted and not yet answered.
type registry struct {
	mu     sync.Mutex
	calls  map[string]*call
	left   int // calls accepted whose answer is not yet handed over
	max    int
	closed bool
	idle   chan struct{} // made by shut, closed when left is 0
}

func (r *registry) add(c *call) *wire.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return &wire.Fault{Code: wire.CodeServer, Message: "unavailable: the server is shutting down"}
	case r.calls[c.key] != nil:
		return wire.BadRequest("the id is in use by a request that has no answer yet")
	case r.left >= r.max:
		return tooBusy("too many requests have no answer yet")
	}
	if r.calls == nil {
		r.calls = map[string]*call{}
	}
	r.calls[c.key] = c
	r.left++
	return nil
}

// settle frees the id of c and reports whether c is still to be answered.
func (r *registry) settle(c *call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c.key)
	return !c.cancelled
}

func (r *registry) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left--; r.closed && r.left == 0 {
		close(r.idle)
	}
}

// cancel marks the call with that id and returns it, or nil.
func (r *registry) cancel(key string) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[key]
	if c == nil || c.cancelled || c.method == "initialize" {
		return nil
	}
	c.cancelled = true
	return c
}

// shut accepts no more calls. It returns those that are left, and a channel
// that is closed when all are answered.
func (r *registry) shut() (idle <-chan struct{}, rest []*call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed, r.idle = true, make(chan struct{})
		if r.left == 0 {
			close(r.idle)
		}
	}
	for _, c := range r.calls {
		rest = append(rest, c)
	}
	return r.idle, rest
}
