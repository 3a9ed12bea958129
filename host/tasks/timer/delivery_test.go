package timer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// once sets a timer that fires once, and lets it.
func (w *world) once(h *Timers, session, message string) {
	w.t.Helper()
	before := len(w.inbox(h, session))
	w.set(h, session, Spec{Message: message, Delay: time.Second, Repeat: 1})
	w.clock.pass(time.Second)
	w.until("fire", func() bool { return len(w.inbox(h, session)) == before+1 })
}

// An answer that is not written loses nothing.
func TestFailedWriteLosesNothing(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	w.once(h, "a", "m")
	out, _, written := h.Take(t.Context(), owner("a").sdk())
	if len(out) != 1 {
		t.Fatalf("%+v", out)
	}
	if again, _, _ := h.Take(t.Context(), owner("a").sdk()); again != nil {
		t.Errorf("two answers at once carry it: %+v", again)
	}
	written(false)
	if got := w.take(h, "a"); len(got) != 1 || got[0].Count != 1 {
		t.Errorf("after a failed write: %+v", got)
	}
	w.fires(h, "a", 0)
}

// So does one of which nobody hears any more.
func TestForgottenWriteLosesNothing(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	w.once(h, "a", "m")
	_, _, late := h.Take(t.Context(), owner("a").sdk())
	w.clock.pass(rideFor)
	if got := w.take(h, "a"); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	w.fires(h, "a", 0)
	late(true)
	late(false)
	w.settled(h)
	if got := w.take(h, "a"); got != nil {
		t.Errorf("%+v", got)
	}
}

// What fires while an answer is on its way comes with the next one.
func TestFiresWhileRiding(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	w.set(h, "a", Spec{Message: "m", Delay: time.Second, Repeat: Forever})
	w.clock.pass(time.Second)
	w.fires(h, "a", 1)
	_, _, written := h.Take(t.Context(), owner("a").sdk())
	w.clock.pass(time.Second)
	w.fires(h, "a", 2)
	written(true)
	got := w.fires(h, "a", 1)
	if len(got) != 1 || got[0].Fire != 2 {
		t.Errorf("%+v", got)
	}
	w.until("count", func() bool { return w.list(h, "a")[0].Delivered == 1 })
	w.until("second", func() bool { return len(w.take(h, "a")) == 1 })
}

// A store that does not answer when a delivery is to be noted does not make it
// come twice.
func TestDeliveredOnceWithoutStore(t *testing.T) {
	w := newWorld(t)
	sick := &sickStore{Store: w.store}
	w.store = sick
	h := w.host(true)
	w.once(h, "a", "m")
	sick.fail(true)
	if got := w.take(h, "a"); len(got) != 1 {
		t.Fatal(got)
	}
	for range 3 {
		w.settled(h)
		w.clock.pass(tryAgain)
		if got := w.take(h, "a"); got != nil {
			t.Fatalf("twice: %+v", got)
		}
	}
	sick.fail(false)
	w.clock.pass(tryAgain)
	w.until("empty store", func() bool {
		w.clock.pass(tryAgain)
		rows, err := w.store.List(t.Context(), rowBucket, "", "", 10)
		return err == nil && len(rows) == 0
	})
}

// A timer that cannot be written down when it is due fires when it can be.
func TestFiresWhenTheStoreIsBack(t *testing.T) {
	w := newWorld(t)
	sick := &sickStore{Store: w.store}
	w.store = sick
	h := w.host(true)
	w.set(h, "a", Spec{Message: "m", Delay: time.Second, Repeat: 1})
	sick.fail(true)
	w.clock.pass(time.Second)
	w.settled(h)
	sick.fail(false)
	w.until("fire", func() bool { w.clock.pass(tryAgain); return len(w.inbox(h, "a")) == 1 })
}

type sickStore struct {
	store.Store
	mu   sync.Mutex
	sick bool
}

func (s *sickStore) fail(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sick = yes
}

func (s *sickStore) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sick {
		return errors.New("the disk is on fire")
	}
	return nil
}

func (s *sickStore) Put(ctx context.Context, bucket, key string, value []byte, old int64) (int64, error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.Store.Put(ctx, bucket, key, value, old)
}

func (s *sickStore) Delete(ctx context.Context, bucket, key string, old int64) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.Store.Delete(ctx, bucket, key, old)
}

// Window 1's callback never fires in window 2, nor is window 2 told of it.
func TestWindowsAreApart(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	one, two := newListener(true), newListener(true)
	defer h.Join(owner("1").sdk(), one.ear())(false)
	defer h.Join(owner("2").sdk(), two.ear())(false)
	bob := owner("1")
	bob.Caller = "local:bob"
	w.once(h, "1", "m")
	for _, o := range []Owner{owner("2"), bob, {"local:ann", "/other", "1", skill}} {
		if got, _, _ := h.Take(t.Context(), o.sdk()); got != nil {
			t.Errorf("%+v got %+v", o, got)
		}
		if got, _, err := h.Inbox(t.Context(), o); err != nil || len(got) != 0 {
			t.Errorf("%+v reads %+v, %v", o, got, err)
		}
	}
	w.until("word to window 1", func() bool { w.clock.pass(pushEvery); return one.count() == 1 })
	if two.count() != 0 {
		t.Error("window 2 was told")
	}
	if got := w.take(h, "1"); len(got) != 1 || !got[0].Told {
		t.Errorf("%+v", got)
	}
}

// A listener is somebody who listens for a session.
type listener struct {
	wakes bool
	mu    sync.Mutex
	hears bool
	busy  bool
	heard []Arrival
}

func newListener(hears bool) *listener { return &listener{hears: hears} }

func (l *listener) ear() *Ear {
	is := func(b *bool) func() bool {
		return func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return *b
		}
	}
	return &Ear{Wakes: l.wakes, Hears: is(&l.hears), Busy: is(&l.busy), Tell: func(news []Arrival) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.heard = append(l.heard, news...)
	}}
}

func (l *listener) set(b *bool, to bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*b = to
}

func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.heard)
}

// Nobody is told anything while a tool runs, or ran within the last two seconds.
func TestToldWhenIdle(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	l := newListener(true)
	leave := h.Join(owner("a").sdk(), l.ear())
	done := h.Begin(owner("a").sdk())
	w.once(h, "a", "m")
	still := func(what string) {
		t.Helper()
		w.settled(h)
		if l.count() != 0 {
			t.Fatalf("told while %s", what)
		}
	}
	w.clock.pass(time.Minute)
	still("a tool runs")
	again := h.Begin(owner("a").sdk())
	done()
	w.clock.pass(time.Minute)
	still("another one does")
	again()
	w.clock.pass(quiet - time.Millisecond)
	still("it has just ended")
	l.set(&l.busy, true)
	w.clock.pass(time.Minute)
	still("one runs that began before all this")
	l.set(&l.busy, false)
	l.set(&l.hears, false)
	w.clock.pass(time.Minute)
	still("it does not listen")
	l.set(&l.hears, true)
	w.until("word", func() bool { w.clock.pass(pushEvery); return l.count() == 1 })
	for range 20 {
		w.clock.pass(pushEvery)
		w.settled(h)
	}
	if l.count() != 1 {
		t.Errorf("told %d times", l.count())
	}
	leave(false)
	if got := w.take(h, "a"); len(got) != 1 || !got[0].Told {
		t.Errorf("what was told waits for an answer all the same: %+v", got)
	}
}

// What an answer has carried meanwhile, nobody is told besides.
func TestNotToldAfterDelivery(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	l := newListener(true)
	defer h.Join(owner("a").sdk(), l.ear())(false)
	done := h.Begin(owner("a").sdk())
	w.once(h, "a", "m")
	if got := w.take(h, "a"); len(got) != 1 {
		t.Fatal(got)
	}
	done()
	for range 20 {
		w.clock.pass(pushEvery)
		w.settled(h)
	}
	if l.count() != 0 {
		t.Error("told what it has")
	}
}

func TestWay(t *testing.T) {
	w := newWorld(t)
	if way := w.host(false).Way(owner("a")); way != Later {
		t.Errorf("a process of one call: %d", way)
	}
	h := w.host(true)
	want := func(want Way) {
		t.Helper()
		if way := h.Way(owner("a")); way != want {
			t.Errorf("way %d, want %d", way, want)
		}
	}
	want(Reply)
	quiet := newListener(false)
	leave := h.Join(owner("a").sdk(), quiet.ear())
	want(Reply)
	quiet.set(&quiet.hears, true)
	want(Updated)
	loud := newListener(false)
	loud.wakes = true
	also := h.Join(owner("a").sdk(), loud.ear())
	want(Event)
	also(false)
	want(Updated)
	leave(false)
	want(Reply)
}

// What the operator forbids reaches nobody, and does when it is allowed again.
func TestForbiddenSkill(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	var mu sync.Mutex
	allowed, asked := false, []string(nil)
	h.o.May = func(name string, s sdk.Scope) bool {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, name+" "+s.Rights)
		return allowed
	}
	l := newListener(true)
	s := owner("a").sdk()
	s.Rights = "tools:call"
	defer h.Join(s, l.ear())(false)
	w.once(h, "a", "m")
	for range 20 {
		w.clock.pass(pushEvery)
		w.settled(h)
	}
	if got, _, _ := h.Take(t.Context(), s); got != nil || l.count() != 0 {
		t.Fatalf("%+v, told %d", got, l.count())
	}
	mu.Lock()
	allowed = true
	if !slices.Contains(asked, skill+" tools:call") {
		t.Errorf("asked %q", asked)
	}
	mu.Unlock()
	w.until("word", func() bool { w.clock.pass(pushEvery); return l.count() == 1 })
	if got, _, _ := h.Take(t.Context(), s); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestAcknowledge(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	w.once(h, "a", "one")
	w.once(h, "a", "two")
	got := w.inbox(h, "a")
	if n, err := h.Acknowledge(t.Context(), owner("a"), []int64{got[0].ID, 4711}); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := w.take(h, "a"); len(got) != 1 || got[0].Message != "two" {
		t.Errorf("%+v", got)
	}
}

// BenchmarkNothingWaits is what every call pays where nobody has set anything.
func BenchmarkNothingWaits(b *testing.B) {
	h := New(Options{})
	s := owner("a").sdk()
	for b.Loop() {
		if h.Waiting(s) {
			b.Fatal("something waits")
		}
	}
}

// Who is told again is told what is new.
func TestToldWhatIsNew(t *testing.T) {
	w := newWorld(t)
	h := w.host(true)
	l := newListener(true)
	defer h.Join(owner("a").sdk(), l.ear())(false)
	w.set(h, "a", Spec{Message: "m", Delay: minute, Repeat: Forever})
	for n, late := range []time.Duration{0, 5 * minute, 0} {
		w.clock.pass(minute + late)
		w.until("word", func() bool { w.clock.pass(pushEvery); return l.count() == n+1 })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, a := range l.heard {
		if want := []int{0, 5, 0}[i]; a.Fire != i+1 || a.Count != 1 || a.Missed != want {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if got := w.take(h, "a"); len(got) != 1 || got[0].Count != 3 || got[0].Missed != 5 || !got[0].Told {
		t.Errorf("%+v", got)
	}
}

// A session that its client names is looked for in the store, and not at every
// call.
func TestSharedSessionIsLookedForSeldom(t *testing.T) {
	w := newWorld(t)
	seen := &countingStore{Store: w.store}
	w.store = seen
	h := w.host(false)
	for range 100 {
		if got := w.take(h, "task:t1"); got != nil {
			t.Fatal(got)
		}
	}
	if n := seen.count(); n != 1 {
		t.Errorf("%d reads", n)
	}
	w.clock.pass(lookEvery)
	w.take(h, "task:t1")
	if n := seen.count(); n != 2 {
		t.Errorf("%d reads", n)
	}
}

type countingStore struct {
	store.Store
	mu   sync.Mutex
	gets int
}

func (s *countingStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets
}

func (s *countingStore) Get(ctx context.Context, bucket, key string) ([]byte, int64, error) {
	s.mu.Lock()
	s.gets++
	s.mu.Unlock()
	return s.Store.Get(ctx, bucket, key)
}
