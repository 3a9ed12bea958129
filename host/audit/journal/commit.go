package journal

import "sync"

// A Commit lets many goroutines share one sync: whoever comes while one is
// under way waits for the next, which covers all who came meanwhile.
type Commit struct {
	mu   sync.Mutex
	wake sync.Cond
	done int64 // everything up to this record is on disk
	busy bool
	err  error // a sync that failed; the kernel may have dropped the bytes, and the next sync would not say so
}

// Wait returns once record seq is on disk. flush brings all records so far
// there and says up to which. Its first error is final.
func (c *Commit) Wait(seq int64, flush func() (int64, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wake.L = &c.mu
	for c.done < seq {
		if c.err != nil {
			return c.err
		}
		if c.busy {
			c.wake.Wait()
			continue
		}
		c.busy = true
		c.mu.Unlock()
		upTo, err := flush()
		c.mu.Lock()
		c.busy = false
		c.wake.Broadcast()
		if c.err = err; err == nil {
			c.done = max(c.done, upTo)
		}
	}
	return nil
}
