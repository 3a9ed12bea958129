package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// A pass is one call's right to use an Exit, and what is left of it.
type pass struct {
	exit  *Exit
	call  string
	trip  *trip
	bound capability.Set // hosts that a secret is bound to
	limit int64          // bytes each way
	sent  atomic.Int64
	got   atomic.Int64
	gone  chan struct{}  // closed when the call ends
	wg    sync.WaitGroup // flows, and the watch on them

	mu    sync.Mutex
	flows map[*flow]struct{} // nil once the call has ended
	watch bool               // somebody watches
}

func newPass(x *Exit, call string, g capability.Grant, limit int64, bound capability.Set) *pass {
	t := x.broker.trip(g)
	// The child negotiates encodings itself.
	t.open.DisableCompression, t.special.DisableCompression = true, true
	return &pass{exit: x, call: call, trip: t, bound: bound, limit: limit, gone: make(chan struct{}), flows: map[*flow]struct{}{}}
}

// A flow is one request or tunnel under way. When its context ends, the
// child's connection is closed.
type flow struct {
	ctx    context.Context
	cut    context.CancelCauseFunc
	unhook func()
	moved  atomic.Int64 // when the last byte came, in ns since the epoch

	mu    sync.Mutex
	needs []capability.Access // what has to stay allowed
}

// begin starts a flow for a request that came on the connection child.
func (p *pass) begin(ctx context.Context, child net.Conn) (*flow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.flows == nil:
		return nil, finished()
	case len(p.flows) >= p.exit.bounds.flows:
		return nil, &sdk.Error{Kind: sdk.Limit, Op: "egress", What: fmt.Sprintf("%d connections of this call at a time (rule %s)", len(p.flows), ruleFlows), Hint: "close one first"}
	}
	f := new(flow)
	f.ctx, f.cut = context.WithCancelCause(ctx)
	closed := make(chan struct{})
	stop := context.AfterFunc(f.ctx, func() { child.Close(); close(closed) })
	f.unhook = func() {
		if !stop() {
			<-closed
		}
	}
	f.touch()
	p.flows[f] = struct{}{}
	p.wg.Add(1)
	if !p.watch {
		p.watch = true
		p.wg.Add(1)
		go p.look()
	}
	return f, nil
}

// leave ends f.
func (p *pass) leave(f *flow) {
	f.unhook()
	f.cut(nil)
	p.mu.Lock()
	delete(p.flows, f)
	p.mu.Unlock()
	p.wg.Done()
}

// end cuts every flow and waits for them.
func (p *pass) end() {
	p.mu.Lock()
	if p.flows != nil {
		close(p.gone)
	}
	for f := range p.flows {
		f.cut(finished())
	}
	p.flows = nil
	p.mu.Unlock()
	p.wg.Wait()
	p.trip.CloseIdleConnections()
}

// look cuts flows that are silent for too long, or are no longer allowed.
func (p *pass) look() {
	defer p.wg.Done()
	tick := time.NewTicker(p.exit.bounds.watch)
	defer tick.Stop()
	for {
		select {
		case <-p.gone:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		list := make([]*flow, 0, len(p.flows))
		for f := range p.flows {
			list = append(list, f)
		}
		p.mu.Unlock()
		for _, f := range list {
			p.judge(f)
		}
	}
}

func (p *pass) judge(f *flow) {
	if still := time.Since(time.Unix(0, f.moved.Load())); still > p.exit.bounds.idle {
		f.cut(&sdk.Error{Kind: sdk.Limit, Op: "egress", What: fmt.Sprintf("a connection without a byte for %s (rule net_idle)", p.exit.bounds.idle)})
		return
	}
	f.mu.Lock()
	needs := f.needs
	f.mu.Unlock()
	for _, a := range needs {
		if p.trip.grant.Allows(a) {
			continue
		}
		if err := p.trip.grant.Check(a); err != nil { // again, so that it is recorded
			f.cut(err)
			return
		}
	}
}

// holds has f cut when one of needs is no longer allowed.
func (f *flow) holds(needs []capability.Access) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.needs = needs
}

func (f *flow) touch() { f.moved.Store(time.Now().UnixNano()) }

// spend takes n bytes off what is left of total, which is p.sent or p.got.
func (p *pass) spend(total *atomic.Int64, n int) error {
	if total.Add(int64(n)) <= p.limit {
		return nil
	}
	return &sdk.Error{Kind: sdk.Limit, Op: "egress", What: fmt.Sprintf("more than %d bytes through the proxy in one call (rule %s)", p.limit, ruleBytes)}
}

// finished is why nothing of a call goes on after its end.
func finished() error {
	return &sdk.Error{Kind: sdk.Canceled, Op: "egress", What: "the call has ended"}
}

// A meter reads src on the account of a flow.
type meter struct {
	io.ReadCloser
	pass  *pass
	flow  *flow
	total *atomic.Int64
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.ReadCloser.Read(b)
	if n > 0 {
		m.flow.touch()
		if e := m.pass.spend(m.total, n); e != nil {
			return 0, e
		}
	}
	return n, err
}
