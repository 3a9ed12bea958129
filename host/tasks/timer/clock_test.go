package timer

import (
	"testing"
	"time"
)

// The wall clock decides nothing about a timer that is not durable.
func TestWallClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forward": 48 * time.Hour, "back": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.host(true)
			w.set(h, "a", Spec{Message: "m", Delay: minute, Repeat: 5})
			w.clock.jump(jump)
			w.clock.pass(30 * time.Second)
			w.settled(h)
			if got := w.inbox(h, "a"); len(got) != 0 {
				t.Fatalf("it fires because the clock was set: %+v", got)
			}
			if x := w.list(h, "a")[0]; !x.NextFire.Equal(w.clock.Now().Add(30 * time.Second)) {
				t.Errorf("next at %v, and it is %v", x.NextFire, w.clock.Now())
			}
			w.clock.pass(30 * time.Second)
			if got := w.fires(h, "a", 1); got[0].Missed != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A durable timer obeys the wall clock: what a jump forward passes over fires
// once, and a jump back makes it wait no longer than its delay.
func TestDurableClockJumps(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	w.set(h, "a", Spec{Message: "m", Delay: minute, Repeat: 5, Durable: true})
	w.clock.jump(10*minute + time.Second)
	w.clock.pass(wallEvery)
	if got := w.fires(h, "a", 1); len(got) != 1 || got[0].Missed != 9 {
		t.Errorf("after a jump forward: %+v", got)
	}
	if x := w.list(h, "a")[0]; x.Remaining != 4 {
		t.Errorf("%+v", x)
	}
	w.clock.jump(-48 * time.Hour)
	w.clock.pass(wallEvery)
	w.until("a time that comes soon", func() bool { return w.list(h, "a")[0].NextFire.Sub(w.clock.Now()) <= minute })
	for range 12 {
		w.clock.pass(wallEvery)
		w.settled(h)
	}
	if got := w.fires(h, "a", 2); len(got) != 1 || got[0].Missed != 9 {
		t.Errorf("after a jump back: %+v", got)
	}
}

// A process that stood still makes up for nothing: one delivery says how much it
// stands for.
func TestStoodStill(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	w.set(h, "a", Spec{Message: "m", Delay: time.Second, Repeat: Forever})
	w.clock.pass(time.Hour)
	got := w.fires(h, "a", 1)
	if len(got) != 1 || got[0].Missed != 3599 || got[0].Fire != 1 {
		t.Errorf("%+v", got)
	}
	w.clock.pass(time.Second)
	if got := w.fires(h, "a", 2); got[0].Missed != 3599 {
		t.Errorf("%+v", got)
	}
}
