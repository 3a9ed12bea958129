package shelf

import (
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/wire"
)

func buffer(text string) *wire.Buffer {
	b := wire.NewBuffer()
	b.B = append(b.B, text...)
	return b
}

func texts(events []Event) string {
	var out []string
	for _, e := range events {
		out = append(out, string(e.Text))
	}
	return strings.Join(out, " ")
}

// FuzzFind holds the ids of events to those that were given.
func FuzzFind(f *testing.F) {
	for _, id := range []string{"tag-1-0", "tag-0-1", "tag-1-2", "x", "tag--", "tag-1-99999999999999999999", "tag-+1-1", "tag-01-1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		s := New("tag", "a", &Budget{Each: 1000, All: 1000})
		for range 3 {
			s.Open(nil).said = 5
		}
		if found, n := s.Find(id); found != nil && (found.number > 2 || n < 0 || n > 5 || !strings.HasPrefix(id, "tag-")) {
			t.Fatalf("%q: %d %d", id, found.number, n)
		}
	})
}

func TestStream(t *testing.T) {
	budget := &Budget{Each: 1000, All: 1 << 20}
	s := New("tag", "a", budget)
	r := NewReader()
	x := s.Open(r)
	x.Send(buffer("a"))
	<-r.Bell
	p := x.Take(r)
	if texts(p.Events) != "a" || p.Whole || p.Over {
		t.Errorf("%+v", p)
	}
	x.Wrote(r, 1, false)
	x.End(buffer("b"), nil)
	if p := x.Take(r); texts(p.Events) != "b" || p.Whole || !p.Over {
		t.Errorf("%+v", p)
	}
	x.Wrote(r, 2, false)
	x.Detach(r)
	again := NewReader()
	found, at := s.Find(x.ID(1))
	if again.At = at; found != x || at != 1 || !x.Attach(again, true) || texts(x.Take(again).Events) != "b" {
		t.Errorf("%v %d", found, at)
	}
	if x.Attach(NewReader(), false) {
		t.Error("two readers")
	}
	x.Detach(again)
	s.Age(time.Now().Add(2 * replayTime))
	if found, _ := s.Find(x.ID(1)); found != nil || budget.Kept() != 0 {
		t.Errorf("%d bytes are kept", budget.Kept())
	}
}

// An answer that comes alone needs no stream, and leaves nothing.
func TestWhole(t *testing.T) {
	budget := &Budget{Each: 1000, All: 1 << 20}
	s := New("tag", "a", budget)
	r := NewReader()
	if apart := s.Open(nil); !apart.Apart() || s.Busy() {
		t.Error("what belongs to no request is no work")
	}
	x := s.Open(r)
	if x.Apart() || !s.Busy() {
		t.Error("not busy")
	}
	x.End(buffer("answer"), wire.BadParams("x"))
	if p := x.Take(r); !p.Whole || !p.Over || p.Fault == nil {
		t.Errorf("%+v", p)
	}
	x.Wrote(r, 1, true)
	x.Detach(r)
	if budget.Kept() != 0 || len(s.streams) != 1 {
		t.Errorf("%d bytes, %d streams", budget.Kept(), len(s.streams))
	}
}

func TestBounds(t *testing.T) {
	budget := &Budget{Each: 100, All: 1 << 20}
	s := New("tag", "a", budget)
	x, y := s.Open(nil), s.Open(nil)
	for range 20 {
		x.Put(buffer("0123456789"))
		y.Put(buffer("0123456789"))
	}
	if n := budget.Kept(); n > 100 || len(y.events) == 0 {
		t.Errorf("%d bytes, %d events", n, len(y.events))
	}
	y.End(buffer(strings.Repeat("x", 1000)), nil) // larger than everything: kept alone
	if texts(y.events) != strings.Repeat("x", 1000) || len(x.events) > 0 {
		t.Errorf("%d, %d events", len(x.events), len(y.events))
	}
	s.Close()
	if budget.Kept() != 0 {
		t.Errorf("%d bytes after all", budget.Kept())
	}
}

// Who says much waits for a reader that is there, and for no other.
func TestSendWaits(t *testing.T) {
	s := New("tag", "a", &Budget{Each: 1 << 20, All: 1 << 20})
	r := NewReader()
	x := s.Open(r)
	done := make(chan struct{})
	go func() {
		for range maxWaiting + 1 {
			x.Send(buffer("x"))
		}
		close(done)
	}()
	select {
	case <-done:
		t.Fatal("it does not wait")
	case <-time.After(20 * time.Millisecond):
	}
	x.Detach(r)
	<-done
}

// answers_hoarded: what nobody reads is not kept beyond the bound of all
// shelves, however large each event is, and however many shelves there are.
func TestBoundOfAll(t *testing.T) {
	budget := &Budget{Each: 1 << 20, All: 100_000}
	large := strings.Repeat("x", 60_000)
	var lost *Stream
	for i := range 50 {
		s := New("tag", "a", budget)
		x := s.Open(nil)
		x.Put(buffer("{}"))
		x.End(buffer(large), nil)
		if n := budget.Kept(); n > budget.All {
			t.Fatalf("%d bytes are kept after %d answers", n, i+1)
		}
		lost = x
	}
	if budget.Kept() < 60_000 {
		t.Errorf("nothing is kept: %d", budget.Kept())
	}
	for n := range 3 { // event 2, the answer, is there for nobody
		if found, _ := lost.Find(lost.ID(n)); n < 2 && found != nil {
			t.Errorf("resumes after %d of what is not kept", n)
		}
	}
}

// answers_abandoned: what was put for a reader who then leaves counts from then
// on.
func TestBoundOfWhatIsLeftBehind(t *testing.T) {
	budget := &Budget{Each: 1 << 20, All: 100_000}
	large := strings.Repeat("x", 60_000)
	for range 3 {
		s, r := New("tag", "a", budget), NewReader()
		x := s.Open(r)
		x.End(buffer(large), nil)
		if p := x.Take(r); texts(p.Events) != large {
			t.Errorf("a reader that is there misses %d bytes", len(large)-len(texts(p.Events)))
		}
		x.Detach(r)
		if n := budget.Kept(); n > budget.All {
			t.Fatalf("%d bytes are kept", n)
		}
	}
}

// slow_readers: those who read, but slowly, may make the host keep twice as
// much, and no more.
func TestBoundOfReaders(t *testing.T) {
	budget := &Budget{Each: 1 << 20, All: 100_000}
	large := strings.Repeat("x", 60_000)
	var last *Stream
	var r *Reader
	for range 10 {
		r = NewReader()
		last = New("tag", "a", budget).Open(r)
		last.End(buffer(large), nil)
		if n := budget.Kept(); n > 2*budget.All {
			t.Fatalf("%d bytes are kept", n)
		}
	}
	select {
	case <-r.Bell:
	default:
		t.Error("the reader is not told")
	}
	if p := last.Take(r); !p.Over || len(p.Events) > 0 {
		t.Errorf("the stream goes on: %+v", p)
	}
}

// A caller who fills its share of what is kept takes nothing from another one.
func TestBoundOfCallers(t *testing.T) {
	budget := &Budget{Each: 16_000, All: 100_000, Caller: 25_000}
	for range 20 {
		New("tag", "a", budget).Open(nil).Put(buffer(strings.Repeat("x", 10_000)))
	}
	if n := budget.Kept(); n > 25_000 || n < 20_000 {
		t.Errorf("a keeps %d bytes", n)
	}
	b := New("tag", "b", budget)
	x := b.Open(nil)
	x.Put(buffer(strings.Repeat("y", 10_000)))
	if len(x.events) != 1 {
		t.Error("nothing is kept for b")
	}
	b.Close()
	if len(budget.by) != 1 || budget.by["a"] != budget.Kept() {
		t.Errorf("%v of %d", budget.by, budget.Kept())
	}
}
