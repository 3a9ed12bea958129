package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// settled waits until n turns wait.
func settled(t *testing.T, s *Slots, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		s.mu.Lock()
		waiting := s.waiting
		s.mu.Unlock()
		if waiting == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d turns wait, want %d", waiting, n)
		}
	}
}

func TestSlotsAreBounded(t *testing.T) {
	s := NewSlots(2, 1)
	gate, ran := make(chan struct{}), make(chan int, 4)
	for n, want := range []error{nil, nil, nil, ErrBusy} {
		if err := s.All().Begin(func() { <-gate; ran <- n }, false); err != want {
			t.Errorf("work %d: %v", n, err)
		}
	}
	if !s.Crowded() || s.first() {
		t.Error("two run")
	}
	close(gate)
	sum := <-ran + <-ran + <-ran
	if sum != 0+1+2 {
		t.Errorf("ran %d", sum)
	}
}

// Who gave its slot away for a while comes before those that have not begun.
func TestReenterComesFirst(t *testing.T) {
	for name, lane := range map[string]func(*Slots) Lane{"all": (*Slots).All, "share": func(s *Slots) Lane { return s.Share("a", 1) }} {
		t.Run(name, func(t *testing.T) {
			s := NewSlots(1, 4)
			l := lane(s)
			take := func() {
				t.Helper()
				s.mu.Lock()
				defer s.mu.Unlock()
				if !s.place(turn{lane: l}) {
					t.Fatal("no slot")
				}
			}
			take()
			l.Leave()
			take() // somebody else's by now
			order := make(chan string, 2)
			if err := l.Begin(func() { order <- "new" }, false); err != nil {
				t.Fatal(err)
			}
			back := make(chan struct{})
			go func() {
				if l.Reenter(context.Background()) {
					order <- "back"
				}
				close(back)
			}()
			settled(t, s, 2)
			l.Leave()
			<-back
			l.Leave()
			if a, b := <-order, <-order; a != "back" || b != "new" {
				t.Errorf("%s before %s", a, b)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if l.Reenter(ctx) {
				t.Error("a cancelled context counts as alive")
			}
		})
	}
}

// slots_held: a caller whose work does not end keeps others neither from the
// slots nor from the queue.
func TestShareStarvesNobody(t *testing.T) {
	s := NewSlots(8, 8)
	a, b := s.Share("a", 0.25), s.Share("b", 0.25)
	gate := make(chan struct{})
	var done sync.WaitGroup
	for range 4 {
		done.Add(1)
		if err := a.Begin(func() { <-gate; done.Done() }, false); err != nil {
			t.Fatal(err)
		}
	}
	err := a.Begin(func() { t.Error("it runs") }, true)
	if err == nil || errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "share is 2 that run, and 2 that wait") {
		t.Errorf("beyond the share: %v", err)
	}
	for range 10 {
		ran := make(chan struct{})
		if err := b.Begin(func() { close(ran) }, false); err != nil {
			t.Fatal(err)
		}
		<-ran
	}
	inPlace := false
	if err := b.Begin(func() { inPlace = true }, true); err != nil || !inPlace {
		t.Errorf("in place: %v %v", inPlace, err)
	}
	close(gate)
	done.Wait()
	empty(t, s)
}

// What waits within a share comes behind others that wait for the same slot.
func TestShareWaitsBehindOthers(t *testing.T) {
	s := NewSlots(1, 8)
	order := make(chan string, 8)
	say := func(what string) func() { return func() { order <- what } }
	gate := make(chan struct{})
	begin := func(l Lane, f func()) {
		t.Helper()
		if err := l.Begin(f, false); err != nil {
			t.Fatal(err)
		}
	}
	a, b := s.Share("a", 0.5), s.Share("b", 0.5)
	begin(a, func() { <-gate })
	for i := range 3 {
		begin(a, say(fmt.Sprint("a", i)))
	}
	for i := range 2 {
		begin(b, say(fmt.Sprint("b", i)))
	}
	begin(s.All(), say("c"))
	close(gate)
	var got []string
	for range 6 {
		got = append(got, <-order)
	}
	if g := strings.Join(got, " "); g != "b0 c a0 b1 a1 a2" {
		t.Errorf("order %s", g)
	}
	empty(t, s)
}

// empty waits until nothing is held, and nothing is remembered of anybody.
func empty(t *testing.T, s *Slots) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		s.mu.Lock()
		left := s.running + s.waiting + len(s.queue) + len(s.lanes)
		s.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d are left: %+v", left, s)
		}
	}
}

// Whatever callers do, no bound is exceeded, and all that is accepted runs.
func TestSharesUnderLoad(t *testing.T) {
	s := NewSlots(8, 64)
	var all, accepted, ran atomic.Int64
	var each [3]atomic.Int64
	check := func(n *atomic.Int64, most int64) {
		if now := n.Add(1); now > most {
			t.Errorf("%d at once, want %d", now, most)
		}
	}
	var callers, work sync.WaitGroup
	for i := range 12 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			who := i % 3
			l := s.Share(fmt.Sprint(who), 0.5)
			for range 300 {
				asks, inPlace := rand.N(4) == 0, rand.N(2) == 0
				enter := func() { check(&all, 8); check(&each[who], 4) }
				leave := func() { each[who].Add(-1); all.Add(-1) }
				work.Add(1)
				err := l.Begin(func() {
					enter()
					if asks {
						leave()
						l.Leave()
						l.Reenter(context.Background())
						enter()
					}
					ran.Add(1)
					leave()
					work.Done()
				}, inPlace)
				if err != nil {
					work.Done()
					continue
				}
				accepted.Add(1)
			}
		}()
	}
	callers.Wait()
	work.Wait()
	if accepted.Load() != ran.Load() || ran.Load() == 0 {
		t.Errorf("%d of %d ran", ran.Load(), accepted.Load())
	}
	empty(t, s)
}
