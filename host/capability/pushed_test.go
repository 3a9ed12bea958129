package capability

import (
	"errors"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// A layer that a skill has pushed says so to whoever it refuses, and tells
// nobody how to add to it: the operator has no say in it.
func TestPushedRefuses(t *testing.T) {
	parse := func(kind Kind, entry string) Capability {
		c, err := Parse(kind, entry, Pos{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	manifest := Layer{Name: "manifest", Closed: true, Allow: Set{parse(Filesystem, "write:/data")}}
	pushed := Layer{Name: `layer "x" of one`, Pushed: true, Why: `it "ends" soon`, Speaks: []Topic{{Filesystem, Write}}, Allow: Set{parse(Filesystem, "write:/data/gone"), parse(Filesystem, "write:/data/a")}}
	bound, err := pushed.Bind(Vars{}, func(p string) (string, error) {
		if strings.HasSuffix(p, "gone") {
			return "", errors.New("no such file")
		}
		return p, nil
	})
	if err != nil || len(bound.Allow) != 1 {
		t.Fatalf("pushed_tells_what_exists: %+v, %v", bound.Allow, err)
	}
	g := NewGrant([]Layer{manifest, bound}, nil)
	err = g.Check(Access{Kind: Filesystem, Verb: Write, Target: "/data/b"})
	const want = `filesystem.write /data/b (refused by layer "x" of one, which says "it \"ends\" soon")`
	var e *sdk.Error
	if err == nil || err.Error() != want || !errors.As(err, &e) || e.Denial.Layer != `layer "x" of one` || e.Denial.Allow != "" {
		t.Errorf("%v, want %s", err, want)
	}
	if !g.Allows(Access{Kind: Filesystem, Verb: Write, Target: "/data/a"}) || !g.Allows(Access{Kind: Filesystem, Verb: Read, Target: "/data/b"}) {
		t.Error("it refuses what it allows, or does not speak of")
	}
	if NewGrant([]Layer{bound}, nil).Allows(Access{Kind: Filesystem, Verb: Write, Target: "/data/a"}) {
		t.Error("pushed_alone: a pushed layer gives by itself")
	}
}
