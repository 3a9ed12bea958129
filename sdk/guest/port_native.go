//go:build !wasip1

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A Host does what a tool asks for when it runs outside of a host, in a test.
// Package guesttest has one.
type Host interface {
	// Do answers an operation with a reply frame. Its error becomes the
	// operation's.
	Do(ctx context.Context, request sdk.Frame) (reply []byte, err error)

	// Emit hears progress, partial content and logs.
	Emit(sdk.Event)
}

// Run runs a tool of this program against host. It passes the result through
// its frame, so that a result which could not travel fails here too. Cancelling
// ctx cancels the call. The error is an *sdk.Error.
func Run(ctx context.Context, host Host, in sdk.Input) (sdk.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &port{ctx: ctx, host: host, ops: map[int32]*pending{}}
	defer p.running.Wait()
	defer cancel()
	return sdk.ParseResult(frame(serve(ctx, p, in)))
}

const isModule = false

// port is the host of a native run. Its errors are those of the ABI.
type port struct {
	ctx     context.Context
	host    Host
	running sync.WaitGroup

	mu   sync.Mutex
	ops  map[int32]*pending
	last int32
}

// pending is an operation; reply is set when done is closed.
type pending struct {
	done  chan struct{}
	reply []byte
}

func (p *port) start(b []byte) int32 {
	f, err := sdk.ParseFrame(b)
	if err != nil {
		return sdk.ErrInval
	}
	o := &pending{done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.ops[p.last] = o
	p.running.Go(func() {
		defer close(o.done)
		reply, err := p.host.Do(p.ctx, f)
		if err != nil {
			var e *sdk.Error
			if !errors.As(err, &e) {
				e = &sdk.Error{Kind: sdk.Internal, What: err.Error()}
			}
			reply = sdk.AppendError(nil, e)
		}
		o.reply = reply
	})
	return p.last
}

func (p *port) wait(handles []int32, d time.Duration) (index int, code int32) {
	var over <-chan time.Time // never, unless d has an end
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	var once sync.Once
	first, stop := make(chan int, 1), make(chan struct{})
	defer close(stop)
	for i, h := range handles {
		o := p.op(h)
		if o == nil {
			return 0, sdk.ErrBadf
		}
		p.running.Go(func() {
			select {
			case <-o.done:
				once.Do(func() { first <- i })
			case <-stop:
			}
		})
	}
	select {
	case i := <-first:
		return i, 0
	case <-over:
		return 0, sdk.ErrAgain
	case <-p.ctx.Done():
		return 0, sdk.ErrCanceled
	}
}

func (p *port) op(handle int32) *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ops[handle]
}

func (p *port) take(handle int32) ([]byte, int32) {
	o := p.op(handle)
	if o == nil {
		return nil, sdk.ErrBadf
	}
	<-o.done
	return o.reply, 0
}

func (p *port) drop(handle int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ops, handle)
}

func (p *port) emit(kind int32, b []byte) int32 {
	e := sdk.Event{}
	switch kind {
	case sdk.EmitPartial:
		c, err := sdk.ParseContent(b)
		if err != nil {
			return sdk.ErrInval
		}
		e.Kind, e.Content = sdk.EventPartial, c
	case sdk.EmitProgress, sdk.EmitLog:
		e.Kind = sdk.EventProgress
		if kind == sdk.EmitLog {
			e.Kind = sdk.EventLog
		}
		if json.Unmarshal(b, &e) != nil {
			return sdk.ErrInval
		}
	default:
		return sdk.ErrInval
	}
	p.host.Emit(e)
	return 0
}

func (p *port) cancelled() bool { return p.ctx.Err() != nil }

// why says why the call was cancelled: a *sdk.Stop must not be lost.
func (p *port) why() error { return context.Cause(p.ctx) }
