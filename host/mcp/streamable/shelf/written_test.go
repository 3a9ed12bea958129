package shelf

import "testing"

// Who sends is told when a reader has written what was sent, and not before: an
// event that waits, or is dropped, is none that the client has.
func TestWritten(t *testing.T) {
	s := New("tag", "ann", &Budget{Each: 1000, All: 1 << 20})
	told := 0
	event := func() {
		b := buffer("x")
		b.Written = func(ok bool) {
			if !ok {
				t.Error("told of a failure")
			}
			told++
		}
		s.streams[0].Put(b)
	}
	x := s.Open(nil)
	event()
	event()
	r := NewReader()
	if !x.Attach(r, false) {
		t.Fatal("no reader")
	}
	if p := x.Take(r); len(p.Events) != 2 || told != 0 {
		t.Fatalf("%+v, told %d", p, told)
	}
	x.Wrote(r, 1, false)
	if told != 1 {
		t.Errorf("after the first: told %d", told)
	}
	x.Wrote(r, 2, false)
	x.Wrote(r, 2, false) // again, to another connection
	if told != 2 {
		t.Errorf("after both: told %d", told)
	}
	event()
	s.Close()
	x.Detach(r)
	if told != 2 {
		t.Errorf("told %d of what was dropped", told)
	}
}
