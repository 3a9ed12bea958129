// Package plugin runs skills that are native programs, as plugins of
// github.com/hashicorp/go-plugin: each in a cage of its own, over one gRPC
// stream for each call (sdk/plugin/plugin.proto). That library is the transport
// and no boundary; the cage is the boundary, and what a plugin says is taken as
// hostile. The package knows nothing of policies, of what an operation does, or
// of how a cage is made.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// Options configure an Executor.
type Options struct {
	// Cages confines and starts the processes. It starts them by a Starter of
	// this package.
	Cages *native.Maker

	// Self opens the program that serves the plugins inside of this binary, and
	// says with what arguments; the plugin's name is added. nil means that there
	// are none.
	Self func() (*os.File, []string, error)

	IdleTTL    time.Duration // how long a process that waits for its first call is kept; 0 is a minute
	SessionTTL time.Duration // how long one of isolation = "session" is kept without calls; 0 is a quarter of an hour
	MaxIdle    int           // processes without calls, of all skills together; 0 is 4, less than 0 none
}

// startTimeout bounds the time until a plugin has said where it listens and has
// answered there. It is less than what a plugin has to describe itself.
const startTimeout = 8 * time.Second

// An Executor runs plugins.
type Executor struct {
	cages cages
	self  func() (*os.File, []string, error)
	pool  pool

	patience time.Duration // startTimeout, but for tests
}

var (
	_ executor.Executor = (*Executor)(nil)
	_ executor.Fixed    = (*Executor)(nil)
)

// New returns an Executor. It does no work yet.
func New(o Options) *Executor { return build(o, maker{o.Cages}) }

func build(o Options, c cages) *Executor {
	x := &Executor{cages: c, self: o.Self, patience: startTimeout}
	x.pool.ttl, x.pool.sessionTTL, x.pool.most = o.IdleTTL, o.SessionTTL, max(o.MaxIdle, 0)
	if o.IdleTTL <= 0 {
		x.pool.ttl = time.Minute
	}
	if o.SessionTTL <= 0 {
		x.pool.sessionTTL = 15 * time.Minute
	}
	if o.MaxIdle == 0 {
		x.pool.most = 4
	}
	x.pool.init()
	return x
}

// Enforces names every kind: the kernel holds a plugin to files and programs,
// and whatever else it may have it has to ask the host for.
func (x *Executor) Enforces() []capability.Kind {
	return []capability.Kind{capability.Network, capability.Filesystem, capability.Exec, capability.Env, capability.Secrets, capability.Invoke, capability.Client}
}

// Fixed implements executor.Fixed: the kernel's rules do not change.
func (x *Executor) Fixed() {}

// Load pins the program of s to what its digest covers, starts it once in a
// cage without any grant, and compares what it says of its tools with the
// manifest. An error has kind Invalid if that is not acceptable.
func (x *Executor) Load(ctx context.Context, s *manifest.Skill) (executor.Program, error) {
	p, err := x.open(s)
	if err != nil {
		return nil, err
	}
	err = p.agree(ctx, s.Sandbox.Require)
	if late := (unplanned{}); errors.As(err, &late) {
		err = nil // the operator may have said that less is enough: Run is told
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Describe returns the tools of the plugin of s by its own account, whatever
// the manifest says of them, or nil if it gives none.
func (x *Executor) Describe(ctx context.Context, s *manifest.Skill) ([]sdk.Tool, error) {
	p, err := x.open(s)
	if err != nil {
		return nil, err
	}
	tools, err := p.describe(ctx, s.Sandbox.Require)
	return tools, errors.Join(err, p.Close())
}

// open finds the program of s.
func (x *Executor) open(s *manifest.Skill) (*program, error) {
	p := &program{executor: x, skill: s, shared: s.Sandbox.Isolation == "session", spare: s.Sandbox.Isolation != "fresh"}
	var err error
	closeFile := forget
	switch {
	case s.Source == "":
		return nil, invalid(s, "no source", "source names the program in the skill's folder")
	case !s.Home.Builtin:
		p.args = []string{s.Source}
		if p.file, err = seal(s); err == nil {
			p.interpreters = interpreters(p.file)
		}
	case x.self == nil:
		return nil, invalid(s, "this host has no built-in plugins", "")
	default:
		closeFile = (*os.File).Close
		p.file, p.args, err = x.self()
		p.args = append(p.args[:len(p.args):len(p.args)], s.Source)
	}
	if err != nil {
		return nil, err
	}
	p.closeFile = sync.OnceValue(func() error { return closeFile(p.file) })
	return p, nil
}

// Close ends all processes and waits for them.
func (x *Executor) Close() error {
	x.pool.close()
	return nil
}

// invalid says that the plugin of s is not acceptable.
func invalid(s *manifest.Skill, what, hint string) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: "plugin.Load", What: fmt.Sprintf("skill %q: %s: %s", s.Name, s.Source, what), Hint: hint}
}
