package linear

import "testing"

const page = 1 << 16

// Whatever a guest wrote, the next one finds zeros.
func TestReuseIsZeroed(t *testing.T) {
	var spare Spares
	defer func() {
		if err := spare.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, size := range []uint64{page, 10 * page, 63 * page, 64 * page, 65 * page, 200 * page, 256 * page} {
		for round := range 3 {
			m := Memory{Spare: &spare, Limit: 256 * page}
			first := m.Reallocate(page)
			for i := range first {
				if first[i] != 0 {
					t.Fatalf("size %d, round %d: byte %d of the first page is %d", size, round, i, first[i])
				}
				first[i] = 7
			}
			b := m.Reallocate(size)
			if uint64(len(b)) != size {
				t.Fatalf("%d bytes, want %d", len(b), size)
			}
			for i := range b {
				want := byte(0)
				if i < page {
					want = 7
				}
				if b[i] != want {
					t.Fatalf("size %d, round %d: byte %d is %d, want %d", size, round, i, b[i], want)
				}
				b[i] = 0xff
			}
			m.Free()
			m.Free()
		}
	}
}

func TestLimit(t *testing.T) {
	for _, limit := range []uint64{1, 3, 5, 100} {
		m := Memory{Spare: new(Spares), Limit: limit * page}
		if b := m.Reallocate(limit * page); uint64(len(b)) != limit*page || m.Refused {
			t.Errorf("limit %d: %d bytes, refused %v", limit, len(b), m.Refused)
		}
		if b := m.Reallocate(limit*page + page); b != nil || !m.Refused {
			t.Errorf("limit %d: one page more gave %d bytes, refused %v", limit, len(b), m.Refused)
		}
		m.Free()
	}
}

// Memory in the heap of Go, where there is no other, grows and keeps its bytes.
func TestSlice(t *testing.T) {
	s := slice{limit: 10 * page}
	for n := uint64(1); n <= 10; n++ {
		b := s.resize(n * page)
		if uint64(len(b)) != n*page || uint64(cap(b)) > s.limit {
			t.Fatalf("length %d, capacity %d", len(b), cap(b))
		}
		for i := uint64(0); i < n; i++ {
			want := byte(i + 1)
			if i == n-1 {
				want = 0
			}
			if got := b[i*page]; got != want {
				t.Fatalf("page %d of %d is %d, want %d", i, n, got, want)
			}
		}
		b[(n-1)*page] = byte(n)
	}
}
