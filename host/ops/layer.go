package ops

import (
	"context"
	"encoding/json"
	"time"

	"github.com/skillhost/skill/sdk"
)

// Layers are those that the skill of a call lays over the call's session: lists
// that narrow what every call of the session may touch.
type Layers interface {
	// Push lays one, in the place of the skill's own of the same name, and
	// returns how many jobs of the session go on without it, -1 if that
	// cannot be told.
	Push(ctx context.Context, p LayerPush) (running int, err error)

	// Pop takes one of the skill's own away, and reports whether there was one.
	Pop(ctx context.Context, name string) (bool, error)

	// List returns the skill's own, and how many others there are.
	List(ctx context.Context) (own []Layer, others int, err error)
}

// A LayerPush is a layer that is to be laid.
type LayerPush struct {
	Name  string          `json:"name"`
	Why   string          `json:"why"` // for whoever is refused
	Lists json.RawMessage `json:"layer"`
	New   bool            `json:"new"` // the skill must have none of that name
}

// A Layer is one that a skill has laid.
type Layer struct {
	Name    string          `json:"name"`
	Why     string          `json:"why,omitempty"`
	Lists   json.RawMessage `json:"layer"`
	Since   time.Time       `json:"since"`
	Refused int64           `json:"refused"` // what this host has seen it refuse
}

// layers is Layers, or an error if nobody keeps them.
func (j *job) layers() (Layers, error) {
	if j.Layers == nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, What: "this host keeps no layers of sessions"}
	}
	return j.Layers, nil
}

func layerPush(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		LayerPush
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	if len(m.Lists) == 0 {
		return nil, invalid("layer", "want an object, see docs/ops.md")
	}
	l, err := j.layers()
	if err != nil {
		return nil, err
	}
	running, err := l.Push(ctx, m.LayerPush)
	if err != nil {
		return nil, kept(err)
	}
	return reply(struct {
		Running int `json:"running"`
	}{running})
}

func layerPop(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		Name string `json:"name"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	l, err := j.layers()
	if err != nil {
		return nil, err
	}
	popped, err := l.Pop(ctx, m.Name)
	if err != nil {
		return nil, kept(err)
	}
	return reply(struct {
		Popped bool `json:"popped"`
	}{popped})
}

func layerList(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	if err := decode(f, &struct{ header }{}, 0); err != nil {
		return nil, err
	}
	l, err := j.layers()
	if err != nil {
		return nil, err
	}
	own, others, err := l.List(ctx)
	if err != nil {
		return nil, kept(err)
	}
	if own == nil {
		own = []Layer{}
	}
	return reply(struct {
		Layers []Layer `json:"layers"`
		Others int     `json:"others"`
	}{own, others})
}
