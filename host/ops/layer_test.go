package ops

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A shelf is a Layers in memory.
type shelf struct {
	laid map[string]Layer
	err  error
}

func (s *shelf) Push(_ context.Context, p LayerPush) (int, error) {
	if s.err == nil {
		s.laid[p.Name] = Layer{Name: p.Name, Why: p.Why, Lists: p.Lists, Since: time.Unix(1_800_000_000, 0).UTC()}
	}
	return 2, s.err
}

func (s *shelf) Pop(_ context.Context, name string) (bool, error) {
	_, had := s.laid[name]
	delete(s.laid, name)
	return had, s.err
}

func (s *shelf) List(context.Context) (own []Layer, others int, err error) {
	for _, l := range s.laid {
		own = append(own, l)
	}
	return own, 1, s.err
}

func TestLayers(t *testing.T) {
	tab, _ := newTable(t)
	b := anyone("a")
	s := &shelf{laid: map[string]Layer{}}
	b.Layers = s
	o := tab.Bind(b)
	ask(t, o, `{"op":"layer.list"}`).is(t, `{"layers":[],"others":1}`)
	ask(t, o, `{"op":"layer.push","name":"x","why":"w","layer":{"network":[]}}`).is(t, `{"running":2}`)
	ask(t, o, `{"op":"layer.list"}`).is(t, `{"layers":[{"layer":{"network":[]},"name":"x","refused":0,"since":"2027-01-15T08:00:00Z","why":"w"}],"others":1}`)
	ask(t, o, `{"op":"layer.pop","name":"y"}`).is(t, `{"popped":false}`)
	ask(t, o, `{"op":"layer.pop","name":"x"}`).is(t, `{"popped":true}`)
	for _, h := range []string{
		`{"op":"layer.push","name":"x"}`, `{"op":"layer.push","name":1,"layer":{}}`, `{"op":"layer.push","name":"x","layer":{},"owner":"b"}`,
		`{"op":"layer.pop","name":"x","skill":"b"}`, `{"op":"layer.pop","name":["x"]}`, `{"op":"layer.list","session":"other"}`,
	} {
		ask(t, o, h).fails(t, sdk.Invalid)
	}
	s.err = &sdk.Error{Kind: sdk.Unavailable, What: "it cannot be told", Err: context.DeadlineExceeded, Hint: "see skill doctor"}
	for _, h := range []string{`{"op":"layer.push","name":"x","layer":{}}`, `{"op":"layer.pop","name":"x"}`, `{"op":"layer.list"}`} {
		a := ask(t, o, h)
		a.fails(t, sdk.Unavailable, "it cannot be told")
		if a.err != nil && strings.Contains(a.err.Error(), "deadline") {
			t.Errorf("%s: the guest is told %v", h, a.err)
		}
		b.Layers = nil
		ask(t, tab.Bind(b), h).fails(t, sdk.Unavailable)
		b.Layers = s
	}
}
