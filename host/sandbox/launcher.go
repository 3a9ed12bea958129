package sandbox

import (
	"context"
	"errors"
	"path"
	"sync"

	"github.com/skillhost/skill/sdk"
)

// A Launcher starts processes in cages. Its methods are safe for concurrent use.
type Launcher struct {
	spawner // what the platform needs

	mu     sync.Mutex
	closed bool
	live   map[Process]struct{}
	ends   sync.WaitGroup // of live, and of starts that go on
}

// New returns a Launcher. It holds no resource until the first Start.
func New() *Launcher { return &Launcher{live: map[Process]struct{}{}} }

// The bounds of a Cage whose Limits do not say.
const (
	DefaultMemory    = 128 << 20
	DefaultProcesses = 64
	DefaultFileSize  = 1 << 30
	DefaultFiles     = 1024
)

// Start runs p in a cage and returns when the program has been executed. The
// cage is never weaker than asked for: if a part of it fails, Start does, with
// an error that names the step. ctx bounds the start only.
//
// Kinds of error: Invalid for a Cage or Program that makes no sense,
// Unavailable for what this machine does not offer or refuses, Canceled or
// Limit if ctx ends.
func (l *Launcher) Start(ctx context.Context, c Cage, p Program) (Process, error) {
	if err := check(&c, &p); err != nil {
		return nil, err
	}
	c.Limits = c.Limits.withDefaults()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, failed(sdk.Unavailable, "the launcher is closed", nil)
	}
	l.ends.Add(1)
	l.mu.Unlock()

	proc, err := l.start(ctx, c, p)
	if err != nil {
		l.ends.Done()
		if ctx.Err() != nil {
			return nil, failed(kindOf(ctx), "the program was not started in time", context.Cause(ctx))
		}
		return nil, err
	}
	l.mu.Lock()
	l.live[proc] = struct{}{}
	closed := l.closed
	l.mu.Unlock()
	go func() {
		defer l.ends.Done()
		<-proc.Done()
		l.mu.Lock()
		delete(l.live, proc)
		l.mu.Unlock()
	}()
	if closed { // while the program was starting
		proc.Kill()
	}
	return proc, nil
}

// Close ends all cages and returns when nothing of them is left. It is
// idempotent.
func (l *Launcher) Close() error {
	l.mu.Lock()
	l.closed = true
	live := make([]Process, 0, len(l.live))
	for p := range l.live {
		live = append(live, p)
	}
	l.mu.Unlock()
	for _, p := range live {
		p.Kill()
	}
	l.ends.Wait()
	return l.stop()
}

// check refuses cages that mean nothing, or less than they seem to.
func check(c *Cage, p *Program) error {
	switch {
	case !c.Level.Covers(None):
		return failed(sdk.Invalid, "level "+string(c.Level)+" is not known", nil)
	case c.Network != NoNetwork && c.Network != Proxy:
		return failed(sdk.Invalid, "the network is not known", nil)
	case c.Network == Proxy && !c.Level.Covers(proxyLevel):
		return &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "network at level " + string(c.Level),
			Hint: "below level " + string(proxyLevel) + " a program could go around the proxy"}
	case c.Nest && c.Level != Strict:
		return failed(sdk.Unavailable, "namespaces of its own at level "+string(c.Level), nil)
	case c.Serves != "" && !clean(c.Serves):
		return failed(sdk.Invalid, "the socket directory "+c.Serves+" is not an absolute path", nil)
	case p.File == nil:
		return failed(sdk.Invalid, "there is no program", nil)
	case len(p.Args) == 0:
		return failed(sdk.Invalid, "the program has no name", nil)
	case p.Dir != "" && !clean(p.Dir):
		return failed(sdk.Invalid, "the directory "+p.Dir+" is not an absolute path", nil)
	case c.Limits.Memory < 0 || c.Limits.Processes < 0 || c.Limits.FileSize < 0 || c.Limits.Files < 0:
		return failed(sdk.Invalid, "a limit is negative", nil)
	}
	return nil
}

func clean(p string) bool { return path.IsAbs(p) && path.Clean(p) == p }

func (l Limits) withDefaults() Limits {
	if l.Memory == 0 {
		l.Memory = DefaultMemory
	}
	if l.Processes == 0 {
		l.Processes = DefaultProcesses
	}
	if l.FileSize == 0 {
		l.FileSize = DefaultFileSize
	}
	if l.Files == 0 {
		l.Files = DefaultFiles
	}
	return l
}

const op = "sandbox.Start"

func failed(k sdk.Kind, what string, err error) error {
	return &sdk.Error{Kind: k, Op: op, What: what, Err: err}
}

func kindOf(ctx context.Context) sdk.Kind {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return sdk.Limit
	}
	return sdk.Canceled
}
