// Package boot tells the hosts of one user apart. Each start of a host is a boot
// with an id of its own; what a boot has begun, and can no longer end because its
// process is gone, others settle.
//
// It does not know how a boot shows that it lives, or what boots do.
package boot

import (
	"crypto/rand"
	"sync"
)

// Boots tells which boots have ended. It is safe for concurrent use.
type Boots struct {
	self  func() (string, error)
	alive func(string) (bool, error)

	mu    sync.Mutex
	ended map[string]bool // none comes back
}

// New returns the Boots of a process. self is the id of its own boot; nil means a
// random one. alive reports whether the process of another boot still runs; nil
// means that none does.
func New(self func() (string, error), alive func(boot string) (bool, error)) *Boots {
	if self == nil {
		id := rand.Text()
		self = func() (string, error) { return id, nil }
	}
	if alive == nil {
		alive = func(string) (bool, error) { return false, nil }
	}
	return &Boots{self: self, alive: alive, ended: map[string]bool{}}
}

// Self returns the id of this process's boot.
func (b *Boots) Self() (string, error) { return b.self() }

// maxEnded bounds what is remembered.
const maxEnded = 1024

// Over reports whether the process of a boot has ended, without having to ask
// twice about one that has. This process has not.
func (b *Boots) Over(boot string) (bool, error) {
	self, err := b.self()
	if err != nil || boot == self {
		return false, err
	}
	b.mu.Lock()
	ended := b.ended[boot]
	b.mu.Unlock()
	if ended {
		return true, nil
	}
	alive, err := b.alive(boot)
	if err != nil || alive {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ended) >= maxEnded {
		clear(b.ended)
	}
	b.ended[boot] = true
	return true, nil
}
