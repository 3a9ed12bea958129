package wasm

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

const (
	maxOpen     = 64      // handles open or operations running at once
	maxStarted  = 4096    // operations of one call
	maxOpHeader = 4 << 20 // bytes of a request's header
)

// handles are the operations of one call. Each runs in a goroutine of its own;
// the guest sees numbers that are never used twice. The frames that the host
// holds for a guest may take as much memory as the guest itself.
type handles struct {
	job    *executor.Job
	hard   context.Context
	ctx    context.Context // of the operations: done at the soft deadline; nil before the first
	cancel func()
	done   sync.WaitGroup
	wake   chan struct{} // an operation has ended

	mu   sync.Mutex
	open map[uint32]*handle
	last uint32 // the highest handle given out
	live int    // operations that have a handle, or run on without one
	held int64  // bytes of requests in flight and of replies not dropped
}

// A handle is one operation, or the call's input.
type handle struct {
	frame   []byte // the reply
	ended   bool
	unknown bool // the host does not know the operation
	dropped bool
	cancel  context.CancelFunc
}

func (h *handles) init(hard context.Context, j *executor.Job) {
	h.job, h.hard = j, hard
	h.open = map[uint32]*handle{}
}

// input makes frame the call's input, which is handle 0.
func (h *handles) input(frame []byte) { h.open[0] = &handle{frame: frame, ended: true} }

// begin makes what the first operation needs.
func (h *handles) begin() {
	ctx, cancel := context.WithCancel(h.job.Soft)
	unhook := context.AfterFunc(h.hard, cancel)
	h.ctx, h.cancel = ctx, func() { unhook(); cancel() }
	h.wake = make(chan struct{}, 1)
}

// end stops all operations and waits until they are gone.
func (h *handles) end() {
	if h.ctx != nil {
		h.cancel()
		h.done.Wait()
	}
}

// start begins the operation of a request, which the caller no longer uses.
func (h *handles) start(request []byte) int32 {
	if h.job.Soft.Err() != nil {
		return sdk.ErrCanceled
	}
	size := int64(len(request))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last >= maxStarted || h.live >= maxOpen || h.held+size > h.job.Limits.Memory {
		return sdk.ErrOverflow
	}
	frame, err := sdk.ParseFrame(request)
	switch {
	case err != nil:
		return sdk.ErrInval
	case len(frame.Header) > maxOpHeader:
		return sdk.ErrOverflow
	case !h.known(frame):
		return sdk.ErrNoSys
	}
	if h.ctx == nil {
		h.begin()
	}
	ctx, cancel := context.WithCancel(h.ctx)
	op := &handle{cancel: cancel}
	h.last++
	h.open[h.last] = op
	h.live++
	h.held += size
	h.done.Go(func() {
		reply, unknown := executor.Perform(ctx, h.job.Ops, frame)
		cancel()
		h.settle(op, size, reply, unknown)
	})
	return int32(h.last)
}

// known reports whether the host may know the operation of frame. Most Ops can
// tell without trying.
func (h *handles) known(frame sdk.Frame) bool {
	ops, ok := h.job.Ops.(interface{ Knows(op string) bool })
	if !ok {
		return true
	}
	var header struct {
		Op string `json:"op"`
	}
	return json.Unmarshal(frame.Header, &header) == nil && ops.Knows(header.Op)
}

// settle takes the reply of op, whose request had size bytes.
func (h *handles) settle(op *handle, size int64, reply []byte, unknown bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held -= size
	op.ended, op.unknown = true, unknown
	if op.dropped {
		h.live--
		return
	}
	if h.held+int64(len(reply)) > min(h.job.Limits.Memory, math.MaxInt32) {
		reply = sdk.AppendError(nil, &sdk.Error{Kind: sdk.Limit, What: "the reply does not fit beside those that were not dropped", Hint: "limits.memory"})
	}
	op.frame = reply
	h.held += int64(len(reply))
	select {
	case h.wake <- struct{}{}:
	default: // the guest will look at all handles anyway
	}
}

// wait returns the index in list of an operation that has ended. A negative
// timeout means until the soft deadline.
func (h *handles) wait(hard context.Context, list []uint32, timeout time.Duration) int32 {
	var expired <-chan time.Time
	for {
		i, errno := h.ended(list)
		switch {
		case errno == 0:
			return i
		case errno != sdk.ErrAgain:
			return errno
		case h.job.Soft.Err() != nil:
			return sdk.ErrCanceled
		case timeout == 0:
			return sdk.ErrAgain
		case expired == nil && timeout > 0:
			t := time.NewTimer(timeout)
			defer t.Stop()
			expired = t.C
		}
		select {
		case <-h.wake:
		case <-expired:
			timeout = 0 // look once more
		case <-h.job.Soft.Done():
		case <-hard.Done():
			return sdk.ErrCanceled
		}
	}
}

// ended returns the index in list of the first operation that has ended, or an
// error number.
func (h *handles) ended(list []uint32) (index, errno int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	index, errno = 0, sdk.ErrAgain
	for i, n := range list {
		op, ok := h.open[n]
		if !ok {
			return 0, sdk.ErrBadf
		}
		if op.ended && errno != 0 {
			index, errno = int32(i), 0
		}
	}
	return index, errno
}

// frame returns the reply of handle n. It does not change any more.
func (h *handles) frame(n uint32) ([]byte, int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	op, ok := h.open[n]
	switch {
	case !ok:
		return nil, sdk.ErrBadf
	case !op.ended:
		return nil, sdk.ErrAgain
	case op.unknown:
		return nil, sdk.ErrNoSys
	}
	return op.frame, 0
}

// drop forgets handle n and stops its operation. The operation counts as one
// that runs until it has really ended.
func (h *handles) drop(n uint32) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	op, ok := h.open[n]
	if !ok {
		return sdk.ErrBadf
	}
	delete(h.open, n)
	switch {
	case n == 0: // the input, which is not an operation
	case op.ended:
		h.live--
		h.held -= int64(len(op.frame))
	default:
		op.dropped = true
		op.cancel()
	}
	return 0
}
