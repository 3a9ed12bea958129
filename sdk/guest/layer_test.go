package guest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

type layerArgs struct {
	Do    string          `json:"do"`
	Name  string          `json:"name,omitempty"`
	Lists json.RawMessage `json:"lists,omitempty"`
}

var _ = guest.Tool("layer", "", func(c *guest.Call, in layerArgs) (string, error) {
	switch in.Do {
	case "push":
		n, err := c.PushLayer(guest.Layer{Name: in.Name, Why: "because", Lists: in.Lists})
		return fmt.Sprint("running ", n), err
	case "pop":
		had, err := c.PopLayer(in.Name)
		return fmt.Sprint("popped ", had), err
	}
	own, others, err := c.Layers()
	text := fmt.Sprint("others ", others)
	for _, l := range own {
		text += fmt.Sprintf(" %s %s %s", l.Name, l.Why, l.Lists)
	}
	return text, err
})

func TestLayers(t *testing.T) {
	h := &guesttest.Host{}
	for _, c := range []struct {
		args, want string
		kind       sdk.Kind
	}{
		{`{"do":"list"}`, "others 0", ""},
		{`{"do":"push","name":"a","lists":{"network":[]}}`, "running 0", ""},
		{`{"do":"push","name":"b","lists":{"exec":["git"]}}`, "running 0", ""},
		{`{"do":"push","name":"a","lists":{"network":["*"]}}`, "running 0", ""}, // in the place of the first
		{`{"do":"list"}`, `others 0 b because {"exec":["git"]} a because {"network":["*"]}`, ""},
		{`{"do":"push","name":"c","lists":{}}`, "running 0", ""},
		{`{"do":"push","name":"d","lists":{}}`, "running 0", ""},
		{`{"do":"push","name":"e","lists":{}}`, "", sdk.Limit},
		{`{"do":"push","name":"d","lists":[]}`, "", sdk.Invalid},
		{`{"do":"pop","name":"b"}`, "popped true", ""},
		{`{"do":"pop","name":"b"}`, "popped false", ""},
	} {
		r, err := h.Call(t.Context(), "layer", c.args)
		if c.kind != "" {
			if sdk.KindOf(err) != c.kind {
				t.Errorf("%s: %v", c.args, err)
			}
			continue
		}
		if err != nil || r.Content[0].Text != c.want {
			t.Errorf("%s: %+v, %v, want %q", c.args, r.Content, err, c.want)
		}
	}
	if l := h.Layers(); len(l) != 3 || l[0].Name != "a" {
		t.Errorf("%+v", l)
	}
}
