package capability

import "testing"

func TestSpeaksOf(t *testing.T) {
	read, write := Topic{Filesystem, Read}, Topic{Filesystem, Write}
	for _, c := range []struct {
		layer Layer
		topic Topic
		want  bool
	}{
		{Layer{}, read, false},
		{Layer{Closed: true}, read, true},
		{Layer{Speaks: []Topic{read}}, read, true},
		{Layer{Speaks: []Topic{read}}, write, false},
		{Layer{Speaks: []Topic{read}}, Topic{Env, Read}, false},
	} {
		if got := c.layer.SpeaksOf(c.topic); got != c.want {
			t.Errorf("%+v of %v: %v", c.layer, c.topic, got)
		}
	}
}
