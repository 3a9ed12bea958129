package timer

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// kill -9 of the host: what is durable passes to another one of the same caller
// and workspace, and the rest is gone.
func TestKilledHost(t *testing.T) {
	w := newWorld(t)
	first := w.host(true)
	w.set(first, "1", Spec{Message: "goes with its host", Delay: minute, Repeat: 5})
	w.set(first, "1", Spec{Message: "stays", Delay: minute, Repeat: 5, Durable: true})
	w.kill(first)
	w.clock.pass(10 * minute)

	second := w.host(true)
	w.settled(second)
	bob := owner("2").sdk()
	bob.Caller = "local:bob"
	if got, _, _ := second.Take(t.Context(), bob); got != nil {
		t.Errorf("another caller: %+v", got)
	}
	defer second.Join(owner("2").sdk(), newListener(false).ear())(false)
	got := w.fires(second, "2", 1)
	if len(got) != 1 || got[0].Message != "stays" || got[0].Missed != 9 {
		t.Errorf("%+v", got)
	}
	all := w.list(second, "2")
	if len(all) != 1 || all[0].Message != "stays" || all[0].Remaining != 4 {
		t.Errorf("%+v", all)
	}
}

// What had fired, and nobody had fetched, passes as well.
func TestKilledHostWithFires(t *testing.T) {
	w := newWorld(t)
	first := w.host(true)
	w.set(first, "1", Spec{Message: "goes with its host", Delay: time.Second, Repeat: 1})
	w.set(first, "1", Spec{Message: "stays", Delay: time.Second, Repeat: 1, Durable: true})
	w.clock.pass(time.Second)
	w.fires(first, "1", 2)
	w.kill(first)

	second := w.host(true)
	var got []Arrival
	w.until("what was left", func() bool { got = w.take(second, "2"); return got != nil })
	if len(got) != 1 || got[0].Message != "stays" {
		t.Errorf("%+v", got)
	}
	w.until("empty store", func() bool {
		rows, err := w.store.List(t.Context(), rowBucket, "", "", 10)
		return err == nil && len(rows) == 0
	})
}

// A host that ends in order leaves what is durable at once, and a session of its
// own that ends as well.
func TestSessionEnds(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	leave := h.Join(owner("1").sdk(), newListener(false).ear())
	w.set(h, "1", Spec{Message: "goes", Delay: minute, Repeat: 5})
	w.set(h, "1", Spec{Message: "stays", Delay: minute, Repeat: 5, Durable: true})
	two := h.Join(owner("2").sdk(), newListener(false).ear())
	w.settled(h)
	if all := w.list(h, "2"); len(all) != 0 {
		t.Fatalf("taken over from who lives: %+v", all)
	}
	leave(true)
	w.until("heir", func() bool { return len(w.list(h, "2")) == 1 })
	if all := w.list(h, "2"); all[0].Message != "stays" {
		t.Errorf("%+v", all)
	}
	w.clock.pass(minute)
	w.fires(h, "2", 1)
	if got := w.inbox(h, "1"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	two(true)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	next := w.host(true)
	w.until("heir", func() bool { return len(w.list(next, "3")) == 1 })
}

// Many hosts want what one has left: one gets it, and fires it.
func TestOneHeir(t *testing.T) {
	for round := range 20 {
		w := newWorld(t)
		first := w.host(true)
		const each = 4
		for i := range each {
			w.set(first, "1", Spec{Message: fmt.Sprint("m", i), Delay: minute, Repeat: 1, Durable: true})
		}
		w.kill(first)
		w.clock.pass(time.Hour)
		var heirs []*Timers
		for range 5 {
			heirs = append(heirs, w.host(false))
		}
		var all sync.WaitGroup
		for i, h := range heirs {
			all.Go(func() {
				defer h.Join(owner(fmt.Sprint("heir", i)).sdk(), newListener(false).ear())(false)
				if err := h.adopt(t.Context(), owner(fmt.Sprint("heir", i)).scope()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		fires := func() (n int) {
			for i, h := range heirs {
				for _, a := range w.inbox(h, fmt.Sprint("heir", i)) {
					n += a.Count
				}
			}
			return n
		}
		w.until("fires", func() bool { return fires() >= each })
		for _, h := range heirs {
			w.settled(h)
		}
		if n := fires(); n != each {
			t.Fatalf("round %d: %d fires, want %d", round, n, each)
		}
	}
}

// Two hosts serve one session that its client names: what is set by way of one
// is seen by way of the other, fires once, and is delivered by either.
func TestSharedSession(t *testing.T) {
	w := newWorld(t)
	a, b := w.host(true), w.host(true)
	const s = "task:t1"
	w.set(a, s, Spec{Message: "by a", Delay: minute, Repeat: 1})
	w.set(b, s, Spec{Message: "by b", Delay: minute, Repeat: 1})
	if all := w.list(a, s); len(all) != 2 || all[0].ID == all[1].ID {
		t.Fatalf("%+v", all)
	}
	w.clock.pass(minute)
	w.fires(b, s, 2)
	for _, h := range []*Timers{a, b} {
		w.settled(h)
	}
	if got := w.fires(a, s, 2); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	w.clock.pass(lookEvery)
	if got := w.take(b, s); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	w.fires(a, s, 0)
	w.clock.pass(lookEvery)
	if got := w.take(a, s); got != nil {
		t.Errorf("twice: %+v", got)
	}
}

// Who listens by way of a host is told what another one has fired.
func TestSharedSessionIsTold(t *testing.T) {
	w := newWorld(t)
	a, b := w.host(true), w.host(true)
	l := newListener(true)
	defer b.Join(owner("task:t1").sdk(), l.ear())(false)
	w.once(a, "task:t1", "m")
	w.until("word", func() bool { w.clock.pass(pushEvery); return l.count() == 1 })
}

// A session that its client names survives its host: what is durable goes on,
// what had fired is still there, and the rest has ended.
func TestSharedSessionOutlivesHost(t *testing.T) {
	w := newWorld(t)
	a := w.host(true)
	const s = "task:t1"
	w.set(a, s, Spec{Message: "fired", Delay: time.Second, Repeat: 1})
	w.set(a, s, Spec{Message: "goes", Delay: minute, Repeat: 5})
	w.set(a, s, Spec{Message: "stays", Delay: minute, Repeat: 5, Durable: true})
	w.clock.pass(time.Second)
	w.fires(a, s, 1)
	w.kill(a)
	w.clock.pass(minute)
	b := w.host(true)
	var took []Arrival
	w.until("both", func() bool {
		w.clock.pass(lookEvery)
		took = append(took, w.take(b, s)...)
		return len(took) >= 2
	})
	if took[0].Message != "fired" || took[1].Message != "stays" {
		t.Errorf("%+v", took)
	}
	if all := w.list(b, s); len(all) != 1 || all[0].Message != "stays" {
		t.Errorf("%+v", all)
	}
	if got := w.take(b, "other"); got != nil {
		t.Errorf("another session: %+v", got)
	}
}

// What comes from elsewhere keeps its number, or gets one that is free.
func TestHeirWithTimersOfItsOwn(t *testing.T) {
	w := newWorld(t)
	first := w.host(true)
	for range Slots {
		w.set(first, "1", Spec{Message: "old", Delay: time.Hour, Repeat: 1, Durable: true})
	}
	w.kill(first)
	second := w.host(true)
	for range 3 {
		w.set(second, "2", Spec{Message: "new", Delay: time.Hour, Repeat: 1})
	}
	w.until("heir", func() bool { return len(w.list(second, "2")) == 3+Slots })
	seen := map[int]bool{}
	for _, x := range w.list(second, "2") {
		if seen[x.ID] {
			t.Errorf("two have the number %d", x.ID)
		}
		seen[x.ID] = true
	}
	if _, err := second.Set(t.Context(), owner("2"), Spec{Message: "m", Delay: minute, Repeat: 1}); sdk.KindOf(err) != sdk.Limit {
		t.Error(err)
	}
	if ended, err := second.Cancel(t.Context(), owner("2"), nil); err != nil || len(ended) != 3+Slots {
		t.Errorf("%v, %v", ended, err)
	}
	if rows, err := w.store.List(t.Context(), rowBucket, "", "", 10); err != nil || len(rows) != 0 {
		t.Errorf("%v, %v", rows, err)
	}
}

// What nobody takes over is removed some day.
func TestSwept(t *testing.T) {
	w := newWorld(t)
	first := w.host(true)
	w.set(first, "1", Spec{Message: "m", Delay: minute, Repeat: 5, Durable: true})
	w.set(first, "task:t", Spec{Message: "m", Delay: minute, Repeat: 5, Durable: true})
	w.kill(first)
	w.clock.pass(keepFor - minute)
	second := w.host(true)
	w.settled(second)
	left := func() int {
		rows, err := w.store.List(t.Context(), rowBucket, "", "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	if n := left(); n != 2 {
		t.Fatalf("%d rows", n)
	}
	w.clock.pass(time.Hour)
	w.until("empty store", func() bool { w.clock.pass(scanEvery); return left() == 0 })
}

// A row that is damaged is put aside, with a word that says so, and the session
// begins anew.
func TestDamagedRows(t *testing.T) {
	const s = "task:t1"
	good := `"format":1,"caller":"local:ann","workspace":"/work","session":"task:t1","next":9`
	for name, value := range map[string]string{
		"no JSON":           "\x00\x01{",
		"another shape":     `[1,2]`,
		"nothing":           `{}`,
		"another's":         `{"format":1,"caller":"local:bob","workspace":"/work","session":"task:t1"}`,
		"a delay of 0":      `{` + good + `,"timers":[{"n":1,"id":0,"skill":"set-callback","message":"m","delay":0,"left":1}]}`,
		"fires no more":     `{` + good + `,"timers":[{"n":1,"id":0,"skill":"set-callback","message":"m","delay":1,"left":0}]}`,
		"an endless text":   `{` + good + `,"timers":[{"n":1,"id":0,"skill":"set-callback","message":"` + strings.Repeat("x", MaxMessage+1) + `","delay":1,"left":1}]}`,
		"one number twice":  `{` + good + `,"timers":[{"n":1,"id":0,"skill":"s","message":"m","delay":1,"left":1},{"n":1,"id":1,"skill":"s","message":"m","delay":1,"left":1}]}`,
		"a number to come":  `{` + good + `,"timers":[{"n":10,"id":0,"skill":"s","message":"m","delay":1,"left":1}]}`,
		"an entry of none":  `{` + good + `,"inbox":[{"n":1,"timer":2,"id":0,"skill":"s","message":"m","fire":1,"count":0}]}`,
		"a negative number": `{` + good + `,"inbox":[{"n":1,"timer":2,"id":0,"skill":"s","message":"m","fire":1,"count":1,"missed":-1}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.host(false)
			key := owner(s).scope().Key()
			damage := func() {
				t.Helper()
				if _, err := w.store.Put(t.Context(), rowBucket, key, []byte(value), store.Any); err != nil {
					t.Fatal(err)
				}
			}
			aside := func() []store.Item {
				t.Helper()
				items, err := w.store.List(t.Context(), damagedBucket, "", "", 10)
				if err != nil {
					t.Fatal(err)
				}
				return items
			}
			refused := func() {
				t.Helper()
				_, err := h.Set(t.Context(), owner(s), Spec{Message: "m", Delay: minute, Repeat: 1})
				if sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), "could not be read") || !strings.Contains(err.Error(), "kept aside") {
					t.Errorf("got %v", err)
				}
			}
			damage()
			refused()
			if items := aside(); len(items) != 1 || string(items[0].Value) != value || !strings.Contains(w.log.String(), items[0].Key) {
				t.Fatalf("put aside: %d; the operator is told %s", len(items), w.log)
			}
			w.set(h, s, Spec{Message: "m", Delay: minute, Repeat: 1})
			if _, err := h.Cancel(t.Context(), owner(s), nil); err != nil {
				t.Fatal(err)
			}
			damage() // and a scan finds it first
			if err := h.scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(aside()); n != 2 {
				t.Fatalf("%d are put aside", n)
			}
			refused()
			w.set(h, s, Spec{Message: "m", Delay: minute, Repeat: 1})
			w.clock.pass(keepFor + time.Hour)
			if err := h.scan(t.Context()); err != nil || len(aside()) != 0 {
				t.Errorf("%d are left, %v", len(aside()), err)
			}
		})
	}
}

// A row of a newer host is left alone.
func TestNewerRow(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	key := owner("task:t1").scope().Key()
	if _, err := w.store.Put(t.Context(), rowBucket, key, []byte(`{"format":2,"new":true}`), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := h.Set(t.Context(), owner("task:t1"), Spec{Message: "m", Delay: minute, Repeat: 1})
		if sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("got %v", err)
		}
	}
	if value, _, err := w.store.Get(t.Context(), rowBucket, key); err != nil || string(value) != `{"format":2,"new":true}` {
		t.Errorf("%s, %v", value, err)
	}
}
