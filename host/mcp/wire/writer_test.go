package wire

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

// record keeps what each Write was given.
type record struct {
	mu     sync.Mutex
	writes []string
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, string(b))
	return len(b), nil
}

func send(w *Writer, s string) {
	b := NewBuffer()
	b.B = append(b.B, s...)
	w.Send(b)
}

func TestWriterGathersWhileCorked(t *testing.T) {
	var r record
	w := NewWriter(&r)
	send(w, "1\n")
	w.Cork()
	send(w, "2\n")
	send(w, "3\n")
	if !slices.Equal(r.writes, []string{"1\n"}) {
		t.Errorf("before: %q", r.writes)
	}
	w.Uncork()
	if !slices.Equal(r.writes, []string{"1\n", "2\n3\n"}) {
		t.Errorf("after: %q", r.writes)
	}
	w.Cork()
	send(w, strings.Repeat("x", writeChunk)) // not held back
	<-w.Idle()
	if len(r.writes) != 3 || w.Shut() != nil {
		t.Errorf("%d writes", len(r.writes))
	}
	send(w, "late\n")
	if len(r.writes) != 3 {
		t.Error("written after Shut")
	}
}

func TestWriterKeepsLinesWhole(t *testing.T) {
	var r record
	w := NewWriter(&r)
	var all sync.WaitGroup
	for i := range 8 {
		line := strings.Repeat(string(rune('a'+i)), 1+i*10000) + "\n"
		all.Go(func() {
			for range 20 {
				send(w, line)
			}
		})
	}
	all.Wait()
	<-w.Idle()
	n := 0
	for line := range strings.Lines(strings.Join(r.writes, "")) {
		n++
		i := int(line[0] - 'a')
		if line != strings.Repeat(string(rune('a'+i)), 1+i*10000)+"\n" {
			t.Fatalf("a torn line of %d bytes", len(line))
		}
	}
	if n != 160 {
		t.Errorf("%d lines", n)
	}
}

type torn struct{}

func (torn) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriterBreaks(t *testing.T) {
	w := NewWriter(torn{})
	send(w, "x\n")
	<-w.Broken()
	<-w.Idle()
	send(w, "y\n")
	if err := w.Shut(); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// answers is an Outlet that keeps what it is given.
type answers struct{ sent, ended []string }

func (a *answers) Send(b *Buffer) { a.sent = append(a.sent, string(b.B)) }

func (a *answers) End(b *Buffer, _ *Fault) {
	if b == nil {
		b = &Buffer{B: []byte("nothing")}
	}
	a.ended = append(a.ended, string(b.B))
}

func TestBatch(t *testing.T) {
	answer := func(s string) *Buffer { return &Buffer{B: []byte(s)} }
	var under answers
	b := NewBatch(&under, 3)
	b.End(answer("1"), nil)
	b.End(nil, nil) // gave no answer
	b.Send(answer("note"))
	if under.ended != nil {
		t.Fatalf("incomplete: %q", under.ended)
	}
	b.End(answer("2"), nil)
	NewBatch(&under, 1).End(nil, nil) // nothing but notifications
	if !slices.Equal(under.ended, []string{"[1,2]", "nothing"}) || !slices.Equal(under.sent, []string{"note"}) {
		t.Errorf("%+v", under)
	}
}
