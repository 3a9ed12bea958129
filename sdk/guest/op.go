package guest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/sdk"
)

// An Op is an operation that the host is doing. Many may be under way at once,
// and while a goroutine waits for one, others go on.
type Op struct {
	call   *Call
	name   string
	handle int32

	once  sync.Once
	done  atomic.Bool // reply and err are set, the handle is gone
	raw   []byte      // of reply
	reply sdk.Frame
	err   error
}

func (o *Op) fail(err error) {
	o.once.Do(func() { o.err = err })
	o.done.Store(true)
}

// Start begins the operation name, such as "http.request", with the members of
// header, a value that encodes as a JSON object (or nil), and blobs. Errors are
// reported by Wait.
func (c *Call) Start(name string, header any, blobs ...[]byte) *Op {
	o := &Op{call: c, name: name, handle: -1}
	b, err := request(name, header, blobs)
	if err != nil {
		o.fail(err)
		return o
	}
	if o.handle = c.port.start(b); o.handle < 0 {
		o.fail(misuse(name, o.handle))
	}
	return o
}

func request(name string, header any, blobs [][]byte) ([]byte, error) {
	op, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	h := []byte("{}")
	switch header := header.(type) {
	case nil:
	case json.RawMessage: // is JSON already
		h = header
	default:
		if h, err = json.Marshal(header); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(h) < 2 || h[0] != '{' {
		return nil, fmt.Errorf("%s: the header is not an object", name)
	}
	joined := make([]byte, 0, len(op)+len(h)+8)
	joined = append(append(joined, `{"op":`...), op...)
	if len(h) > 2 {
		joined = append(joined, ',')
	}
	return sdk.AppendFrame(nil, append(joined, h[1:]...), blobs...), nil
}

// Wait returns the reply. An error that the reply carries is an *sdk.Error,
// with kind sdk.Denied if the call has no capability for the operation. When
// the call is cancelled, Wait returns an error of kind sdk.Limit.
func (o *Op) Wait() (sdk.Frame, error) {
	o.once.Do(func() {
		if _, n := o.call.port.wait([]int32{o.handle}, -1); n < 0 {
			o.err = misuse(o.name, n)
		} else {
			o.reply, o.err = o.take()
		}
		o.call.port.drop(o.handle)
		o.done.Store(true)
	})
	return o.reply, o.err
}

func (o *Op) take() (sdk.Frame, error) {
	b, n := o.call.port.take(o.handle)
	if n < 0 {
		return sdk.Frame{}, misuse(o.name, n)
	}
	f, err := sdk.ParseFrame(b)
	if err != nil {
		return sdk.Frame{}, fmt.Errorf("%s: reply: %w", o.name, err)
	}
	if bytes.Contains(f.Header, errorMember) { // most replies are none, and need not be read for it
		var h struct {
			Error *sdk.Error `json:"error"`
		}
		if err := json.Unmarshal(f.Header, &h); err != nil {
			return sdk.Frame{}, fmt.Errorf("%s: reply: %w", o.name, err)
		}
		if h.Error != nil {
			return sdk.Frame{}, h.Error
		}
	}
	o.raw = b
	return f, nil
}

// errorMember is what a reply that is an error has, as the host writes it.
var errorMember = []byte(`"error"`)

// WaitAny waits until one of ops, which are of the same call, is done and
// returns its index. Wait then returns at once. The error has kind sdk.Limit
// if the call is cancelled.
func WaitAny(ops ...*Op) (int, error) { return waitAny(-1, ops) }

// WaitAnyFor is WaitAny for at most d: after that the index is -1. A d that is
// not above 0 only looks.
func WaitAnyFor(d time.Duration, ops ...*Op) (int, error) { return waitAny(max(d, 0), ops) }

// waitAny waits for at most d, and without end if d is negative.
func waitAny(d time.Duration, ops []*Op) (int, error) {
	if len(ops) == 0 {
		return 0, misuse("wait", sdk.ErrInval)
	}
	handles := make([]int32, len(ops))
	for i, o := range ops {
		if o.done.Load() {
			return i, nil
		}
		handles[i] = o.handle
	}
	i, n := ops[0].call.port.wait(handles, d)
	if n == sdk.ErrAgain {
		return -1, nil
	}
	return i, misuse("wait", min(n, 0))
}

// do starts an operation, waits for it and reads its header into reply.
func (c *Call) do(name string, header, reply any, blobs ...[]byte) ([][]byte, error) {
	f, err := c.Start(name, header, blobs...).Wait()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(f.Header, reply); err != nil {
		return nil, fmt.Errorf("%s: reply: %w", name, err)
	}
	return f.Blobs, nil
}

var errOver = &sdk.Error{Kind: sdk.Limit, What: "the call is cancelled or out of time"}

// misuse is the error of a negative return of the ABI; nil for others.
func misuse(op string, n int32) error {
	switch {
	case n >= 0:
		return nil
	case n == sdk.ErrCanceled:
		return errOver
	case n == sdk.ErrNoSys:
		return &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "this host has no such operation"}
	case n == sdk.ErrOverflow:
		return &sdk.Error{Kind: sdk.Limit, Op: op, What: "too large, or too many operations at once"}
	}
	return &sdk.Error{Kind: sdk.Guest, Op: op, What: fmt.Sprintf("the host refused it with %d", n)}
}
