package plugin

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

// A process of a session is replaced when it has made so many calls or is so
// old, between two calls: what leaks in it does not leak for ever.
const (
	maxCalls = 10_000
	maxAge   = 12 * time.Hour
)

// A pool keeps the processes: those that make calls, those that wait for their
// first one, and those of sessions. A process makes calls of its own key only.
type pool struct {
	ttl, sessionTTL time.Duration
	most            int // processes without calls

	ctx    context.Context // of starting processes; done after close
	cancel context.CancelFunc
	busy   sync.WaitGroup // starts, and processes until nothing of them is left

	mu       sync.Mutex
	closed   bool
	all      []*process // that may get a call; those without, the one idle longest first
	starting []*start
}

// A turn is what the pool knows of a process, guarded by its mutex.
type turn struct {
	calls  int // under way
	served int // calls, ever
	born   time.Time
	out    bool // gets no further call
	timer  *time.Timer
	free   chan struct{} // closed when it is out and has no call
}

// A start is a process that is not there yet. p and err are settled once done
// is closed.
type start struct {
	program *program
	key     string
	done    chan struct{}
	p       *process
	err     error
}

func (l *pool) init() { l.ctx, l.cancel = context.WithCancel(context.Background()) }

var errClosed = &sdk.Error{Kind: sdk.Unavailable, Op: "plugin.Run", What: "the host is shutting down"}

// acquire returns a process of pl's key for one call, starting it if there is
// none. The caller releases it.
func (l *pool) acquire(ctx context.Context, prog *program, pl plan) (*process, error) {
	key := pl.key()
	for {
		l.mu.Lock()
		if p := l.take(prog, key); p != nil {
			l.mu.Unlock()
			return p, nil
		}
		s := l.coming(prog, key)
		if s == nil {
			if s = l.begin(prog, pl); s == nil {
				l.mu.Unlock()
				return nil, errClosed
			}
		}
		l.mu.Unlock()
		select {
		case <-s.done:
		case <-ctx.Done(): // the process will wait for another call
			return nil, executor.Ended(ctx)
		}
		if s.err != nil {
			return nil, s.err
		}
	}
}

// take returns a process that may make a call of key now. Its caller holds mu.
func (l *pool) take(prog *program, key string) *process {
	for _, p := range slices.Backward(l.all) {
		if p.program != prog || p.key != key || p.state.out || p.state.calls > 0 && !prog.shared {
			continue
		}
		old := p.state.served >= maxCalls || time.Since(p.state.born) > maxAge
		if p.state.calls == 0 && old || !p.alive() {
			l.discard(p)
			continue
		}
		p.state.calls++
		p.state.timer.Stop()
		return p
	}
	return nil
}

// coming returns a start that a call of a session waits for together with
// others: of a session, there is one process.
func (l *pool) coming(prog *program, key string) *start {
	if prog.shared {
		for _, s := range l.starting {
			if s.program == prog && s.key == key {
				return s
			}
		}
	}
	return nil
}

// begin starts a process, or returns nil if the pool is closed. Its caller
// holds mu.
func (l *pool) begin(prog *program, pl plan) *start {
	if l.closed {
		return nil
	}
	s := &start{program: prog, key: pl.key(), done: make(chan struct{})}
	l.starting = append(l.starting, s)
	l.busy.Go(func() {
		s.p, s.err = prog.executor.spawn(l.ctx, prog, pl)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.starting = slices.DeleteFunc(l.starting, func(other *start) bool { return other == s })
		if s.err == nil {
			l.add(s.p)
		}
		close(s.done)
	})
	return s
}

// add makes p one that waits for a call. Its caller holds mu.
func (l *pool) add(p *process) {
	p.state.born = time.Now()
	p.state.free = make(chan struct{})
	p.state.timer = time.AfterFunc(time.Hour, func() { l.expire(p) })
	l.all = append(l.all, p)
	l.busy.Go(func() { // a process that ends by itself gets no call
		<-p.guest.Done()
		l.mu.Lock()
		l.discard(p)
		l.mu.Unlock()
		<-p.state.free // a call may be about to find out
		p.close()
	})
	if l.closed || p.program.gone {
		l.discard(p)
		return
	}
	l.idle(p)
}

// idle starts the time for which p is kept without a call, and makes room for
// it. Its caller holds mu.
func (l *pool) idle(p *process) {
	ttl := l.ttl
	if p.program.shared {
		ttl = l.sessionTTL
	}
	p.state.timer.Reset(ttl)
	l.all = append(slices.DeleteFunc(l.all, func(other *process) bool { return other == p }), p)
	waiting := 0
	for _, other := range slices.Backward(slices.Clone(l.all)) {
		if other.state.calls == 0 {
			if waiting++; waiting > max(l.most, 1) {
				l.discard(other)
			}
		}
	}
}

func (l *pool) expire(p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.state.calls == 0 {
		l.discard(p)
	}
}

// discard lets p have no further call, and ends it if it has none now. Its
// caller holds mu.
func (l *pool) discard(p *process) {
	p.state.out = true
	p.state.timer.Stop()
	if p.state.calls > 0 {
		return
	}
	select {
	case <-p.state.free:
	default:
		close(p.state.free)
		l.all = slices.DeleteFunc(l.all, func(other *process) bool { return other == p })
		p.stop()
	}
}

// release ends a call of p. Unless its program is one of sessions and the call
// ended well, p ends too; then release waits for that, so that nothing goes on
// when the call is over.
func (l *pool) release(p *process, well bool) {
	l.mu.Lock()
	p.state.calls--
	p.state.served++
	switch {
	case !p.program.shared || !well || p.state.out:
		l.discard(p)
	case p.state.calls == 0:
		l.idle(p)
	}
	over := p.state.out && p.state.calls == 0
	l.mu.Unlock()
	if over {
		select {
		case <-p.guest.Done():
		case <-time.After(maxKill):
		}
	}
}

// maxKill is how long a call waits for the end of its process, which was
// killed: it is as good as dead if the kernel cannot end it sooner.
const maxKill = 5 * time.Second

// spare starts a process for the next call of pl's key, if none waits for it.
func (l *pool) spare(prog *program, pl plan) {
	if l.most == 0 {
		return
	}
	key := pl.key()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.all {
		if p.program == prog && p.key == key && p.state.calls == 0 && !p.state.out {
			return
		}
	}
	for _, s := range l.starting {
		if s.program == prog && s.key == key {
			return
		}
	}
	l.begin(prog, pl)
}

// drop ends the processes of prog, which has no calls, and waits for them.
func (l *pool) drop(prog *program) {
	l.mu.Lock()
	prog.gone = true
	var waits []<-chan struct{}
	for _, p := range slices.Clone(l.all) {
		if p.program == prog {
			waits = append(waits, p.guest.Done())
			l.discard(p)
		}
	}
	for _, s := range l.starting {
		if s.program == prog {
			waits = append(waits, s.done)
		}
	}
	l.mu.Unlock()
	for _, w := range waits {
		<-w
	}
}

// close ends all processes and waits until nothing of them is left.
func (l *pool) close() {
	l.mu.Lock()
	l.closed = true
	l.cancel()
	for _, p := range slices.Clone(l.all) {
		l.discard(p)
		p.stop() // whatever it is doing
	}
	l.mu.Unlock()
	l.busy.Wait()
}
