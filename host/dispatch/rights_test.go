package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

// What was decided for a caller with some rights is never used for it with
// others, in whatever order they come.
func TestRightsAreNotReused(t *testing.T) {
	h := newHouse(t)
	h.setPolicy(t, `
[callers."right:read".tools]
allow = ["one.one-t"]
[callers."right:write"]
allow = true
[callers."right:write".capabilities]
network = []
`)
	allowed := map[string]string{"": "", "read": "one-t", "write": "one-t two-t", "read write": "one-t two-t", "other": ""}
	for range 2 {
		for _, rights := range []string{"read", "", "write", "other", "read write", "read", ""} {
			for _, tool := range []string{"one-t", "two-t"} {
				scope := h.scope
				scope.Caller, scope.Rights = "oauth:id.example.com|ann", rights
				p, err := h.Plan(sdk.Call{Tool: tool, Scope: scope, Args: []byte(`{}`)})
				if want := strings.Contains(allowed[rights], tool); (sdk.KindOf(err) != sdk.Denied) != want {
					t.Errorf("%s with %q: %v", tool, rights, err)
				}
				if p.Entry != nil && h.Visible(p.Entry, scope) != strings.Contains(allowed[rights], tool) {
					t.Errorf("%s with %q is visible against the rules", tool, rights)
				}
				held := slices.ContainsFunc(p.Layers, func(l capability.Layer) bool { return l.Table == `[callers."right:write".capabilities]` })
				if err == nil && held != strings.Contains(rights, "write") {
					t.Errorf("%s with %q: layers %+v", tool, rights, p.Layers)
				}
			}
		}
	}
}

// What built-ins are held to as shipped holds for remote callers as well.
func TestShippedHoldsForRemote(t *testing.T) {
	h := newHouse(t)
	shipped, err := policy.Read("shipped", []byte("[skills.one.deny]\nfilesystem = [\"read:/secret\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	h.Shipped = shipped
	h.setPolicy(t, "[callers.\"token:ci\"]\nallow = true\n[callers.\"right:x\"]\nallow = true\n")
	for _, who := range []sdk.Scope{{Caller: "local:me"}, {Caller: "token:ci"}, {Caller: "oauth:a|b", Rights: "x"}} {
		who.Workspace, who.Session = h.scope.Workspace, h.scope.Session
		p, err := h.Plan(sdk.Call{Tool: "one-t", Scope: who, Args: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(p.Layers, func(l capability.Layer) bool { return strings.Contains(fmt.Sprint(l.Deny), "/secret") }) {
			t.Errorf("%s is not held to what is shipped: %+v", who.Caller, p.Layers)
		}
	}
}
