package plugin

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

// agree makes sure, once, that the plugin says of its tools what the manifest
// says. level is the least confinement that is accepted for that.
func (p *program) agree(ctx context.Context, level string) error {
	p.agreeing.Lock()
	defer p.agreeing.Unlock()
	if p.agreed {
		return nil
	}
	tools, err := p.describe(ctx, level)
	if err == nil && tools != nil {
		err = executor.Agree("plugin.Load", p.skill, tools)
	}
	p.agreed = err == nil
	return err
}

// unplanned is the error of a machine that does not confine as well as is
// required.
type unplanned struct{ error }

func (u unplanned) Unwrap() error { return u.error }

// describe returns the plugin's own account of its tools, or nil if it gives
// none. Of what the skill asks for it gets nothing but its own folder, without
// which a script could not start.
func (p *program) describe(ctx context.Context, level string) ([]sdk.Tool, error) {
	grant, err := p.bare()
	if err != nil {
		return nil, err
	}
	var failed error
	tools, err := executor.Describe(ctx, "plugin.Load", p.skill, func(ctx context.Context, in sdk.Input) (sdk.Result, error) {
		j := executor.Job{
			Input:  in,
			Grant:  grant,
			Limits: p.skill.Limits,
			Dirs:   executor.Dirs{Skill: p.skill.Home.Dir, Tmp: func() (string, error) { return "", errNoTmp }},
			Level:  level,
			Soft:   ctx,
			Ops:    executor.NoOps{},
			Emit:   func(sdk.Event) {},
		}
		pl, err := p.executor.cages.plan(p.skill, j)
		if err != nil {
			failed = unplanned{err}
			return sdk.Result{}, err
		}
		proc, err := p.executor.pool.acquire(ctx, p, pl)
		if err != nil {
			if sdk.KindOf(err) != sdk.Guest {
				failed = err
			}
			return sdk.Result{}, err
		}
		r, _, err := proc.call(ctx, &j)
		p.executor.pool.release(proc, false) // it gets no other call
		return r, err
	})
	if failed != nil && ctx.Err() == nil {
		return nil, failed // which is not the skill's fault
	}
	return tools, err
}

var errNoTmp = errors.New("a plugin has no private directory of a call while it is loaded")

// bare is the grant of a plugin that describes itself.
func (p *program) bare() (capability.Grant, error) {
	l := capability.Layer{Name: "manifest", Pos: p.skill.Needs.Pos, Closed: true}
	dir := filepath.ToSlash(p.skill.Home.Dir)
	if dir != "" {
		own, err := capability.Parse(capability.Filesystem, "read:"+capability.VarSkillDir, l.Pos)
		if err != nil {
			return capability.Grant{}, err
		}
		l.Allow = capability.Set{own}
	}
	bound, err := l.Bind(capability.Vars{SkillDir: dir}, func(path string) (string, error) {
		real, err := filepath.EvalSymlinks(filepath.FromSlash(path))
		return filepath.ToSlash(real), err
	})
	if err != nil {
		return capability.Grant{}, err
	}
	return capability.NewGrant([]capability.Layer{bound}, nil), nil
}
