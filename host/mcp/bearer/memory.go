package bearer

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxChecked bounds the tokens that are remembered.
const maxChecked = 4096

// A checked token had a good signature under the keys of that sum. It need not
// be checked again while its issuer has the same keys.
type checked struct {
	identity Identity
	issuer   *issuer
	keys     [sha256.Size]byte
}

// memory holds checked tokens by their hash: whoever reads the memory of the
// host finds no token here. The zero memory is empty.
type memory struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]checked
}

func (m *memory) get(sum [sha256.Size]byte) (checked, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.known[sum]
	return c, ok
}

func (m *memory) put(sum [sha256.Size]byte, c checked, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[[sha256.Size]byte]checked{}
	}
	if len(m.known) >= maxChecked {
		for sum, old := range m.known {
			if !now.Before(old.identity.Expires) {
				delete(m.known, sum)
			}
		}
	}
	if len(m.known) >= maxChecked {
		clear(m.known)
	}
	m.known[sum] = c
}
