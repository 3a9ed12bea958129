package timer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/tasks/timer/row"
	"github.com/skillhost/skill/sdk"
)

const minute = time.Minute

func TestFires(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	x := w.set(h, "a", Spec{Message: "look at the build", Delay: minute, Repeat: 3})
	want := Timer{Message: "look at the build", Delay: 60, NextFire: w.clock.Now().Add(minute), Remaining: 3}
	if x != want {
		t.Errorf("got %+v\nwant %+v", x, want)
	}
	w.clock.pass(59 * time.Second)
	w.settled(h)
	if got := w.inbox(h, "a"); len(got) != 0 {
		t.Fatalf("too early: %+v", got)
	}
	w.clock.pass(time.Second)
	got := w.fires(h, "a", 1)
	if a := got[0]; a.Fire != 1 || a.Timer != 0 || a.Message != "look at the build" || a.Missed != 0 || !a.Last.Equal(w.clock.Now()) {
		t.Errorf("%+v", a)
	}
	if x := w.list(h, "a")[0]; x.Remaining != 2 || x.Pending != 1 || x.Delivered != 0 || !x.NextFire.Equal(w.clock.Now().Add(minute)) {
		t.Errorf("%+v", x)
	}
	for range 2 { // what nobody has fetched is one, with a count
		w.clock.pass(minute)
		w.settled(h)
	}
	if got = w.fires(h, "a", 3); len(got) != 1 || got[0].Fire != 3 {
		t.Errorf("%+v", got)
	}
	if all := w.list(h, "a"); len(all) != 1 || all[0].Remaining != 0 || all[0].Pending != 3 || !all[0].NextFire.IsZero() {
		t.Errorf("what fires no more and waits: %+v", all)
	}
	if took := w.take(h, "a"); len(took) != 1 || took[0].Count != 3 {
		t.Errorf("%+v", took)
	}
	w.until("empty list", func() bool { return len(w.list(h, "a")) == 0 })
	w.clock.pass(time.Hour)
	w.settled(h)
	if got := w.inbox(h, "a"); len(got) != 0 {
		t.Errorf("a timer that is over fires: %+v", got)
	}
	w.until("nothing that costs every call", func() bool { return !h.Waiting(owner("a").sdk()) })
}

func TestForever(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	w.set(h, "a", Spec{Message: "m", Delay: time.Second, Repeat: Forever})
	for i := range 50 {
		w.clock.pass(time.Second)
		w.fires(h, "a", 1)
		if got := w.take(h, "a"); len(got) != 1 || got[0].Fire != i+1 {
			t.Fatalf("%d: %+v", i, got)
		}
		w.fires(h, "a", 0)
	}
	w.until("all counted", func() bool { return w.list(h, "a")[0].Delivered == 50 })
	if x := w.list(h, "a")[0]; x.Remaining != Forever {
		t.Errorf("%+v", x)
	}
}

func TestNinthIsRefused(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	for i := range Slots {
		if x := w.set(h, "a", Spec{Message: "m", Delay: minute, Repeat: 1}); x.ID != i {
			t.Errorf("slot %d: %+v", i, x)
		}
	}
	_, err := h.Set(t.Context(), owner("a"), Spec{Message: "m", Delay: minute, Repeat: 1})
	if sdk.KindOf(err) != sdk.Limit || !strings.Contains(err.Error(), "all callback slots full (max 8)") {
		t.Errorf("the ninth: %v", err)
	}
	if x := w.set(h, "b", Spec{Message: "m", Delay: minute, Repeat: 1}); x.ID != 0 {
		t.Errorf("another session: %+v", x)
	}
	five, seven := 5, 7
	if ended, err := h.Cancel(t.Context(), owner("a"), &five); err != nil || !slices.Equal(ended, []int{5}) {
		t.Errorf("%v, %v", ended, err)
	}
	if _, err := h.Cancel(t.Context(), owner("a"), &five); sdk.KindOf(err) != sdk.NotFound {
		t.Errorf("again: %v", err)
	}
	if x := w.set(h, "a", Spec{Message: "m", Delay: minute, Repeat: 1, Slot: &seven}); x.ID != 5 {
		t.Errorf("a wish for a slot that is taken: %+v", x)
	}
	if ended, err := h.Cancel(t.Context(), owner("a"), nil); err != nil || !slices.Equal(ended, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("all: %v, %v", ended, err)
	}
	if ended, err := h.Cancel(t.Context(), owner("a"), nil); err != nil || len(ended) != 0 {
		t.Errorf("none: %v, %v", ended, err)
	}
	if x := w.set(h, "a", Spec{Message: "m", Delay: minute, Repeat: 1, Slot: &seven}); x.ID != 7 {
		t.Errorf("a wish for a slot that is free: %+v", x)
	}
	if len(w.list(h, "b")) != 1 {
		t.Error("another session's was cancelled")
	}
}

// Another skill has slots of its own, and sees and ends nothing of this one.
func TestSkillsAreApart(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	other := owner("a")
	other.Skill = "stranger"
	for range Slots {
		w.set(h, "a", Spec{Message: "m", Delay: minute, Repeat: 1})
	}
	if _, err := h.Set(t.Context(), other, Spec{Message: "theirs", Delay: minute, Repeat: 1}); err != nil {
		t.Fatal(err)
	}
	w.clock.pass(minute)
	w.fires(h, "a", Slots)
	got, _, err := h.Inbox(t.Context(), other)
	if err != nil || len(got) != 1 || got[0].Message != "theirs" {
		t.Fatalf("%+v, %v", got, err)
	}
	if n, err := h.Acknowledge(t.Context(), owner("a"), []int64{got[0].ID}); n != 0 || err != nil {
		t.Errorf("a stranger's entry was acknowledged: %d, %v", n, err)
	}
	if ended, err := h.Cancel(t.Context(), other, nil); err != nil || len(ended) != 1 {
		t.Errorf("%v, %v", ended, err)
	}
	if got := w.inbox(h, "a"); len(got) != Slots {
		t.Errorf("%+v", got)
	}
}

func TestBounds(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	good := Spec{Message: strings.Repeat("ö", MaxMessage), Delay: MaxDelay, Repeat: MaxRepeat}
	w.set(h, "a", good)
	for name, change := range map[string]func(*Spec){
		"no message":      func(s *Spec) { s.Message = " \n" },
		"message":         func(s *Spec) { s.Message += "x" },
		"no delay":        func(s *Spec) { s.Delay = 0 },
		"negative delay":  func(s *Spec) { s.Delay = -time.Second },
		"delay":           func(s *Spec) { s.Delay += time.Second },
		"half a second":   func(s *Spec) { s.Delay = 1500 * time.Millisecond },
		"no repeat":       func(s *Spec) { s.Repeat = 0 },
		"repeat":          func(s *Spec) { s.Repeat++ },
		"negative repeat": func(s *Spec) { s.Repeat = -2 },
	} {
		s := good
		change(&s)
		if _, err := h.Set(t.Context(), owner("a"), s); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []Owner{{Workspace: "/work", Session: "a", Skill: skill}, {Caller: "local:ann", Session: "a"}} {
		if _, err := h.Set(t.Context(), o, good); sdk.KindOf(err) != sdk.Internal {
			t.Errorf("%+v: %v", o, err)
		}
		if _, err := h.List(t.Context(), o); sdk.KindOf(err) != sdk.Internal {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A client that makes up sessions cannot fill the store.
func TestManySessions(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	n, err := 0, error(nil)
	for err == nil && n <= 2*maxFamily {
		_, err = h.Set(t.Context(), owner(fmt.Sprint("task:", n/Slots)), Spec{Message: "m", Delay: minute, Repeat: Forever})
		n++
	}
	if sdk.KindOf(err) != sdk.Limit || n-1 != maxFamily {
		t.Errorf("after %d: %v", n-1, err)
	}
	other := owner("a")
	other.Caller = "local:bob"
	if _, err := h.Set(t.Context(), other, Spec{Message: "m", Delay: minute, Repeat: 1}); err != nil {
		t.Errorf("another caller: %v", err)
	}
}

// What nobody fetches does not grow without end, and what is lost is said.
func TestInboxIsBounded(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	const rounds = 15 // of eight that fire once and are over
	for i := range rounds {
		for range Slots {
			w.set(h, "a", Spec{Message: "m", Delay: time.Second, Repeat: 1})
		}
		w.clock.pass(time.Second)
		w.until("free slots", func() bool {
			return !slices.ContainsFunc(w.list(h, "a"), func(x Timer) bool { return x.Remaining > 0 })
		})
		w.fires(h, "a", min(row.MaxInbox, (i+1)*Slots))
	}
	_, lost, err := h.Inbox(t.Context(), owner("a"))
	if want := rounds*Slots - row.MaxInbox; err != nil || lost != want {
		t.Errorf("lost %d, %v; want %d", lost, err, want)
	}
	got, lost, written := h.Take(t.Context(), owner("a").sdk())
	if len(got) != maxRide || lost == 0 {
		t.Errorf("%d taken, %d lost", len(got), lost)
	}
	written(true)
	w.fires(h, "a", row.MaxInbox-maxRide)
}

// A batch of long messages is taken in parts.
func TestTakeIsShort(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	for range 4 {
		w.set(h, "a", Spec{Message: strings.Repeat("日", MaxMessage), Delay: time.Second, Repeat: 1})
	}
	w.clock.pass(time.Second)
	w.fires(h, "a", 4)
	for i := range 4 {
		if got := w.take(h, "a"); len(got) != 1 {
			t.Fatalf("%d: %d at once", i, len(got))
		}
	}
	w.fires(h, "a", 0)
}

// Nothing is set after the end, and the end may come twice.
func TestClosed(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	w.set(h, "a", Spec{Message: "m", Delay: minute, Repeat: 1})
	for range 2 {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Set(t.Context(), owner("a"), Spec{Message: "m", Delay: minute, Repeat: 1}); sdk.KindOf(err) != sdk.Unavailable {
		t.Error(err)
	}
	if rows, err := w.store.List(context.Background(), rowBucket, "", "", 10); err != nil || len(rows) != 0 {
		t.Errorf("what is not durable is left: %v, %v", rows, err)
	}
}
