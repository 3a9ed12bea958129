package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// Programs keeps the loaded programs, one per skill digest and runtime, and leases them to
// calls. A program is closed only after its last lease has ended.
type Programs struct {
	runtimes map[string]Executor
	ctx      context.Context // of loading; done after Close
	cancel   context.CancelFunc

	mu     sync.Mutex
	loaded map[key]*loaded
	closed bool
	busy   sync.WaitGroup // loads and leases that are going on
}

// A key names a program: a skill's content, and what runs it, because a skill
// can be a module and a text at once.
type key struct{ digest, runtime string }

func keyOf(s *manifest.Skill) key { return key{s.Home.Digest, s.Runtime} }

// loaded is one program, or the attempt to load it. Its fields are guarded by
// Programs.mu; program and err are also settled once ready is closed.
type loaded struct {
	ready   chan struct{}
	program Program
	err     error
	leases  int
	dropped bool // no new leases; the last one closes
}

// NewPrograms returns an empty Programs over the executors by runtime name, as
// manifests spell it.
func NewPrograms(runtimes map[string]Executor) *Programs {
	p := &Programs{runtimes: maps.Clone(runtimes), loaded: map[key]*loaded{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Lease returns the program of s, loading it if it is not loaded yet. The
// caller calls release, which is idempotent, when its run is over. Loading
// goes on if ctx ends meanwhile, so that the next call finds the program; a
// failure is not kept. The error has kind Invalid if s cannot be loaded as it
// is, Unavailable after Close, and Canceled or Limit if ctx ends.
func (p *Programs) Lease(ctx context.Context, s *manifest.Skill) (Program, func(), error) {
	x, err := p.executor(s)
	if err != nil {
		return nil, nil, err
	}
	l, err := p.enter(ctx, x, s)
	if err != nil {
		return nil, nil, err
	}
	release := sync.OnceFunc(func() { p.leave(l) })
	select {
	case <-l.ready: // as mostly; Done makes a channel
	default:
		select {
		case <-l.ready:
		case <-ctx.Done():
			release()
			kind := sdk.Limit
			if errors.Is(context.Cause(ctx), context.Canceled) {
				kind = sdk.Canceled
			}
			return nil, nil, &sdk.Error{Kind: kind, Op: "executor.Lease", What: fmt.Sprintf("skill %q is still loading", s.Name), Err: context.Cause(ctx)}
		}
	}
	if l.err != nil {
		release()
		return nil, nil, l.err
	}
	return l.program, release, nil
}

// executor returns the runtime of s, if it can hold s to what s asks for.
func (p *Programs) executor(s *manifest.Skill) (Executor, error) {
	invalid := func(what, hint string) error {
		return &sdk.Error{Kind: sdk.Invalid, Op: "executor.Lease", What: fmt.Sprintf("skill %q: %s", s.Name, what), Hint: hint}
	}
	x, ok := p.runtimes[s.Runtime]
	if !ok {
		return nil, invalid(fmt.Sprintf("unknown runtime %q", s.Runtime),
			"this host has "+strings.Join(slices.Sorted(maps.Keys(p.runtimes)), ", "))
	}
	if s.Home.Digest == "" {
		return nil, invalid("no digest", "a skill is run only by what its files are")
	}
	enforced := x.Enforces()
	for _, kind := range needs(s) {
		if !slices.Contains(enforced, kind) {
			return nil, invalid(fmt.Sprintf("runtime %q cannot hold a skill to its %s capabilities", s.Runtime, kind),
				fmt.Sprintf("remove %s from [capabilities] of %s or choose another runtime", kind, s.Home.File))
		}
	}
	return x, nil
}

// Fixed reports whether the guests of s are held to rules that are fixed when a
// run starts. Of a runtime that is not known, nothing runs.
func (p *Programs) Fixed(s *manifest.Skill) bool {
	_, fixed := p.runtimes[s.Runtime].(Fixed)
	return fixed
}

// needs lists the kinds that s asks for.
func needs(s *manifest.Skill) []capability.Kind {
	var kinds []capability.Kind
	for _, c := range s.Needs.Allow {
		if !slices.Contains(kinds, c.Kind) {
			kinds = append(kinds, c.Kind)
		}
	}
	if len(s.Secrets) > 0 && !slices.Contains(kinds, capability.Secrets) {
		kinds = append(kinds, capability.Secrets)
	}
	return kinds
}

// enter takes a lease on the program of s, which may still be loading.
func (p *Programs) enter(ctx context.Context, x Executor, s *manifest.Skill) (*loaded, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "executor.Lease", What: "the host is shutting down"}
	}
	l := p.loaded[keyOf(s)]
	if l == nil {
		l = &loaded{ready: make(chan struct{})}
		p.loaded[keyOf(s)] = l
		p.busy.Add(1)
		go p.load(context.WithoutCancel(ctx), l, x, s)
	}
	l.leases++
	p.busy.Add(1)
	return l, nil
}

// closeWithin is how long Close waits. Whoever closes wants to go.
const closeWithin = 5 * time.Second

// maxLoad bounds the loading of one program, which no call's deadline does.
const maxLoad = 2 * time.Minute

var errLoad = &sdk.Error{Kind: sdk.Limit, Op: "executor.Load", What: fmt.Sprintf("the program was not loaded within %v", maxLoad), Hint: "is the module very large"}

// load fills l. values carries the values of the first caller's context; only
// Close ends a load.
func (p *Programs) load(values context.Context, l *loaded, x Executor, s *manifest.Skill) {
	defer p.busy.Done()
	ctx, cancel := context.WithTimeoutCause(values, maxLoad, errLoad)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	program, err := attempt(ctx, x, s)

	p.mu.Lock()
	l.program, l.err = program, err
	if err != nil && p.loaded[keyOf(s)] == l {
		delete(p.loaded, keyOf(s))
	}
	unwanted := err == nil && l.dropped && l.leases == 0
	close(l.ready)
	p.mu.Unlock()
	if unwanted {
		_ = program.Close() // nobody is left who could be told
	}
}

// attempt is x.Load, except that a panic is an error: it would take down the
// host from this goroutine.
func attempt(ctx context.Context, x Executor, s *manifest.Skill) (p Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, &sdk.Error{Kind: sdk.Internal, Op: "executor.Load", What: fmt.Sprintf("panic: %v", r)}
		}
	}()
	return x.Load(ctx, s)
}

// leave ends one lease on l.
func (p *Programs) leave(l *loaded) {
	defer p.busy.Done()
	p.mu.Lock()
	l.leases--
	last := l.dropped && l.leases == 0 && l.program != nil
	p.mu.Unlock()
	if last {
		_ = l.program.Close() // as in load
	}
}

// Drop forgets the programs of digest. Each is closed at once if no call uses
// it, otherwise by the last one. The next Lease loads it again.
func (p *Programs) Drop(digest string) error {
	var idle []Program
	p.mu.Lock()
	for k, l := range p.loaded {
		if k.digest != digest {
			continue
		}
		delete(p.loaded, k)
		l.dropped = true
		if l.leases == 0 && l.program != nil {
			idle = append(idle, l.program)
		}
	}
	p.mu.Unlock()
	var err error
	for _, program := range idle {
		err = errors.Join(err, program.Close())
	}
	return err
}

// Close refuses new leases, waits for those that are out, and closes every
// program. It is idempotent.
func (p *Programs) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	done := make(chan struct{})
	go func() {
		p.busy.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closeWithin): // a compiler does not look up from one function
		return &sdk.Error{Kind: sdk.Unavailable, Op: "executor.Close", What: fmt.Sprintf("a call or a compilation goes on %v after it was told to end", closeWithin)}
	}
	p.mu.Lock()
	digests := slices.Collect(maps.Keys(p.loaded))
	p.mu.Unlock()
	var errs []error
	for _, d := range digests {
		errs = append(errs, p.Drop(d.digest))
	}
	return errors.Join(errs...)
}
