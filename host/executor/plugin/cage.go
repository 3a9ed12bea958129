package plugin

import (
	"context"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

// cages plans how the processes of a job are confined.
type cages interface {
	plan(*manifest.Skill, executor.Job) (plan, error)
}

// A plan is how the processes of one key are confined.
type plan interface {
	key() string // a process serves only calls whose plans have its key

	// start starts p in a cage of its own. Its Env is added to what every
	// native process has. Of a script, interpreters are what it needs to run.
	start(ctx context.Context, p sandbox.Program, interpreters []string) (caged, error)

	record(capability.Grant) error                 // puts what is granted on record
	note() string                                  // what the process is denied though its skill asks for it, or ""
	explain(sdk.Result, error) (sdk.Result, error) // what came of a call, with what was granted if it failed
}

// A caged is a process in its cage.
type caged interface {
	sandbox.Process

	// Serves returns the directory for sockets as the host has it, and as the
	// process has it.
	Serves() (outside, inside string)

	// Open opens the cage's way out to one call, until done.
	Open(call string, g capability.Grant) (proxyURL string, done func())

	// Close ends the process and returns when nothing of it is left.
	Close() error
}

// maker makes cages by package native.
type maker struct{ *native.Maker }

func (m maker) plan(s *manifest.Skill, j executor.Job) (plan, error) {
	p, err := m.Plan(s, j)
	if err != nil {
		return nil, err
	}
	p.Serves = wire.SocketDirKey
	return &nativePlan{maker: m.Maker, Plan: p}, nil
}

type nativePlan struct {
	maker *native.Maker
	native.Plan
}

func (p *nativePlan) key() string { return p.Key }

func (p *nativePlan) start(ctx context.Context, prog sandbox.Program, interpreters []string) (caged, error) {
	outfit := p.Plan
	outfit.Programs = interpreters
	g, err := p.maker.Start(ctx, outfit, prog)
	if err != nil {
		return nil, err
	}
	return nativeGuest{g, g.Process()}, nil
}

func (p *nativePlan) record(g capability.Grant) error { return native.Record(g, p.Plan) }

type nativeGuest struct {
	*native.Guest
	sandbox.Process
}

func (p *nativePlan) note() string { return p.Note }

func (p *nativePlan) explain(r sdk.Result, err error) (sdk.Result, error) {
	return native.Explain(p.Plan, r, err)
}
