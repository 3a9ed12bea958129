package tasks

import (
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// TestRunning counts the jobs of a session, of whatever skill and host.
func TestRunning(t *testing.T) {
	w := newWorld(t)
	one, two := w.host("b1"), w.host("b2")
	defer one.Close()
	defer two.Close()
	count := func(h *Tasks, o Owner, want int) {
		t.Helper()
		if n, err := h.Running(t.Context(), o); err != nil || n != want {
			t.Errorf("%+v: %d, %v, want %d", o, n, err, want)
		}
	}
	start := func(h *Tasks, o Owner) int64 {
		t.Helper()
		r := begin(t, h, o)
		r.Go(polite(r, "x"))
		return r.ID()
	}
	skill, session, caller := ann, ann, ann
	skill.Skill, session.Session, caller.Caller = "web", "s2", "local:bob"
	count(one, ann, 0)
	first := start(one, ann)
	start(one, skill)
	start(two, ann)
	start(one, session)
	start(one, caller)
	count(one, ann, 3)
	count(two, skill, 3)
	count(one, session, 1)
	count(one, caller, 1)
	if _, _, err := one.Kill(t.Context(), ann, first, "TERM", time.Minute); err != nil {
		t.Fatal(err)
	}
	count(one, ann, 2)
	w.die("b2") // what it ran is lost
	count(one, ann, 1)
	if _, err := one.Running(t.Context(), Owner{}); sdk.KindOf(err) != sdk.Internal {
		t.Errorf("nobody's: %v", err)
	}
}
