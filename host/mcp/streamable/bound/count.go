package bound

import (
	"fmt"
	"sync"
)

// A Count bounds what is open: of all callers, and of each one.
type Count struct {
	What string // is counted, in the plural
	All  int
	Each int // of one caller, its share; 0: callers are not told apart

	mu sync.Mutex
	n  int
	by map[string]int
}

// Take counts one more of a caller's, or says why not.
func (c *Count) Take(caller string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.Each > 0 && c.by[caller] >= c.Each:
		return fmt.Errorf("this caller has too many %s open: its share is %d", c.What, c.Each)
	case c.n >= c.All:
		return fmt.Errorf("too many %s are open", c.What)
	}
	c.n++
	if c.Each > 0 {
		if c.by == nil {
			c.by = map[string]int{}
		}
		c.by[caller]++
	}
	return nil
}

// Leave undoes Take.
func (c *Count) Leave(caller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.Each == 0 {
		return
	}
	if c.by[caller]--; c.by[caller] == 0 {
		delete(c.by, caller)
	}
}

// Len is how many are open.
func (c *Count) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
