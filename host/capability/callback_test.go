package capability

import (
	"strings"
	"testing"
)

// TestCallback: to call back is an entry of its own, which neither of the others
// nor any "*" stands for, and whoever allows it is told what it means.
func TestCallback(t *testing.T) {
	callback := Access{Kind: Client, Verb: Ask, Target: Callback}
	for entry, want := range map[string]bool{"callback": true, "sampling": false, "roots": false} {
		list := parseAll(t, Client, entry)
		g := NewGrant([]Layer{{Name: "manifest", Closed: true, Allow: list}}, nil)
		if err := g.Check(callback); (err == nil) != want {
			t.Errorf("%s: %v", entry, err)
		}
		if strings.Contains(list[0].Caution(), "beside the results of other tools") != want {
			t.Errorf("%s: caution %q", entry, list[0].Caution())
		}
	}
	for _, entry := range []string{"*", "callback*", "Callback", ""} {
		if c, err := Parse(Client, entry, Pos{}); err == nil {
			t.Errorf("%q is %+v", entry, c)
		}
	}
}
