package wire

import (
	"errors"
	"io"
	"slices"
	"testing"
)

// fate remembers what became of buffers.
type fate []bool

func (f *fate) buffer(text string) *Buffer {
	b := NewBuffer()
	b.B = append(b.B, text...)
	b.Written = func(ok bool) { *f = append(*f, ok) }
	return b
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Whoever sends is told once whether the client was written to.
func TestWritten(t *testing.T) {
	var f fate
	w := NewWriter(io.Discard)
	w.Cork()
	w.Send(f.buffer("a\n"))
	w.Send(f.buffer("b\n"))
	if len(f) != 0 {
		t.Errorf("told before it was written: %v", f)
	}
	w.Uncork()
	if !slices.Equal(f, []bool{true, true}) {
		t.Errorf("got %v", f)
	}
	f = nil
	w = NewWriter(broken{})
	w.Send(f.buffer("a\n"))
	if !slices.Equal(f, []bool{false}) {
		t.Errorf("got %v", f)
	}
	for range 10 { // a buffer is used again, and tells nobody
		b := NewBuffer()
		if b.Written != nil {
			t.Fatal("a buffer remembers")
		}
		b.Free()
	}
}

// A batch tells each of its answers what became of the whole.
func TestBatchWritten(t *testing.T) {
	for _, ok := range []bool{true, false} {
		var f fate
		end := &ending{}
		b := NewBatch(end, 4)
		b.End(f.buffer("1"), nil)
		b.End(nil, nil)
		b.End(NewAnswer([]byte("2")), nil)
		b.End(f.buffer("3"), nil)
		if len(f) != 0 || end.b == nil {
			t.Fatalf("told before it was written: %v", f)
		}
		end.b.Told(ok)
		end.b.Told(!ok) // and once
		if !slices.Equal(f, []bool{ok, ok}) {
			t.Errorf("got %v, want twice %v", f, ok)
		}
	}
}

type ending struct{ b *Buffer }

func (e *ending) Send(b *Buffer) { b.Free() }

func (e *ending) End(b *Buffer, _ *Fault) { e.b = b }
