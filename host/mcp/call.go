package mcp

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/skillhost/skill/sdk"
)

// A call is one accepted request on its way to its answer.
type call struct {
	front     *front
	msg       message // its slices alias the request's own line
	method    string
	key       string // of its id
	batch     *batch
	era       era
	peer      *peer
	ctx       context.Context // done when it is cancelled, and when it was answered
	stop      context.CancelFunc
	pulse     pulse
	desk      atomic.Pointer[desk] // that answers it, or nil
	cancelled bool                 // guarded by the registry
}

// begin returns a buffer with the start of the answer, or nil if the client
// cancelled the call. Either way nothing is said about the call any more, and
// its id is free.
func (c *call) begin() *buffer {
	c.pulse.end()
	if !c.front.calls.settle(c) {
		if c.batch != nil {
			c.batch.done(nil)
		}
		c.leave()
		return nil
	}
	out := newBuffer()
	out.b = append(append(append(out.b, `{"jsonrpc":"2.0","id":`...), c.msg.envelope.id...), ',')
	return out
}

// end sends the answer.
func (c *call) end(out *buffer) {
	out.b = append(out.b, '}')
	if c.batch != nil {
		c.batch.done(out)
	} else {
		out.b = append(out.b, '\n')
		c.front.w.send(out)
	}
	c.leave()
}

func (c *call) leave() {
	c.stop()
	c.front.calls.leave()
}

func (c *call) fail(flt *fault) {
	if out := c.begin(); out != nil {
		out.b = flt.append(out.b)
		c.end(out)
	}
}

// succeed answers with a ready result.
func (c *call) succeed(result raw) {
	if out := c.begin(); out != nil {
		out.b = append(append(out.b, `"result":`...), result...)
		c.end(out)
	}
}

func (c *call) reply(r *sdk.Result) {
	if c.front.slots.crowded() {
		runtime.Gosched() // others may be done as well: one write for all
	}
	if out := c.begin(); out != nil {
		out.b = c.era.result(out.b, r)
		c.end(out)
	}
}

// failed answers with what err means to the client (architecture, errors).
func (c *call) failed(err error, tool string) {
	if flt := c.front.protocolFault(err, tool); flt != nil {
		c.fail(flt)
		return
	}
	if c.ctx.Err() != nil && sdk.KindOf(err) == sdk.Canceled {
		// The client's own cancellation sends no reply; this is the host's.
		c.fail(&fault{code: codeServer, message: "unavailable: the server is shutting down", details: err.Error()})
		return
	}
	r := sdk.Text(string(sdk.KindOf(err)) + ": " + err.Error())
	r.Failed = true
	c.report(&r, tool, errorReport(err), "skill/error")
	c.reply(&r)
}

// report attaches what a program should read of a failure. Clients check
// structured content against the tool's output schema even on failures, so
// where they know one the report goes into the metadata.
func (c *call) report(r *sdk.Result, tool string, report raw, metaKey string) {
	if c.front.lists.hasOutput(tool) {
		r.Meta = append(append(appendString([]byte("{"), metaKey), ':'), report...)
		r.Meta = append(r.Meta, '}')
		return
	}
	r.Structured = report
}

// callTool runs a tools/call.
func (c *call) callTool() {
	if c.ctx.Err() != nil { // cancelled while it waited
		c.failed(&sdk.Error{Kind: sdk.Canceled, Op: "mcp.Call", What: "canceled before it ran"}, "")
		return
	}
	sc, flt := c.toolCall()
	if flt != nil {
		c.fail(flt)
		return
	}
	for round := 1; ; round++ {
		r, err := c.run(sc)
		switch {
		case err != nil:
			c.failed(err, sc.Tool)
			return
		case len(r.Questions) == 0:
			c.reply(&r)
			return
		case !c.peer.canAsk(r.Questions):
			c.needsUser(&r, sc.Tool)
			return
		case c.era.modern:
			c.inputRequired(&r)
			return
		case round == maxRounds:
			c.failed(&sdk.Error{Kind: sdk.Limit, Op: "mcp.Call",
				What: fmt.Sprintf("the tool asked its user more than %d times", maxRounds)}, sc.Tool)
			return
		}
		c.front.slots.leave() // a human may think for long: hold nothing meanwhile
		answers, err := c.front.asks.ask(c, r.Questions)
		if !c.front.slots.reenter(c.ctx) {
			err = &sdk.Error{Kind: sdk.Canceled, Op: "mcp.Call", What: "canceled while it waited for an answer"}
		}
		switch {
		case err == errGone:
			c.needsUser(&r, sc.Tool)
			return
		case err != nil:
			c.failed(err, sc.Tool)
			return
		}
		sc.Answers, sc.State = answers, r.State
	}
}

// toolCall reads the parameters of a tools/call.
func (c *call) toolCall() (sdk.Call, *fault) {
	p := &c.msg.params
	none := sdk.Call{}
	if !isObject(c.msg.envelope.params) {
		return none, badParams("params is not an object")
	}
	tool, ok := text(p.name)
	if !ok || tool == "" {
		return none, badParams("name is not a string")
	}
	if !isNull(p.meta) && !isObject(p.meta) {
		return none, badParams("_meta is not an object")
	}
	sc := sdk.Call{Tool: tool, Scope: c.front.o.Scope, Client: c.peer.client,
		Trace: traceparent(c.msg.meta.trace), Narrow: c.msg.meta.narrow}
	if !isNull(p.arguments) {
		if !isObject(p.arguments) {
			return none, badParams("arguments is not an object")
		}
		sc.Args = p.arguments
	}
	if !isNull(p.state) {
		if sc.State, ok = text(p.state); !ok {
			return none, badParams("requestState is not a string")
		}
	}
	if !isNull(p.responses) {
		var err error
		if sc.Answers, err = answers(p.responses); err != nil {
			return none, badParams("inputResponses: " + err.Error())
		}
	}
	return sc, nil
}

// run calls the Backend. A panic below is that call's internal error.
func (c *call) run(sc sdk.Call) (r sdk.Result, err error) {
	defer caught(&err)
	return c.front.b.Call(c.ctx, sc, c.pulse.emit)
}

// caught turns a panic into an error, which is internal by its nature.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// traceparent returns v if it is a W3C trace parent, because it goes into
// records that others read.
func traceparent(v raw) string {
	t, _ := text(v)
	if len(t) != 55 || t[2] != '-' || t[35] != '-' || t[52] != '-' {
		return ""
	}
	for i, c := range []byte(t) {
		if i != 2 && i != 35 && i != 52 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return t
}

// A registry knows the calls that are accepted and not yet answered.
type registry struct {
	mu     sync.Mutex
	calls  map[string]*call
	left   int // calls accepted whose answer is not yet handed to the writer
	max    int
	closed bool
	idle   chan struct{} // closed when closed and left is 0
}

func newRegistry(max int) *registry {
	return &registry{calls: map[string]*call{}, max: max, idle: make(chan struct{})}
}

func (r *registry) add(c *call) *fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return &fault{code: codeServer, message: "unavailable: the server is shutting down"}
	case r.calls[c.key] != nil:
		return &fault{code: codeInvalidRequest, message: "invalid request", details: "the id is in use by a request that has no answer yet"}
	case r.left >= r.max:
		return tooBusy("too many requests have no answer yet")
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
	r.left--
	r.checkIdle()
}

func (r *registry) checkIdle() {
	if r.closed && r.left == 0 {
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

func (r *registry) isShut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// shut accepts no more calls, shows those that are left to each, and returns a
// channel that is closed when all are answered.
func (r *registry) shut(each func([]*call)) <-chan struct{} {
	r.mu.Lock()
	var rest []*call
	if !r.closed {
		r.closed = true
		r.checkIdle()
		for _, c := range r.calls {
			rest = append(rest, c)
		}
	}
	r.mu.Unlock()
	each(rest)
	return r.idle
}

// slots bound the calls that run at once. Those beyond wait in a bounded queue.
type slots struct {
	mu      sync.Mutex
	cap     int
	running int
	queue   []func() // each takes over the slot of whoever calls it
}

// enter runs f in its own goroutine once there is a slot; false if too many
// wait already.
func (s *slots) enter(f func(), maxQueue int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running < s.cap {
		s.running++
		go s.work(f)
		return true
	}
	if len(s.queue) >= maxQueue {
		return false
	}
	s.queue = append(s.queue, func() { s.work(f) })
	return true
}

// first takes a slot if nothing runs.
func (s *slots) first() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running > 0 {
		return false
	}
	s.running = 1
	return true
}

// work runs f, which holds a slot, and hands the slot on.
func (s *slots) work(f func()) {
	f()
	s.leave()
}

// leave gives the caller's slot to the next that waits.
func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.running--
		return
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	go next()
}

// reenter waits for a slot, before those that have not begun; it reports
// whether ctx was still alive then. The caller holds a slot either way.
func (s *slots) reenter(ctx context.Context) bool {
	s.mu.Lock()
	if s.running < s.cap {
		s.running++
		s.mu.Unlock()
		return ctx.Err() == nil
	}
	mine := make(chan struct{})
	s.queue = append([]func(){func() { close(mine) }}, s.queue...)
	s.mu.Unlock()
	<-mine
	return ctx.Err() == nil
}

func (s *slots) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running > 1
}
