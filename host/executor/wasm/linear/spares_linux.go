package linear

import (
	"errors"
	"math/bits"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	minReserve = 64 << 10 // bytes of address space
	maxSpare   = 4        // blocks kept for each size
	maxDirty   = 4 << 20  // bytes that are zeroed by hand; above it the kernel is asked for new pages
)

// Spares keeps address space between calls: linear memory from the heap of Go
// would have to be zeroed, copied to grow, and collected.
type Spares struct {
	mu     sync.Mutex
	free   map[uint64][]*mapping // by reserved size
	closed bool
}

// A mapping is reserved address space. Pages come when they are touched.
type mapping struct {
	reserved []byte
	dirty    uint64 // bytes that a guest may have written to
}

func (m *mapping) resize(size uint64) []byte {
	if size > uint64(len(m.reserved)) {
		return nil
	}
	m.dirty = max(m.dirty, size)
	return m.reserved[:size:len(m.reserved)]
}

// take returns a zeroed block of up to limit bytes.
func (s *Spares) take(limit uint64) block {
	size := uint64(1) << bits.Len64(max(limit, minReserve)-1)
	s.mu.Lock()
	if list := s.free[size]; len(list) > 0 {
		m := list[len(list)-1]
		s.free[size] = list[:len(list)-1]
		s.mu.Unlock()
		return m
	}
	s.mu.Unlock()
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil { // address space is limited (RLIMIT_AS, strict overcommit)
		return &slice{limit: limit}
	}
	return &mapping{reserved: b}
}

// give takes b back, with every byte that a guest may have written zeroed.
func (s *Spares) give(b block) {
	m, ok := b.(*mapping)
	if !ok {
		return
	}
	keep := m.clean() == nil
	size := uint64(len(m.reserved))
	s.mu.Lock()
	if keep = keep && !s.closed && len(s.free[size]) < maxSpare; keep {
		if s.free == nil {
			s.free = map[uint64][]*mapping{}
		}
		s.free[size] = append(s.free[size], m)
	}
	s.mu.Unlock()
	if !keep {
		_ = unix.Munmap(m.reserved) // fails only for addresses that are not a mapping
	}
}

func (m *mapping) clean() error {
	by := min(m.dirty, maxDirty)
	clear(m.reserved[:by])
	if m.dirty > by {
		if err := unix.Madvise(m.reserved[by:m.dirty], unix.MADV_DONTNEED); err != nil {
			return err
		}
	}
	m.dirty = 0
	return nil
}

// Close gives all spare address space back. Blocks in use follow when their
// instances are closed.
func (s *Spares) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, list := range s.free {
		for _, m := range list {
			errs = append(errs, unix.Munmap(m.reserved))
		}
	}
	s.free = nil
	return errors.Join(errs...)
}
