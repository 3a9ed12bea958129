package streamable

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// TestEnded: whoever keeps something for a session is told once when it has
// ended, and never about a request that has none.
func TestEnded(t *testing.T) {
	var mu sync.Mutex
	var ended []string
	s := serve(t, Options{Scope: sdk.Scope{Session: "host"}, Ended: func(scope sdk.Scope) {
		mu.Lock()
		defer mu.Unlock()
		ended = append(ended, scope.Session)
	}})
	got := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ended)
	}
	head := s.open("2025-11-25", `{}`)
	for _, with := range [][]string{head, nil} {
		if r := s.post(ping, with...); r.status != 200 {
			t.Fatalf("%+v", r)
		}
	}
	if e := got(); len(e) != 0 {
		t.Errorf("a session that goes on has ended: %q", e)
	}
	for range 2 {
		s.do("DELETE", "/mcp", "", head...)
	}
	if e := got(); len(e) != 1 || !strings.HasPrefix(e[0], "http:") {
		t.Errorf("told %q", e)
	}
}
