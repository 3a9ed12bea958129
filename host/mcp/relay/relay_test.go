package relay

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/mcp/wire"
)

func TestEveryLineIsAcceptedInOrder(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	var got []string
	r := New(wire.NewWriter(io.Discard), NewSlots(1, 0), func(line []byte, err error) {
		if errors.Is(err, wire.ErrLong) {
			line = []byte("LONG")
		}
		got = append(got, string(line))
	})
	r.Start(wire.NewReader(strings.NewReader("a\nbbbbb\n\nc"), 4), done)
	if err := <-r.End(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "LONG", "", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEndTellsTheError(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	in, out := io.Pipe()
	out.CloseWithError(io.ErrUnexpectedEOF)
	r := New(wire.NewWriter(io.Discard), NewSlots(1, 0), func([]byte, error) {})
	r.Start(wire.NewReader(in, 4), done)
	if err := <-r.End(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// A lone call runs in place of the reader; while it does not end, another
// goroutine reads on.
func TestACallThatWaitsForTheNextLine(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	in, out := io.Pipe()
	var calls sync.WaitGroup
	next := make(chan struct{})
	var r *Relay
	r = New(wire.NewWriter(io.Discard), NewSlots(4, 4), func(line []byte, _ error) {
		if string(line) == "open" {
			next <- struct{}{}
			return
		}
		calls.Add(1)
		if !r.Begin(func() { <-next; calls.Done() }, true) {
			t.Error("refused")
		}
	})
	r.Start(wire.NewReader(in, 100), done)
	for range 2 * slowCalls {
		for _, line := range []string{"call\n", "open\n"} {
			if _, err := io.WriteString(out, line); err != nil {
				t.Fatal(err)
			}
		}
	}
	out.Close()
	if err := <-r.End(); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
}

func TestSlotsAreBounded(t *testing.T) {
	s := NewSlots(2, 1)
	gate, ran := make(chan struct{}), make(chan int, 4)
	work := func(n int) func() { return func() { <-gate; ran <- n } }
	for n, want := range []bool{true, true, true, false} {
		if got := s.enter(work(n)); got != want {
			t.Errorf("work %d: %v", n, got)
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
	s := NewSlots(1, 4)
	if !s.first() {
		t.Fatal("no slot")
	}
	s.Leave()
	if !s.first() { // somebody else's by now
		t.Fatal("no slot")
	}
	order := make(chan string, 2)
	s.enter(func() { order <- "new" })
	back := make(chan struct{})
	go func() {
		if s.Reenter(context.Background()) {
			order <- "back"
		}
		close(back)
	}()
	for waiting := 0; waiting < 2; {
		s.mu.Lock()
		waiting = len(s.queue)
		s.mu.Unlock()
	}
	s.Leave()
	<-back
	s.Leave()
	if a, b := <-order, <-order; a != "back" || b != "new" {
		t.Errorf("%s before %s", a, b)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if s.Reenter(ctx) {
		t.Error("a cancelled context counts as alive")
	}
}
