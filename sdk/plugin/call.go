//go:build !wasip1

package plugin

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

type stream = grpc.BidiStreamingServer[wire.Message, wire.Message]

// server serves the tools that guest.Tool registered.
type server struct{}

// Run makes the calls that the host asks for on one stream, one after another.
func (server) Run(s stream) error {
	m, err := s.Recv()
	for err == nil {
		m, err = answer(s, m)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// answer makes the call that m begins, and returns the message after it.
func answer(s stream, m *wire.Message) (next *wire.Message, err error) {
	in, err := input(m)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(s.Context())
	defer cancel(nil)
	c := &call{stream: s, cancel: cancel, pending: map[uint32]chan []byte{}, next: make(chan received, 1)}
	defer time.AfterFunc(deaf, c.listen).Stop()
	frame, err := result(guest.Run(ctx, c, in))
	if err != nil {
		return nil, err
	}
	if err := c.finish(m.Id, frame); err != nil {
		return nil, err
	}
	c.once.Do(func() { c.receive() }) // unless it does so already
	r := <-c.next
	return r.m, r.err
}

// deaf is how long a call that asks for nothing does not listen to its stream:
// most are over by then, and have saved a goroutine and its switches.
const deaf = time.Millisecond

// input reads the message that begins a call.
func input(m *wire.Message) (in sdk.Input, err error) {
	if m.Kind != wire.Kind_CALL {
		return in, fmt.Errorf("a call begins with CALL, not %v", m.Kind)
	}
	f, err := sdk.ParseFrame(m.Body)
	if err != nil {
		return in, err
	}
	return in, json.Unmarshal(f.Header, &in)
}

// result is the frame of what a tool returned.
func result(r sdk.Result, err error) ([]byte, error) {
	var e *sdk.Error
	switch {
	case err == nil:
		return sdk.AppendResult(nil, r)
	case errors.As(err, &e):
		return sdk.AppendError(nil, e), nil
	}
	return nil, err
}

// A call is the host of one run: whatever the tool asks for rides the stream
// that its call came on.
type call struct {
	stream stream
	cancel context.CancelCauseFunc
	once   sync.Once     // receive runs once
	next   chan received // what it returned

	out  sync.Mutex // one message at a time
	over bool       // the result was sent

	mu      sync.Mutex
	pending map[uint32]chan []byte // operations, by id
	last    uint32
}

var _ guest.Host = (*call)(nil)

type received struct {
	m   *wire.Message
	err error
}

// send sends a message. After the result there is none: what a tool left
// running says would be taken for the next call's.
func (c *call) send(kind wire.Kind, id uint32, body []byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	if c.over {
		return errOver
	}
	return c.stream.Send(&wire.Message{Kind: kind, Id: id, Body: body})
}

var errOver = errors.New("the call is over")

// finish sends the result of the call with that number.
func (c *call) finish(number uint32, frame []byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	c.over = true
	return c.stream.Send(&wire.Message{Kind: wire.Kind_RESULT, Id: number, Body: frame})
}

// listen hears from now on replies and the request to stop.
func (c *call) listen() { c.once.Do(func() { go c.receive() }) }

// receive hands out replies, and ends the call's context when the host says so,
// until there is another message or the stream has ended.
func (c *call) receive() {
	for {
		m, err := c.stream.Recv()
		switch {
		case err != nil:
			c.cancel(context.Canceled)
		case m.Kind == wire.Kind_REPLY:
			if reply := c.take(m.Id); reply != nil {
				reply <- m.Body
			}
			continue
		case m.Kind == wire.Kind_STOP:
			c.cancel(stop(m.Body))
			continue
		}
		c.next <- received{m, err}
		return
	}
}

// take ends the operation id and returns where its reply goes, or nil if
// nobody waits for it any more.
func (c *call) take(id uint32) chan []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	reply := c.pending[id]
	delete(c.pending, id)
	return reply
}

// stop is the cause with which a call's context ends.
func stop(body []byte) error {
	s := &sdk.Stop{}
	if len(body) == 0 || json.Unmarshal(body, s) != nil {
		return &sdk.Error{Kind: sdk.Limit, What: "the call is cancelled or out of time"}
	}
	return s
}

// Do implements guest.Host.
func (c *call) Do(ctx context.Context, request sdk.Frame) ([]byte, error) {
	reply := make(chan []byte, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.pending[id] = reply
	c.mu.Unlock()
	c.listen()
	defer c.take(id)
	if err := c.send(wire.Kind_OP, id, assemble(request)); err != nil {
		return nil, &sdk.Error{Kind: sdk.Canceled, What: "the host is gone", Err: err}
	}
	select {
	case b := <-reply:
		if len(b) == 0 {
			return nil, &sdk.Error{Kind: sdk.Unavailable, What: "this host has no such operation"}
		}
		return b, nil
	case <-ctx.Done():
		return nil, &sdk.Error{Kind: sdk.Limit, What: "the call is cancelled or out of time"}
	}
}

// assemble is the frame that f was parsed from. Its header lists its blobs
// already, so this is not what sdk.AppendFrame does.
func assemble(f sdk.Frame) []byte {
	n := 4 + len(f.Header)
	for _, b := range f.Blobs {
		n += len(b)
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, n), uint32(len(f.Header)))
	out = append(out, f.Header...)
	for _, b := range f.Blobs {
		out = append(out, b...)
	}
	return out
}

// Emit implements guest.Host. What cannot be encoded is not said, and a host
// that is gone hears nothing: the call's context says so.
func (c *call) Emit(e sdk.Event) {
	kind, body, err := event(e)
	if err == nil {
		_ = c.send(kind, 0, body)
	}
}

// event encodes e as docs/abi.md has it.
func event(e sdk.Event) (kind wire.Kind, body []byte, err error) {
	switch e.Kind {
	case sdk.EventPartial:
		body, err = sdk.AppendContent(nil, e.Content)
		return wire.Kind_PARTIAL, body, err
	case sdk.EventProgress:
		body, err = json.Marshal(struct {
			Progress float64 `json:"progress"`
			Total    float64 `json:"total,omitempty"`
			Message  string  `json:"message,omitempty"`
		}{e.Progress, e.Total, e.Message})
		return wire.Kind_PROGRESS, body, err
	}
	body, err = json.Marshal(struct {
		Level   string `json:"level"`
		Message string `json:"message"`
	}{e.Level, e.Message})
	return wire.Kind_LOG, body, err
}
