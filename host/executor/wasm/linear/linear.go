// Package linear backs the linear memories of guests: each has a limit of its
// own, and address space passes from one call to the next, zeroed. It knows
// nothing of calls, modules or manifests.
package linear

// Memory is the linear memory of one instance: it grows up to Limit and no
// further. It is what wazero's LinearMemory asks for.
type Memory struct {
	Spare   *Spares
	Limit   uint64 // bytes
	Refused bool   // the guest asked for more
	block   block
}

// Reallocate returns the first size bytes, or nil beyond the limit, which
// makes memory.grow return -1. The least that a module declares must have been
// compared with the limit before.
func (m *Memory) Reallocate(size uint64) []byte {
	if size > m.Limit {
		m.Refused = true
		return nil
	}
	if m.block == nil {
		m.block = m.Spare.take(m.Limit)
	}
	b := m.block.resize(size)
	m.Refused = m.Refused || b == nil
	return b
}

// Free gives the memory back. The instance must be closed: nothing may refer
// to the memory any more. It is idempotent.
func (m *Memory) Free() {
	if m.block != nil {
		m.Spare.give(m.block)
		m.block = nil
	}
}

// A block backs one linear memory.
type block interface {
	// resize returns the first size bytes, which keep their content; bytes
	// that were never part of it are zero. It returns nil if there is no more.
	resize(size uint64) []byte
}

// slice is a block in the heap of Go.
type slice struct {
	bytes []byte
	limit uint64
}

func (s *slice) resize(size uint64) []byte {
	if size > uint64(cap(s.bytes)) {
		grown := make([]byte, size, min(s.limit, max(size, 2*uint64(cap(s.bytes)))))
		copy(grown, s.bytes)
		s.bytes = grown
	}
	s.bytes = s.bytes[:size]
	return s.bytes
}
