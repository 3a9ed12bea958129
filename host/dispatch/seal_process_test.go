package dispatch

import (
	"encoding/json"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// twoHosts returns two hosts of one user, on one store.
func twoHosts(t *testing.T) (a, b *house) {
	t.Helper()
	a, b = newHouse(t), newHouse(t)
	for name, h := range map[string]*house{"a": a, "b": b} {
		h.store, h.scope = a.store, a.scope
		h.scope.Session = "process " + name
		h.Sealer = &Sealer{Store: a.store, Process: h.scope.Session}
		h.guest.run = asks(2)
	}
	return a, b
}

// put asks h for the tool that asks, with what was asked before and an answer.
func put(t *testing.T, h *house, scope sdk.Scope, state string, answers map[string]sdk.Answer) (sdk.Result, error) {
	t.Helper()
	return h.Call(t.Context(), sdk.Call{Tool: "one-t", Args: json.RawMessage(`{"a":"x"}`), Scope: scope, State: state, Answers: answers}, nil)
}

// A caller without a session may be answered by any host of the user; what it
// brings is good once, whichever they are.
func TestStateAtAnotherHost(t *testing.T) {
	a, b := twoHosts(t)
	first, err := put(t, a, a.scope, "", nil)
	if err != nil || first.State == "" {
		t.Fatalf("%+v %v", first, err)
	}
	red := map[string]sdk.Answer{"a": accept("red")}
	second, err := put(t, b, b.scope, first.State, red)
	if err != nil || second.Questions["b"].Message == "" {
		t.Fatalf("round 2 at the other host: %+v %v", second, err)
	}
	for name, h := range map[string]*house{"a": a, "b": b} {
		if _, err := put(t, h, h.scope, first.State, red); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("state_replayed_elsewhere at %s: %v", name, err)
		}
	}
	blue := map[string]sdk.Answer{"b": accept("blue")}
	third, err := put(t, a, a.scope, second.State, blue)
	if err != nil || len(third.Content) != 1 || third.State != "" {
		t.Fatalf("round 3 where it began: %+v %v", third, err)
	}
	// A task goes on with the call as it was kept, whichever host does.
	if first, err = put(t, a, a.scope, "", nil); err != nil {
		t.Fatal(err)
	}
	if _, err = put(t, b, a.scope, first.State, red); err != nil {
		t.Errorf("the call as it was: %v", err)
	}
}

// TestStateOfOthers lists who must not use a state that a host sealed for a
// caller without a session.
func TestStateOfOthers(t *testing.T) {
	for name, change := range map[string]func(*sdk.Scope){
		"state_other_caller":    func(s *sdk.Scope) { s.Caller = "local:eve" },
		"state_other_rights":    func(s *sdk.Scope) { s.Rights = "more" },
		"state_other_workspace": func(s *sdk.Scope) { s.Workspace += "/in" },
		"state_into_session":    func(s *sdk.Scope) { s.Session = "http:x" },
		"state_into_task":       func(s *sdk.Scope) { s.Session = "task:x" },
		"state_into_no_session": func(s *sdk.Scope) { s.Session = "" },
		"state_into_third_host": func(s *sdk.Scope) { s.Session = "process c" },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := twoHosts(t)
			r, err := put(t, a, a.scope, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			other := b.scope
			change(&other)
			red := map[string]sdk.Answer{"a": accept("red")}
			if _, err := put(t, b, other, r.State, red); sdk.KindOf(err) != sdk.Invalid && sdk.KindOf(err) != sdk.NotFound {
				t.Errorf("%v", err)
			}
			if _, err := put(t, b, b.scope, r.State, red); err != nil {
				t.Errorf("its own caller, after that: %v", err)
			}
		})
	}
}

// state_out_of_session: what was asked in a session of the transport is answered
// there, at this host and at others.
func TestStateOfSession(t *testing.T) {
	a, b := twoHosts(t)
	inside := a.scope
	inside.Session = "http:x"
	r, err := put(t, a, inside, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	red := map[string]sdk.Answer{"a": accept("red")}
	outside := inside
	outside.Session = "http:y"
	for name, c := range map[string]struct {
		h     *house
		scope sdk.Scope
	}{"here, without one": {a, a.scope}, "there, without one": {b, b.scope}, "here, in another": {a, outside}, "there, in another": {b, outside}} {
		if _, err := put(t, c.h, c.scope, r.State, red); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := put(t, a, inside, r.State, red); err != nil {
		t.Error(err)
	}
}

// Of a host that does not say which session is its process's, nothing but the same
// scope will do.
func TestStateWithoutProcess(t *testing.T) {
	a, b := twoHosts(t)
	a.Sealer.Process = ""
	for _, session := range []string{"", "process a"} {
		scope := a.scope
		scope.Session = session
		r, err := put(t, a, scope, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		red := map[string]sdk.Answer{"a": accept("red")}
		if _, err := put(t, b, b.scope, r.State, red); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("session %q: %v", session, err)
		}
	}
}
