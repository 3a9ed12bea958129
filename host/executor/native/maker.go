package native

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// A Maker plans and starts guests. Its methods are safe for concurrent use.
type Maker struct {
	o      Options
	report func() sandbox.Report
	root   func() bool // replaced in tests

	mu       sync.Mutex
	closed   bool
	guests   map[*Guest]struct{}
	store    *store         // of private directories; nil until the first Start
	starting sync.WaitGroup // Starts that go on
}

// New returns a Maker. It makes no directory and starts nothing yet.
func New(o Options) *Maker {
	m := &Maker{o: o, root: isRoot, guests: map[*Guest]struct{}{}}
	m.report = sync.OnceValue(func() sandbox.Report {
		if o.Report == nil {
			return sandbox.Report{}
		}
		return o.Report()
	})
	return m
}

// Close ends all guests and returns when nothing of them is left. It is
// idempotent.
func (m *Maker) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.starting.Wait()
	m.mu.Lock()
	guests := slices.Collect(maps.Keys(m.guests))
	s := m.store
	m.store = nil
	m.mu.Unlock()
	for _, g := range guests {
		g.process.Kill()
	}
	var errs []error
	for _, g := range guests {
		errs = append(errs, g.Close())
	}
	if s != nil {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// enter returns the store for one more guest's directories. If it returns no
// error, the caller is counted in m.starting.
func (m *Maker) enter() (*store, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "the host is shutting down"}
	}
	if m.store == nil {
		s, err := newStore(m.o.Tmp)
		if err != nil {
			return nil, &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "private directory", Err: err}
		}
		m.store = s
	}
	m.starting.Add(1)
	return m.store, nil
}

const op = "native.Start"

// Start starts program for p: in a cage, with private directories that are
// removed when it has ended. It puts the environment of every guest before
// program.Env, and fills in program.Dir if that is "". ctx bounds the start only.
func (m *Maker) Start(ctx context.Context, p Plan, program sandbox.Program) (*Guest, error) {
	s, err := m.enter()
	if err != nil {
		return nil, err
	}
	defer m.starting.Done()
	g := &Guest{plan: p, gone: make(chan struct{})}
	cage, err := m.furnish(g, s)
	if err == nil {
		program.Env = g.environ(program.Env)
		if program.Dir == "" {
			program.Dir = g.start()
		}
		g.process, err = m.o.Starter.Start(ctx, cage, program)
	}
	if err != nil {
		_ = g.clear() // the error that matters is the first
		return nil, err
	}
	switch l := g.process.Listener(); {
	case l != nil && p.out:
		g.exit = m.o.Serve(l)
	case l != nil:
		_ = l.Close() // the loopback of the cage is all that there is
	}
	m.mu.Lock()
	m.guests[g] = struct{}{}
	m.mu.Unlock()
	go func() {
		<-g.process.Done()
		g.err = g.clear()
		m.mu.Lock()
		delete(m.guests, g)
		m.mu.Unlock()
		close(g.gone)
	}()
	return g, nil
}

// runDir is where directories for sockets are made: a short path, because a
// socket's has at most 104 bytes.
func (m *Maker) runDir() string {
	if m.o.RunDir != "" {
		return m.o.RunDir
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return os.TempDir()
}
