package dispatch

import (
	"context"
	"errors"

	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/ops"
	"github.com/skillhost/skill/host/session"
	"github.com/skillhost/skill/sdk"
)

// lay adds what skills have laid over the session of the call: one more layer
// each, under every call of the session, however it has come.
func (p *Plan) lay(d *Dispatcher) (err error) {
	if p.laid, err = d.Laid.Of(p.Call.Scope); err != nil || p.laid == nil {
		return err
	}
	layers, err := p.laid.Layers(target(p.Entry))
	p.Layers = append(p.Layers[:len(p.Layers):len(p.Layers)], layers...)
	return err
}

func target(e *catalog.Entry) session.Target {
	t := session.Target{SkillDir: skillDir(e)}
	if e.Skill.Home.Builtin {
		t.Builtin = e.Skill.Name
	}
	return t
}

// relaid reports whether something else lies over the session than when the
// plan of r was made, or that cannot be told: planning anew says so.
func (r *run) relaid() bool {
	now, err := r.d.Laid.Of(r.plan.Call.Scope)
	return err != nil || now != r.plan.laid
}

// refusedByLaid counts a refusal that a layer of the session is the ground of.
func (r *run) refusedByLaid(err error) {
	var e *sdk.Error
	if r.plan.laid != nil && errors.As(err, &e) && e.Denial != nil {
		r.plan.laid.Refused(e.Denial.Layer)
	}
}

// failedByLaid counts the failure of a native call that the kernel has refused
// something: the executor then names the layers that it ran under.
func (r *run) failedByLaid(result sdk.Result, err error) {
	if r.plan.laid == nil || !r.d.Programs.Fixed(r.plan.Entry.Skill) {
		return
	}
	switch n := len(result.Content); {
	case err != nil:
		r.plan.laid.Named(err.Error())
	case result.Failed && n > 0:
		r.plan.laid.Named(result.Content[n-1].Text)
	}
}

// pushed is what the skill of a run lays over the session.
type pushed struct{ r *run }

var _ ops.Layers = pushed{}

func (p pushed) kept() (*session.Layers, error) {
	if p.r.d.Laid == nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, What: "this host keeps no layers of sessions"}
	}
	return p.r.d.Laid, nil
}

// Push implements ops.Layers. What changes the rules of a session is on record
// before it does.
func (p pushed) Push(ctx context.Context, layer ops.LayerPush) (running int, err error) {
	l, err := p.kept()
	if err != nil {
		return 0, err
	}
	if err := p.record(ctx, "layer.push", layer.Name, layer.Why); err != nil {
		return 0, err
	}
	s, scope := p.r.plan.Entry.Skill, p.r.plan.Call.Scope
	push := session.Push{Owner: p.r.d.owner(s), Skill: s.Name, Name: layer.Name, New: layer.New, Why: layer.Why, Lists: layer.Lists}
	if err := l.Push(ctx, scope, push); err != nil {
		return 0, err
	}
	if p.r.d.Tasks == nil {
		return 0, nil
	}
	if running, err = p.r.d.Tasks.Running(ctx, p.r.taskOwner()); err != nil { // the layer lies there all the same
		return -1, nil
	}
	return running, nil
}

// Pop implements ops.Layers.
func (p pushed) Pop(ctx context.Context, name string) (bool, error) {
	l, err := p.kept()
	if err != nil {
		return false, err
	}
	if err := p.record(ctx, "layer.pop", name, ""); err != nil {
		return false, err
	}
	return l.Pop(ctx, p.r.plan.Call.Scope, p.r.d.owner(p.r.plan.Entry.Skill), name)
}

// List implements ops.Layers.
func (p pushed) List(context.Context) ([]ops.Layer, int, error) {
	l, err := p.kept()
	if err != nil {
		return nil, 0, err
	}
	stack, err := l.Of(p.r.plan.Call.Scope)
	if err != nil {
		return nil, 0, err
	}
	rows, others := stack.Owned(p.r.d.owner(p.r.plan.Entry.Skill))
	var own []ops.Layer
	for _, row := range rows {
		own = append(own, ops.Layer{Name: row.Name, Why: row.Why, Lists: row.Lists, Since: row.Since, Refused: stack.Count(row.ID)})
	}
	return own, others, nil
}

// record writes that the rules of the session are about to change.
func (p pushed) record(ctx context.Context, what, name, why string) error {
	e := p.r.accessEvent(row{})
	e.Access, e.Target, e.Note, e.Session = what, clipped(name), clipped(why), p.r.plan.Call.Scope.Session
	if err := p.r.d.Audit.Append(ctx, e); err != nil {
		return &sdk.Error{Kind: sdk.Unavailable, What: "it cannot be recorded", Err: err}
	}
	return nil
}

// clipped bounds what a guest has on record.
func clipped(s string) string { return s[:min(len(s), 256)] }
