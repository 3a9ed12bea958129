package task

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// Answers, cancellations and readers of two hosts meet: each task ends once,
// and nobody sees one go back from its end.
func TestRaces(t *testing.T) {
	w := newWorld(t)
	hosts := []*Tasks{w.host("one"), w.host("two")}
	for range 30 {
		r, _ := begin(t, hosts[0], alice)
		r.End(End{Asked: asked("a", "b")})
		var wg sync.WaitGroup
		var mu sync.Mutex
		resumed := 0
		for i := range 8 {
			wg.Go(func() {
				h := hosts[i%2]
				switch {
				case i < 4:
					key := []string{"1.a", "1.b"}[i/2]
					run, _, err := h.Answer(ctx, alice, r.ID(), map[string]sdk.Answer{key: {Action: "accept"}}, func(error) {})
					if err != nil {
						t.Error(err)
					}
					if run != nil {
						mu.Lock()
						resumed++
						mu.Unlock()
						run.End(End{Status: Completed, Body: json.RawMessage(`1`)})
					}
				case i < 6:
					if err := h.Cancel(ctx, alice, r.ID()); err != nil {
						t.Error(err)
					}
				default:
					var final Status
					for range 20 {
						k, err := h.Get(ctx, alice, r.ID())
						if err != nil || final != "" && k.Status != final {
							t.Errorf("%s after %s: %v", k.Status, final, err)
							return
						}
						if k.Status != Working && k.Status != Waiting {
							final = k.Status
						}
					}
				}
			})
		}
		wg.Wait()
		k, err := hosts[1].Get(ctx, alice, r.ID())
		if err != nil || resumed > 1 || (k.Status != Completed && k.Status != Cancelled) || (resumed == 1) != (k.Status == Completed) {
			t.Fatalf("%s after %d ends: %v", k.Status, resumed, err)
		}
		w.later(time.Hour)
	}
}

// A loser of a race must not leave its body to the winner's row.
func TestBodiesDoNotMix(t *testing.T) {
	w := newWorld(t)
	r, _ := begin(t, w.host("one"), alice)
	r.End(End{Asked: asked("a", "b", "c")})
	once := false
	other := w.host("two")
	h := w.hostOn("one", &nosy{Store: w.store, f: func(string) {
		if !once { // between its body and its row
			once = true
			if _, _, err := other.Answer(ctx, alice, r.ID(), map[string]sdk.Answer{"1.b": {Action: "accept"}}, nil); err != nil {
				t.Error(err)
			}
		}
	}})
	if _, _, err := h.Answer(ctx, alice, r.ID(), map[string]sdk.Answer{"1.a": {Action: "accept"}}, nil); err != nil {
		t.Fatal(err)
	}
	if k := want(t, h, alice, r.ID(), Waiting); len(k.Questions) != 1 || k.Questions["1.c"].Message != "?c" {
		t.Errorf("%+v", k.Questions)
	}
	if n := w.rows(bodyBucket); n != 1 {
		t.Errorf("%d bodies", n)
	}
}

// Who is told of questions can answer them: there is no time between in which
// an answer is lost.
func TestNobodyIsToldBeforeTheStore(t *testing.T) {
	w := newWorld(t)
	var h *Tasks
	var r *Run
	told := make(chan error, 1)
	h = w.hostOn("one", &nosy{Store: w.store, f: func(string) {
		if r == nil {
			return // it begins
		}
		go func() {
			_, err := h.Get(ctx, alice, r.ID())
			told <- err
		}()
		select {
		case <-told:
			t.Error("told before the store has it")
		case <-time.After(30 * time.Millisecond):
		}
	}})
	r, _ = begin(t, h, alice)
	r.End(End{Asked: asked("q")})
	if err := <-told; err != nil {
		t.Error(err)
	}
}

// An answer that comes twice, through one host, begins one run.
func TestAnswerWhileItIsTaken(t *testing.T) {
	w := newWorld(t)
	first, _ := begin(t, w.host("one"), alice)
	first.End(End{Asked: asked("q")})
	answer := map[string]sdk.Answer{"1.q": {Action: "accept"}}
	var h *Tasks
	depth := 0
	h = w.hostOn("one", &nosy{Store: w.store, f: func(string) {
		if depth++; depth > 1 {
			return
		}
		again, _, err := h.Answer(ctx, alice, first.ID(), answer, func(error) {})
		if again != nil || err != nil {
			t.Errorf("a second run: %v", err)
		}
	}})
	r, _, err := h.Answer(ctx, alice, first.ID(), answer, func(error) {})
	if err != nil || r == nil {
		t.Fatal(err)
	}
	want(t, h, alice, first.ID(), Working)
	r.End(End{Status: Completed, Body: json.RawMessage(`1`)})
	want(t, h, alice, first.ID(), Completed)
}
