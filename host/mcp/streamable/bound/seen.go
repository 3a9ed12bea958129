package bound

import (
	"hash/maphash"
	"sync"
)

// Seen remembers texts that it has seen lately, a bounded number of them, and not
// the texts themselves. Once in a long while it takes one for another: it is for
// hints, not for decisions.
type Seen struct {
	mu       sync.Mutex
	seed     maphash.Seed
	now, old map[uint64]struct{}
}

// maxSeen is how many are remembered at least, once there were so many.
const maxSeen = 5000

// Add remembers a text.
func (s *Seen) Add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		s.seed, s.now = maphash.MakeSeed(), map[uint64]struct{}{}
	}
	if len(s.now) >= maxSeen {
		s.now, s.old = map[uint64]struct{}{}, s.now
	}
	s.now[maphash.String(s.seed, text)] = struct{}{}
}

// Has reports whether a text is remembered.
func (s *Seen) Has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return false
	}
	h := maphash.String(s.seed, text)
	_, now := s.now[h]
	_, old := s.old[h]
	return now || old
}
