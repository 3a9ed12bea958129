// Package wasm runs skills that are WebAssembly modules, on wazero: each call
// in a fresh instance that sees one policy-checked file system, a constant
// environment and the imports of docs/abi.md, under limits of time, memory and
// output that hold against hostile code. It knows nothing of policies, of the
// catalog, of what an operation does, or of the protocol that brought the call.
package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// The ABIs that this package speaks, as the manifest key "abi" names them.
const (
	abiSkill   = sdk.ABI
	abiCommand = "command/1"
)

// Options configure an Executor.
type Options struct {
	// CacheDir keeps compiled native code between processes. It is made with
	// mode 0700 and refused if it is anybody else's or open to others, because
	// what is in it is executed. Empty means that nothing is kept; nor is
	// anything on platforms where a directory's owner cannot be checked.
	CacheDir string
}

// An Executor compiles and runs WebAssembly modules. All its skills share one
// wazero runtime, which is made at the first Load.
type Executor struct {
	options Options

	mu     sync.Mutex
	engine *engine
	closed bool
}

var _ executor.Executor = (*Executor)(nil)

// New returns an Executor. It does no work yet.
func New(o Options) *Executor { return &Executor{options: o} }

// Enforces names every kind that a module can be held to: it has no way to
// start a native process, so Exec is not among them.
func (x *Executor) Enforces() []capability.Kind {
	return []capability.Kind{capability.Network, capability.Filesystem, capability.Env, capability.Secrets, capability.Invoke, capability.Client}
}

// Load reads, checks, instruments and compiles the module of s. A module that
// is corrupt, hostile, not what the digest says or not what the manifest says
// gives an error of kind Invalid; no input makes it panic.
func (x *Executor) Load(ctx context.Context, s *manifest.Skill) (executor.Program, error) {
	p, err := x.load(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := p.agree(ctx, s); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Describe returns the tools of the module of s by the module's own account,
// whatever the manifest says of them, or nil if it gives none.
func (x *Executor) Describe(ctx context.Context, s *manifest.Skill) ([]sdk.Tool, error) {
	p, err := x.load(ctx, s)
	if err != nil {
		return nil, err
	}
	tools, err := p.describe(ctx, s)
	return tools, errors.Join(err, p.Close())
}

func (x *Executor) load(ctx context.Context, s *manifest.Skill) (p *program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, invalid(s, fmt.Sprintf("the module made its compiler fail: %v", r), "")
		}
	}()
	if err := x.accept(s); err != nil {
		return nil, err
	}
	eng, err := x.start(ctx)
	if err != nil {
		return nil, err
	}
	module, err := readModule(s)
	if err != nil {
		return nil, err
	}
	compiled, err := eng.compile(ctx, s, module)
	if err != nil {
		return nil, err
	}
	return &program{
		engine: eng, compiled: compiled, abi: s.ABI, skill: s.Name,
		minMemory: int64(compiled.ExportedMemories()["memory"].Min()) << 16,
		config: wazero.NewModuleConfig().WithName("").WithStartFunctions().WithArgs(s.Name).WithEnv("PWD", workspace).
			WithRandSource(rand.Reader).WithSysWalltime().WithSysNanotime(),
	}, nil
}

// accept checks what can be seen without the module.
func (x *Executor) accept(s *manifest.Skill) error {
	switch {
	case s.ABI != abiSkill && s.ABI != abiCommand:
		return invalid(s, fmt.Sprintf("unknown abi %q", s.ABI), "known: "+abiSkill+", "+abiCommand)
	case s.Sandbox.Isolation == "session":
		return invalid(s, `isolation = "session" is not available to modules`, `every call gets a fresh instance: use "call"`)
	}
	return nil
}

// start returns the engine, making it the first time.
func (x *Executor) start(ctx context.Context) (*engine, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "wasm.Load", What: "the executor is closed"}
	}
	if x.engine == nil {
		eng, err := newEngine(context.WithoutCancel(ctx), x.options.CacheDir)
		if err != nil {
			return nil, err
		}
		x.engine = eng
	}
	return x.engine, nil
}

// Close releases all native code. Every Program must be closed before.
func (x *Executor) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.engine == nil {
		return nil
	}
	eng := x.engine
	x.engine = nil
	return eng.close()
}

// invalid says that the module of s is not acceptable.
func invalid(s *manifest.Skill, what, hint string) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: "wasm.Load", What: fmt.Sprintf("skill %q: %s: %s", s.Name, s.Source, what), Hint: hint}
}

// bug is the error of a panic in the host's own code, with the stack for the log.
func bug(op string, r any) error {
	return &sdk.Error{Kind: sdk.Internal, Op: op, What: fmt.Sprintf("panic: %v", r), Err: errors.New(string(debug.Stack()))}
}
