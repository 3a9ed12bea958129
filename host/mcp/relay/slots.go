package relay

import (
	"context"
	"sync"
	"time"
)

// Slots bound the work that runs at once. What is beyond waits in a bounded
// queue. A goroutine that has done its work waits a little for more: its stack
// has grown already, which costs more than a short call.
type Slots struct {
	mu      sync.Mutex
	cap     int
	running int
	max     int // that wait
	waiting int // in the queue and in those of the lanes
	queue   []turn
	lanes   map[string]*held // of those that hold or want anything
	idle    chan turn
}

// A turn waits for a slot. If pass is set, do takes the slot over and returns
// at once; else it is the work.
type turn struct {
	do   func()
	pass bool
	lane Lane
}

// idleTime is how long a goroutine waits for more work.
const idleTime = time.Second

// NewSlots returns Slots for n pieces of work, and a queue for as many more as
// given.
func NewSlots(n, queue int) *Slots { return &Slots{cap: n, max: queue, idle: make(chan turn)} }

// first takes a slot if nothing runs.
func (s *Slots) first() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running > 0 {
		return false
	}
	s.running = 1
	return true
}

// take takes a slot if there is one.
func (s *Slots) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= s.cap {
		return false
	}
	s.running++
	return true
}

// start runs the work of t, which holds a slot, in a goroutine that is idle, or
// in a new one.
func (s *Slots) start(t turn) {
	select {
	case s.idle <- t:
	default:
		go s.labour(t)
	}
}

// labour runs t and what comes after it.
func (s *Slots) labour(t turn) {
	var patience *time.Timer
	for {
		t.do()
		var ok bool
		if t, ok = s.release(t.lane); ok {
			continue
		}
		if patience == nil {
			patience = time.NewTimer(idleTime)
		} else {
			patience.Reset(idleTime)
		}
		select {
		case t = <-s.idle:
		case <-patience.C:
			return
		}
	}
}

// release gives up a slot that l has. If work waits for it, that is returned,
// and has it.
func (s *Slots) release(l Lane) (next turn, ok bool) {
	s.mu.Lock()
	s.running--
	s.yield(l)
	if len(s.queue) == 0 {
		s.mu.Unlock()
		return turn{}, false
	}
	next = s.queue[0]
	s.queue[0] = turn{}
	s.queue = s.queue[1:]
	s.running++
	s.unqueued(next.lane)
	s.mu.Unlock()
	if next.pass {
		next.do()
		return turn{}, false
	}
	return next, true
}

// busy reports whether any work runs.
func (s *Slots) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running > 0
}

// Crowded reports whether more than one piece of work runs.
func (s *Slots) Crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running > 1
}

// Reenter waits for a slot, before those that have not begun; it reports
// whether ctx was still alive then. The caller holds a slot of l either way.
func (l Lane) Reenter(ctx context.Context) bool {
	s := l.s
	mine := make(chan struct{})
	s.mu.Lock()
	if s.place(turn{func() { close(mine) }, true, l}) {
		s.mu.Unlock()
		return ctx.Err() == nil
	}
	s.mu.Unlock()
	<-mine
	return ctx.Err() == nil
}
