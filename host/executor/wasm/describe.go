package wasm

import (
	"context"
	"errors"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// agree makes one run of p without any permission: it must start, and if its
// ABI lets it speak of its tools, it must say what the manifest says.
func (p *program) agree(loading context.Context, s *manifest.Skill) error {
	tools, err := p.describe(loading, s)
	if err != nil || tools == nil {
		return err
	}
	return executor.Agree("wasm.Load", s, tools)
}

// describe returns the module's own account of its tools, or nil if it gives
// none, or its ABI has no such question.
func (p *program) describe(loading context.Context, s *manifest.Skill) (tools []sdk.Tool, err error) {
	defer func() {
		if r := recover(); r != nil {
			tools, err = nil, bug("wasm.Load", r)
		}
	}()
	job := func(ctx context.Context, in sdk.Input) executor.Job {
		return executor.Job{
			Input:  in,
			Limits: s.Limits,
			Dirs:   executor.Dirs{Tmp: func() (string, error) { return "", errNoTmp }},
			Soft:   ctx,
			Ops:    executor.NoOps{},
			Emit:   func(sdk.Event) {},
		}
	}
	if p.abi == abiCommand {
		ctx, cancel := context.WithTimeout(loading, executor.DescribeTimeout)
		defer cancel()
		return nil, p.starts(ctx, s, job(ctx, sdk.Input{}))
	}
	return executor.Describe(loading, "wasm.Load", s, func(ctx context.Context, in sdk.Input) (sdk.Result, error) {
		return p.Run(ctx, job(ctx, in))
	})
}

var errNoTmp = errors.New("a module has no private directory while it is loaded")

// starts checks that the module of a command can be instantiated: its imports
// that are not functions, its segments and its start section are tried out.
func (p *program) starts(ctx context.Context, s *manifest.Skill, job executor.Job) error {
	c := newCall(ctx, p.engine, &job)
	_, _, release, err := c.instantiate(p, p.config)
	release()
	if err != nil {
		return invalid(s, firstLine(c.failure(err).Error()), "")
	}
	return nil
}
