package guest

import (
	"encoding/json"
	"time"
)

// A Layer is a list that narrows what every call of a session may touch, on
// whatever way it comes: calls of other skills, nested and background ones too.
// It can take away and never give.
type Layer struct {
	Name string `json:"name"`          // letters, digits, spaces and ". _ -"
	Why  string `json:"why,omitempty"` // one line for whoever is refused: what the layer is there for, and how it ends

	// Lists encodes as an object from kinds to lists of entries as in
	// [capabilities] of a manifest; a kind that is not there is left to the other
	// layers. "filesystem.write" is a list for writing alone. In "builtin" is
	// what it says instead to built-in skills, by their names; null there says
	// nothing of a kind.
	Lists any `json:"layer"`

	// New lays it only if the skill has none of that name: of several calls at
	// once, one does.
	New bool `json:"new,omitempty"`
}

// A PushedLayer is a layer that lies over the session.
type PushedLayer struct {
	Name    string          `json:"name"`
	Why     string          `json:"why"`
	Lists   json.RawMessage `json:"layer"`
	Since   time.Time       `json:"since"`
	Refused int64           `json:"refused"` // what the host has seen it refuse
}

// PushLayer lays a layer over the session of this call, in the place of the
// skill's own of the same name, if there is one. Calls and jobs that run already
// go on without it: running is how many jobs do, -1 if that cannot be told. Only
// this skill can take it away again; it is gone when the session is.
func (c *Call) PushLayer(l Layer) (running int, err error) {
	var reply struct {
		Running int `json:"running"`
	}
	_, err = c.do("layer.push", l, &reply)
	return reply.Running, err
}

// PopLayer takes the skill's layer of that name away, and reports whether there
// was one.
func (c *Call) PopLayer(name string) (bool, error) {
	var reply struct {
		Popped bool `json:"popped"`
	}
	_, err := c.do("layer.pop", struct {
		Name string `json:"name"`
	}{name}, &reply)
	return reply.Popped, err
}

// Layers returns what the skill has laid over the session, and how many layers
// of other skills lie there.
func (c *Call) Layers() (own []PushedLayer, others int, err error) {
	var reply struct {
		Layers []PushedLayer `json:"layers"`
		Others int           `json:"others"`
	}
	_, err = c.do("layer.list", nil, &reply)
	return reply.Layers, reply.Others, err
}
