package neighbour

import (
	"sync"
	"time"
)

// A tally tells of what happens once in a while: of the first at once, and of
// those that follow by their number, so that who makes it happen often does not
// fill a log.
type tally struct {
	every time.Duration
	tell  func(last string, n int)

	mu     sync.Mutex
	last   string
	n      int         // that were not told
	next   *time.Timer // tells of them; nil if the next is told at once
	closed bool
}

func (t *tally) add(who string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = who
	t.n++
	if t.next == nil && !t.closed {
		t.say()
		t.next = time.AfterFunc(t.every, t.ring)
	}
}

// ring tells of what has happened meanwhile, if anything has.
func (t *tally) ring() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
	case t.n == 0:
		t.next = nil
	default:
		t.say()
		t.next.Reset(t.every)
	}
}

// say tells. The caller holds mu.
func (t *tally) say() {
	if t.n > 0 {
		t.tell(t.last, t.n)
		t.n = 0
	}
}

func (t *tally) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	if t.next != nil {
		t.next.Stop()
	}
	t.say()
}
