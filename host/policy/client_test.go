package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
)

// Every way for the operator to speak of the client's model in each of the four
// places that hold for a call, asked with a manifest that has it: a list takes
// away what is not on it, a deny takes away whatever is allowed elsewhere.
func TestClientWorld(t *testing.T) {
	var manifest capability.Layer
	manifest.Name, manifest.Closed = "manifest", true
	for _, e := range []string{"sampling", "roots"} {
		c, err := capability.Parse(capability.Client, e, capability.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		manifest.Allow = append(manifest.Allow, c)
	}
	places := []string{"defaults", `callers."local:bob"`, "skills.hello", "skills.hello.tools.greet"}
	ways := []struct {
		allow, deny     string
		sampling, roots bool // what it leaves
	}{
		{"", "", true, true},
		{"[]", "", false, false},
		{`["sampling"]`, "", true, false},
		{`["roots"]`, "", false, true},
		{`["sampling", "roots"]`, "", true, true},
		{"", `["sampling"]`, false, true},
		{`["sampling", "roots"]`, `["roots"]`, true, false},
	}
	count, passed := 0, 0
	for i := range len(ways) * len(ways) * len(ways) * len(ways) {
		var text strings.Builder
		sampling, roots := true, true
		for n, place := range places {
			w := ways[i%len(ways)]
			i /= len(ways)
			sampling, roots = sampling && w.sampling, roots && w.roots
			if n == 2 {
				fmt.Fprintf(&text, "[skills.hello]\nallow = true\ndigest = %q\n", digestA)
			}
			if w.allow != "" {
				fmt.Fprintf(&text, "[%s.capabilities]\nclient = %s\n", place, w.allow)
			}
			if w.deny != "" {
				fmt.Fprintf(&text, "[%s.deny]\nclient = %s\n", place, w.deny)
			}
		}
		p, err := Read("policy.toml", []byte(text.String()))
		if err != nil {
			t.Fatalf("%s\n%v", &text, err)
		}
		d := p.Authorize(Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "greet", Needs: manifest})
		if !d.Allowed {
			t.Fatalf("%s\n%+v: the client's model is no reason to refuse a call", &text, d)
		}
		g := capability.NewGrant(append([]capability.Layer{manifest}, d.Layers...), nil)
		for what, want := range map[string]bool{"sampling": sampling, "roots": roots} {
			if got := g.Allows(capability.Access{Kind: capability.Client, Verb: capability.Ask, Target: what}); got != want {
				t.Fatalf("%s\n%s: %v, want %v", &text, what, got, want)
			}
			count++
			if want {
				passed++
			}
		}
		// Without the manifest's word the operator's gives nothing.
		bare := capability.NewGrant(append([]capability.Layer{{Name: "manifest", Closed: true}}, d.Layers...), nil)
		if bare.Allows(capability.Access{Kind: capability.Client, Verb: capability.Ask, Target: "sampling"}) {
			t.Fatalf("%s\ngives what the manifest does not ask for", &text)
		}
	}
	if passed == 0 || passed == count {
		t.Fatalf("%d of %d", passed, count)
	}
}
