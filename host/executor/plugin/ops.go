package plugin

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

const (
	maxOpen     = 64      // operations under way at once
	maxStarted  = 1 << 20 // operations of one call
	maxOpHeader = 4 << 20 // bytes of a request's header
)

// ops are the operations of one call. Each runs in a goroutine of its own. The
// frames that the host holds for a plugin may take as much memory as the plugin
// itself.
type ops struct {
	call   *call
	ctx    context.Context // done at the soft deadline, and when the call ends; nil before the first
	cancel func()
	done   sync.WaitGroup

	mu      sync.Mutex
	open    map[uint32]bool
	started int
	running int   // until the reply is sent
	held    int64 // bytes of requests and replies
}

// begin makes what the first operation needs.
func (o *ops) begin() {
	c := o.call
	o.open = map[uint32]bool{}
	ctx, cancel := context.WithCancel(c.job.Soft)
	unhook := context.AfterFunc(c.ctx, cancel)
	o.ctx, o.cancel = ctx, func() { unhook(); cancel() }
}

// idle reports whether no operation is under way.
func (o *ops) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.running == 0
}

// wait ends all operations and waits until they are gone.
func (o *ops) wait() {
	if o.ctx != nil {
		o.cancel()
		o.done.Wait()
	}
}

// start begins the operation of a request. What is wrong with the operation is
// in its reply; an error means that the plugin broke the protocol.
func (o *ops) start(id uint32, request []byte) error {
	frame, err := sdk.ParseFrame(request)
	if err != nil {
		return misbehaved("the body of its OP is not a frame")
	}
	if o.ctx == nil {
		o.begin()
	}
	size := int64(len(request))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[id] {
		return misbehaved(fmt.Sprintf("it used the id %d for a second operation before the first was answered", id))
	}
	var refusal *sdk.Error
	switch o.started++; {
	case o.ctx.Err() != nil:
		refusal = &sdk.Error{Kind: sdk.Limit, What: "the call is cancelled or out of time"}
	case len(o.open) >= 2*maxOpen || o.started > maxStarted:
		return misbehaved("it does not stop to ask for operations")
	case len(o.open) >= maxOpen:
		refusal = &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("more than %d operations at once", maxOpen)}
	case o.held+size > o.call.job.Limits.Memory:
		refusal = &sdk.Error{Kind: sdk.Limit, What: "the request does not fit beside those that are under way", Hint: "limits.memory"}
	case len(frame.Header) > maxOpHeader:
		refusal = &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the header of the request exceeds %d bytes", maxOpHeader)}
	}
	o.open[id] = true
	o.held += size
	o.running++
	o.done.Go(func() {
		var reply []byte
		unknown := false
		if refusal != nil {
			reply = sdk.AppendError(nil, refusal)
		} else {
			reply, unknown = executor.Perform(o.ctx, o.call.job.Ops, frame)
		}
		o.answer(id, size, reply, unknown)
	})
	return nil
}

// answer sends the reply of operation id, whose request had size bytes.
func (o *ops) answer(id uint32, size int64, reply []byte, unknown bool) {
	o.mu.Lock()
	o.held -= size
	if o.held+int64(len(reply)) > min(o.call.job.Limits.Memory, math.MaxInt32) {
		reply = sdk.AppendError(nil, &sdk.Error{Kind: sdk.Limit, What: "the reply does not fit beside those that are under way", Hint: "limits.memory"})
	}
	size = int64(len(reply))
	o.held += size
	o.mu.Unlock()
	if unknown {
		reply = nil
	}
	// The id is free before the plugin can have the reply, not only after.
	o.mu.Lock()
	delete(o.open, id)
	o.mu.Unlock()
	_ = o.call.send(wire.Kind_REPLY, id, reply) // if that fails, receiving does too
	o.mu.Lock()
	o.held -= size
	o.running--
	o.mu.Unlock()
}
