package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// A call is one accepted request on its way to its answer.
type call struct {
	*Conversation
	msg       message.Request // its slices alias the request's own bytes
	method    string
	key       string // of its id
	via       Via
	out       wire.Outlet
	era       message.Era
	peer      *message.Peer
	ctx       context.Context // done when it is cancelled, and when it was answered
	stop      context.CancelFunc
	pulse     pulse
	cancelled bool // guarded by the registry
}

// begin returns a buffer with the start of the answer, or nil if the client
// cancelled the call. Either way nothing is said about the call any more, and
// its id is free.
func (c *call) begin() *wire.Buffer {
	c.pulse.end()
	if !c.calls.settle(c) {
		c.out.End(nil, nil)
		c.leave()
		return nil
	}
	return wire.NewAnswer(c.msg.ID)
}

// end sends the answer, which reports flt unless that is nil.
func (c *call) end(out *wire.Buffer, flt *wire.Fault) {
	out.B = append(out.B, '}')
	if b := c.via.batch; b != nil && !b.holds(len(out.B)) {
		out.Told(false)
		out.Free()
		out, flt = wire.NewAnswer(c.msg.ID), tooLarge
		out.B = append(flt.Append(out.B), '}')
	}
	c.out.End(out, flt)
	c.leave()
}

func (c *call) leave() {
	c.stop()
	c.calls.leave()
}

func (c *call) fail(flt *wire.Fault) {
	if out := c.begin(); out != nil {
		out.B = flt.Append(out.B)
		c.end(out, flt)
	}
}

// succeed answers with what add appends to the members of a result.
func (c *call) succeed(add func(*wire.List)) {
	out := c.begin()
	if out == nil {
		return
	}
	l := c.era.Open(out.B, "complete", nil)
	if add != nil {
		add(&l)
	}
	out.B = append(l.B, '}')
	c.end(out, nil)
}

// run runs a call that takes a slot.
func (c *call) run(f func(*call)) {
	c.pulse.start(c)
	begin := c.via.Begin
	if begin == nil {
		begin = c.lane.Begin
	}
	if err := begin(func() { f(c) }, c.via.batch == nil); err != nil {
		c.fail(tooBusy(err.Error()))
	}
}

// A purpose is what a call asks the Backend for, and how that is told.
type purpose struct {
	read  func(*message.Request) (sdk.Call, *wire.Fault)
	reply func(*call, *sdk.Result)
	fail  func(*call, error, *sdk.Call)
}

// work takes a call of some purpose to its end, round by round if it asks.
func (c *call) work(p *purpose) {
	if c.ctx.Err() != nil { // cancelled while it waited
		p.fail(c, &sdk.Error{Kind: sdk.Canceled, Op: "mcp.Call", What: "canceled before it ran"}, &sdk.Call{})
		return
	}
	sc, flt := p.read(&c.msg)
	if flt != nil {
		c.fail(flt)
		return
	}
	sc.Scope, sc.Client = c.scope, c.peer.Client
	var ok bool
	if sc.Roots, ok = c.roots.of(c); !ok {
		p.fail(c, &sdk.Error{Kind: sdk.Canceled, Op: "mcp.Call", What: "canceled before it ran"}, &sdk.Call{})
		return
	}
	q := inquiry{call: c, p: p, sc: &sc}
	defer q.end()
	if q.begin() || p == &tool && c.task(&sc) {
		return
	}
	if asker := c.room.o.Asker; asker != nil && !sc.Client.Form {
		sc.Client.Form = asker.Attached(sc.Scope, sc.Client.URL)
	}
	for round := 1; ; round++ {
		r, err := c.ask(sc)
		switch {
		case err != nil:
			p.fail(c, err, &sc)
			return
		case len(r.Questions) == 0:
			p.reply(c, &r)
			return
		}
		if !q.put(&r, round) {
			return
		}
	}
}

// ask calls the Backend. A panic below is that call's internal error.
func (c *call) ask(sc sdk.Call) (r sdk.Result, err error) {
	defer caught(&err)
	return c.room.b.Call(c.ctx, sc, c.pulse.emit)
}

// caught turns a panic into an error, which is internal by its nature.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// tool is the purpose of a tools/call.
var tool = purpose{
	read:  (*message.Request).ToolCall,
	reply: func(c *call, r *sdk.Result) { c.reply(r) },
	fail:  func(c *call, err error, sc *sdk.Call) { c.failed(err, sc.Tool) },
}

func (c *call) reply(r *sdk.Result) {
	if c.room.slots.Crowded() {
		runtime.Gosched() // others may be done as well: one write for all
	}
	if out := c.begin(); out != nil {
		c.carry(out)
		out.B = c.era.Result(out.B, r)
		c.end(out, nil)
	}
}

// failed answers a tools/call with what err means to the client (architecture,
// errors).
func (c *call) failed(err error, tool string) {
	if flt := c.room.protocolFault(err, tool); flt != nil {
		c.fail(flt)
		return
	}
	if flt := c.ended(err); flt != nil {
		c.fail(flt)
		return
	}
	r := c.room.failure(err, tool)
	c.reply(&r)
}

// failure is the result of a tools/call that failed with err.
func (r *Room) failure(err error, tool string) sdk.Result {
	out := sdk.Text(string(sdk.KindOf(err)) + ": " + err.Error())
	out.Failed = true
	r.report(&out, tool, message.ErrorReport(err), "skill/error")
	return out
}

// ended is the error of a call that was cancelled. The client's own
// cancellation sends no reply; this is the host's.
func (c *call) ended(err error) *wire.Fault {
	if c.ctx.Err() != nil && sdk.KindOf(err) == sdk.Canceled {
		return &wire.Fault{Code: wire.CodeServer, Message: "unavailable: the server is shutting down", Details: err.Error()}
	}
	return nil
}

// report attaches what a program should read of a failure. Clients check
// structured content against the tool's output schema even on failures, so
// where they know one the report goes into the metadata.
func (r *Room) report(out *sdk.Result, tool string, report json.RawMessage, metaKey string) {
	if r.lists.hasOutput(tool) {
		out.Meta = append(append(wire.AppendString([]byte("{"), metaKey), ':'), report...)
		out.Meta = append(out.Meta, '}')
		return
	}
	out.Structured = report
}
