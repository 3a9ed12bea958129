//go:build !wasip1

package plugin

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
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

// Run makes one call.
func (server) Run(s stream) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	in, err := input(first)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(s.Context())
	defer cancel(nil)
	c := &call{stream: s, pending: map[uint32]chan []byte{}}
	c.listen = sync.OnceFunc(func() { go c.receive(cancel) }) // ends with the stream, which ends when Run returns
	defer time.AfterFunc(deaf, c.listen).Stop()
	frame, err := result(guest.Run(ctx, c, in))
	if err != nil {
		return err
	}
	return c.send(wire.Kind_RESULT, 0, frame)
}

// deaf is how long a call that asks for nothing does not listen to its stream:
// most are over by then, and have saved a goroutine and its switches.
const deaf = time.Millisecond

// input reads the message that begins a call.
func input(m *wire.Message) (in sdk.Input, err error) {
	if m.Kind != wire.Kind_CALL {
		return in, fmt.Errorf("a stream begins with CALL, not %v", m.Kind)
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
	out    sync.Mutex // one message at a time
	listen func()     // from now on, for replies and the request to stop

	mu      sync.Mutex
	pending map[uint32]chan []byte // operations, by id
	last    uint32
}

var _ guest.Host = (*call)(nil)

func (c *call) send(kind wire.Kind, id uint32, body []byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	return c.stream.Send(&wire.Message{Kind: kind, Id: id, Body: body})
}

// receive hands out replies until the stream has ended, and ends the call's
// context when the host says so.
func (c *call) receive(cancel context.CancelCauseFunc) {
	for {
		m, err := c.stream.Recv()
		if err != nil {
			cancel(context.Canceled)
			return
		}
		switch m.Kind {
		case wire.Kind_REPLY:
			if reply := c.take(m.Id); reply != nil {
				reply <- m.Body
			}
		case wire.Kind_STOP:
			cancel(stop(m.Body))
		}
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
