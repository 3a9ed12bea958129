package relay

import (
	"bufio"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
		if err := r.Begin(func() { <-next; calls.Done() }, true); err != nil {
			t.Error(err)
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

// Brief calls that come together run where they were read, one after the other,
// and their answers go out together. A call may be held up on a busy machine, so
// that this is so at some time and not every time.
func TestBriefCallsTogether(t *testing.T) {
	for range 1000 {
		if inPlace, writes := briefly(t, 50); inPlace && writes == 1 {
			return
		}
	}
	t.Error("brief calls do not run where they were read")
}

// briefly runs calls that come together. It reports whether each was done before
// the next was accepted, and how many writes the answers took.
func briefly(t *testing.T, calls int) (inPlace bool, writes int64) {
	done := make(chan struct{})
	defer close(done)
	var ran, wrote atomic.Int64
	w := wire.NewWriter(writer(func(b []byte) { wrote.Add(1) }))
	accepted := int64(0)
	inPlace = true
	var r *Relay
	r = New(w, NewSlots(4, calls), func([]byte, error) {
		inPlace = inPlace && ran.Load() == accepted
		accepted++
		if err := r.Begin(func() {
			b := wire.NewBuffer()
			b.B = append(b.B, "answer\n"...)
			w.Send(b)
			ran.Add(1)
		}, true); err != nil {
			t.Error(err)
		}
	})
	r.Start(wire.NewReader(strings.NewReader(strings.Repeat("call\n", calls)), 1000), done)
	if err := <-r.End(); err != nil {
		t.Fatal(err)
	}
	for r.slots.busy() {
		runtime.Gosched()
	}
	<-w.Idle()
	if n := ran.Load(); n != int64(calls) {
		t.Errorf("%d calls ran", n)
	}
	return inPlace, wrote.Load()
}

// A writer is told of every write.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

// Calls that wait for each other run beside each other.
func TestSlowCallsTogether(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	in, out := io.Pipe()
	const calls = 4
	var waiting *sync.WaitGroup // of a round
	var r *Relay
	r = New(wire.NewWriter(io.Discard), NewSlots(calls, calls), func([]byte, error) {
		round := waiting
		if err := r.Begin(func() { round.Done(); round.Wait() }, true); err != nil {
			t.Error(err)
		}
	})
	r.Start(wire.NewReader(in, 100), done)
	for range 20 {
		waiting = new(sync.WaitGroup)
		waiting.Add(calls)
		if _, err := io.WriteString(out, strings.Repeat("call\n", calls)); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
	}
	out.Close()
	if err := <-r.End(); err != nil {
		t.Fatal(err)
	}
}

// What was answered before a call that takes long does not wait for it.
func TestAnswersBeforeASlowCall(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	in, out := io.Pipe()
	answers, written := io.Pipe()
	w := wire.NewWriter(written)
	slow := make(chan struct{})
	var r *Relay
	r = New(w, NewSlots(4, 4), func(line []byte, _ error) {
		name := string(line)
		if err := r.Begin(func() {
			if name == "slow" {
				<-slow
			}
			b := wire.NewBuffer()
			b.B = append(b.B, name+"\n"...)
			w.Send(b)
		}, true); err != nil {
			t.Error(err)
		}
	})
	r.Start(wire.NewReader(in, 100), done)
	lines := bufio.NewScanner(answers)
	for range 20 {
		if _, err := io.WriteString(out, "brief\nslow\n"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"brief", "slow"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("got %q, want %q", lines.Text(), want)
			}
			if want == "brief" {
				slow <- struct{}{}
			}
		}
	}
	out.Close()
	if err := <-r.End(); err != nil {
		t.Fatal(err)
	}
}
