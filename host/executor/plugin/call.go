package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

const (
	maxEvent    = 64 << 10        // bytes of a progress or log message; longer ones are dropped
	maxMessages = 2 * maxEvents   // of a call besides operations; those after maxEvents are dropped
	maxLastWord = 4 << 10         // bytes of a result that always fits
	maxLinger   = 2 * time.Second // until a process ends after its connection
)

// A call is one call of a process. Until it is over, a stream is its own.
type call struct {
	p      *process
	job    *executor.Job
	hard   context.Context
	ctx    context.Context // of its operations: done when hard is, when something went wrong, and when the call is over
	cancel context.CancelCauseFunc
	out    sync.Mutex // one message at a time
	ops    ops

	mu      sync.Mutex
	stream  *stream // nil before and after
	spent   int64   // bytes, against limits.output
	events  int
	failure error // why the host ended the stream
}

// call makes one call. well says that the plugin kept to the protocol, so that
// it may be called again.
func (p *process) call(hard context.Context, j *executor.Job) (r sdk.Result, well bool, err error) {
	c := &call{p: p, job: j, hard: hard}
	// The deadline stays here: a plugin that knew it would end the stream first.
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(hard))
	defer func() { c.leave(well) }()
	defer context.AfterFunc(hard, func() { c.end(context.Cause(hard)) })()
	p.enter(c)
	defer p.leave(c)
	input := j.Input
	url, done := p.guest.Open(input.Call, j.Grant)
	defer done()
	input.Proxy = url
	c.ops.call = c
	frame, err := c.converse(input)
	if err != nil || !c.ops.idle() {
		c.end(nil) // whoever still sends something does not wait until it is read
	}
	c.ops.wait()
	p.stdout.drain()
	p.stderr.drain()
	if err == nil {
		err = c.broken() // by what it printed
	}
	if err != nil {
		return sdk.Result{}, false, c.outcome(err)
	}
	r, err = sdk.ParseResult(frame)
	var e *sdk.Error
	switch {
	case err == nil:
		return r, true, nil
	case errors.As(err, &e):
		return sdk.Result{}, true, executor.GuestError(e)
	}
	return sdk.Result{}, false, c.outcome(misbehaved("its result is not a frame: " + clip(err.Error(), 256)))
}

// converse says what is to be done and listens until there is a result, of
// which it returns the frame.
func (c *call) converse(in sdk.Input) (result []byte, err error) {
	header, err := json.Marshal(&in)
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Internal, Op: "plugin.Run", What: "the call's input", Err: err}
	}
	s, err := c.p.stream(c.ctx, maxMessage(c.job.Limits))
	if err != nil {
		return nil, err
	}
	if !c.begin(s) {
		return nil, context.Cause(c.ctx)
	}
	if err := c.send(wire.Kind_CALL, s.calls, sdk.AppendFrame(nil, header)); err != nil {
		return nil, err
	}
	defer c.watchSoft()()
	for {
		m := &wire.Message{}
		if err := s.RecvMsg(m); err != nil {
			return nil, err
		}
		if m.Kind == wire.Kind_RESULT {
			switch {
			case m.Id != s.calls:
				return nil, misbehaved(fmt.Sprintf("it sent the result of call %d in call %d of the stream", m.Id, s.calls))
			case !c.fits(len(m.Body)):
				return nil, c.overflow()
			}
			return append([]byte{}, m.Body...), nil
		}
		if err := c.hear(m); err != nil {
			return nil, err
		}
	}
}

// hear deals with a message that is not the result.
func (c *call) hear(m *wire.Message) error {
	kind, ok := map[wire.Kind]int32{wire.Kind_PROGRESS: sdk.EmitProgress, wire.Kind_PARTIAL: sdk.EmitPartial, wire.Kind_LOG: sdk.EmitLog}[m.Kind]
	switch {
	case m.Kind == wire.Kind_OP:
		return c.ops.start(m.Id, m.Body)
	case !ok:
		return misbehaved(fmt.Sprintf("it sent %s, which a plugin does not send", word(m.Kind)))
	}
	c.spend(len(m.Body) + 1)
	if err := c.broken(); err != nil {
		return err
	}
	if kind != sdk.EmitPartial {
		if !json.Valid(m.Body) {
			return misbehaved(fmt.Sprintf("the body of its %s is not JSON", word(m.Kind)))
		}
		if len(m.Body) > maxEvent {
			return nil
		}
	}
	event, ok := executor.ParseEvent(kind, m.Body)
	switch {
	case !ok && kind == sdk.EmitPartial:
		return misbehaved("its partial content is not a frame")
	case c.count():
		if ok {
			c.job.Emit(event)
		}
	case c.flooded():
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the plugin sent more than %d messages in one call", maxMessages)}
	}
	return nil
}

// watchSoft tells the plugin when it is to finish. The function that it
// returns ends that.
func (c *call) watchSoft() func() {
	told := make(chan struct{})
	stop := context.AfterFunc(c.job.Soft, func() {
		defer close(told)
		var body []byte
		if s := (*sdk.Stop)(nil); errors.As(context.Cause(c.job.Soft), &s) {
			body, _ = json.Marshal(s) // a string and a number
		}
		_ = c.send(wire.Kind_STOP, 0, body) // if that fails, receiving does too
	})
	return func() {
		if !stop() {
			c.end(nil)
			<-told
		}
	}
}

// send sends one message. It blocks while the plugin does not read, until the
// stream has ended.
func (c *call) send(kind wire.Kind, id uint32, body []byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	c.mu.Lock()
	s := c.stream
	c.mu.Unlock()
	err := s.SendMsg(&wire.Message{Kind: kind, Id: id, Body: body})
	if errors.Is(err, io.EOF) {
		return nil // the reason is what is received
	}
	return err
}

// begin makes s the call's, unless that has ended already.
func (c *call) begin(s *stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		s.end()
		return false
	}
	c.stream = s
	return true
}

// end ends the call and its stream.
func (c *call) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel(why)
	if c.stream != nil {
		c.stream.end()
	}
}

// leave gives the stream back, if the call went well and nothing has ended the
// stream. Nothing that comes later reaches it.
func (c *call) leave(well bool) {
	c.mu.Lock()
	s := c.stream
	c.stream = nil
	ended := c.ctx.Err() != nil
	c.cancel(nil)
	c.mu.Unlock()
	switch {
	case s == nil:
	case well && !ended:
		c.p.keep(s)
	default:
		s.end()
	}
}

// fail ends the stream, for the first reason that is given.
func (c *call) fail(why error) {
	c.mu.Lock()
	if c.failure == nil {
		c.failure = why
	}
	c.mu.Unlock()
	c.end(why)
}

// broken returns why the host ended the stream, or nil.
func (c *call) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// spend counts n bytes of output, and ends the call if that is too much.
func (c *call) spend(n int) {
	c.mu.Lock()
	c.spent += int64(n)
	over := c.spent > c.job.Limits.Output
	c.mu.Unlock()
	if over {
		c.fail(c.overflow())
	}
}

// fits counts the n bytes of a result. A small one always fits, so that a
// plugin can say why there is no other.
func (c *call) fits(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent += int64(n)
	return c.spent <= c.job.Limits.Output || n <= maxLastWord
}

// count counts an event, and says whether it may still be emitted.
func (c *call) count() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events++
	return c.events <= maxEvents
}

// flooded reports whether there were so many events that it is an attack.
func (c *call) flooded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events > maxMessages
}

func (c *call) overflow() error {
	return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool's output exceeds %d bytes", c.job.Limits.Output), Hint: "limits.output in its manifest"}
}

// misbehaved is the error of a plugin that does not keep to the protocol.
func misbehaved(what string) error {
	return &sdk.Error{Kind: sdk.Guest, Op: "plugin.Run", What: "the plugin broke the protocol: " + what, Hint: "see docs/plugin.md"}
}

func word(k wire.Kind) string {
	if _, ok := wire.Kind_name[int32(k)]; ok {
		return k.String()
	}
	return fmt.Sprintf("a message of kind %d", k)
}

// outcome turns whatever ended the stream into what the caller is told. The
// host's own reasons come before what the transport says of them.
func (c *call) outcome(err error) error {
	if c.hard.Err() != nil {
		return executor.Ended(c.hard)
	}
	if why := c.broken(); why != nil {
		err = why
	}
	var own *sdk.Error
	if errors.As(err, &own) {
		if own.Kind == sdk.Guest && own.Err == nil {
			own.Err = c.p.last()
		}
		return err
	}
	if errors.Is(err, io.EOF) {
		return &sdk.Error{Kind: sdk.Guest, What: "the tool ended without a result", Err: c.p.last()}
	}
	s := status.Convert(err)
	switch {
	case s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max"):
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the plugin sent a message of more than %d bytes", maxMessage(c.job.Limits)), Hint: "limits.output in its manifest"}
	case s.Code() == codes.Unavailable, s.Code() == codes.Canceled: // by the transport
		return c.crashed()
	}
	return &sdk.Error{Kind: sdk.Guest, What: "the plugin failed the call: " + s.Code().String() + ": " + clip(s.Message(), 512), Err: c.p.last()}
}

// crashed says what became of a process whose connection broke.
func (c *call) crashed() error {
	how, over := c.p.over(maxLinger)
	if !over {
		return &sdk.Error{Kind: sdk.Guest, What: "the plugin closed its connection in the middle of the call", Err: c.p.last()}
	}
	if s, err := c.p.guest.Wait(); err == nil && s.OOM {
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool needs more memory than %d bytes", c.job.Limits.Memory), Err: c.p.last(), Hint: "limits.memory in its manifest"}
	}
	return &sdk.Error{Kind: sdk.Guest, What: "the plugin " + how + " in the middle of the call", Err: c.p.last()}
}
