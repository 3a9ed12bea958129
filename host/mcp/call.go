package mcp

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// A call is one accepted request on its way to its answer.
type call struct {
	front     *front
	msg       message.Request // its slices alias the request's own line
	method    string
	key       string // of its id
	batch     *wire.Batch
	era       message.Era
	peer      *message.Peer
	ctx       context.Context // done when it is cancelled, and when it was answered
	stop      context.CancelFunc
	pulse     pulse
	desk      atomic.Pointer[desk] // that answers it, or nil
	cancelled bool                 // guarded by the registry
}

// begin returns a buffer with the start of the answer, or nil if the client
// cancelled the call. Either way nothing is said about the call any more, and
// its id is free.
func (c *call) begin() *wire.Buffer {
	c.pulse.end()
	if !c.front.calls.settle(c) {
		if c.batch != nil {
			c.batch.Done(nil)
		}
		c.leave()
		return nil
	}
	return wire.NewAnswer(c.msg.ID)
}

// end sends the answer.
func (c *call) end(out *wire.Buffer) {
	out.B = append(out.B, '}')
	if c.batch != nil {
		c.batch.Done(out)
	} else {
		out.B = append(out.B, '\n')
		c.front.w.Send(out)
	}
	c.leave()
}

func (c *call) leave() {
	c.stop()
	c.front.calls.leave()
}

func (c *call) fail(flt *wire.Fault) {
	if out := c.begin(); out != nil {
		out.B = flt.Append(out.B)
		c.end(out)
	}
}

// succeed answers with a ready result.
func (c *call) succeed(result raw) {
	if out := c.begin(); out != nil {
		out.B = append(append(out.B, `"result":`...), result...)
		c.end(out)
	}
}

func (c *call) reply(r *sdk.Result) {
	if c.front.slots.Crowded() {
		runtime.Gosched() // others may be done as well: one write for all
	}
	if out := c.begin(); out != nil {
		out.B = c.era.Result(out.B, r)
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
		c.fail(&wire.Fault{Code: wire.CodeServer, Message: "unavailable: the server is shutting down", Details: err.Error()})
		return
	}
	r := sdk.Text(string(sdk.KindOf(err)) + ": " + err.Error())
	r.Failed = true
	c.report(&r, tool, message.ErrorReport(err), "skill/error")
	c.reply(&r)
}

// report attaches what a program should read of a failure. Clients check
// structured content against the tool's output schema even on failures, so
// where they know one the report goes into the metadata.
func (c *call) report(r *sdk.Result, tool string, report raw, metaKey string) {
	if c.front.lists.hasOutput(tool) {
		r.Meta = append(append(wire.AppendString([]byte("{"), metaKey), ':'), report...)
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
	sc, flt := c.msg.ToolCall()
	if flt != nil {
		c.fail(flt)
		return
	}
	sc.Scope, sc.Client = c.front.o.Scope, c.peer.Client
	for round := 1; ; round++ {
		r, err := c.run(sc)
		switch {
		case err != nil:
			c.failed(err, sc.Tool)
			return
		case len(r.Questions) == 0:
			c.reply(&r)
			return
		case !c.peer.CanAsk(r.Questions):
			c.needsUser(&r, sc.Tool)
			return
		case c.era.Modern:
			c.inputRequired(&r)
			return
		case round == maxRounds:
			c.failed(&sdk.Error{Kind: sdk.Limit, Op: "mcp.Call",
				What: fmt.Sprintf("the tool asked its user more than %d times", maxRounds)}, sc.Tool)
			return
		}
		c.front.slots.Leave() // a human may think for long: hold nothing meanwhile
		answers, err := c.front.asks.ask(c, r.Questions)
		if !c.front.slots.Reenter(c.ctx) {
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
