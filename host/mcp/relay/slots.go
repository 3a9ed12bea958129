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
	queue   []turn
	max     int // that wait
	idle    chan func()
}

// A turn waits for a slot. If pass is set, do takes the slot over and returns
// at once; else it is the work.
type turn struct {
	do   func()
	pass bool
}

// idleTime is how long a goroutine waits for more work.
const idleTime = time.Second

// NewSlots returns Slots for n pieces of work, and a queue for as many more as
// given.
func NewSlots(n, queue int) *Slots { return &Slots{cap: n, max: queue, idle: make(chan func())} }

// enter runs f in its own goroutine once there is a slot; false if too many
// wait already.
func (s *Slots) enter(f func()) bool {
	s.mu.Lock()
	if s.running < s.cap {
		s.running++
		s.mu.Unlock()
		s.start(f)
		return true
	}
	defer s.mu.Unlock()
	if len(s.queue) >= s.max {
		return false
	}
	s.queue = append(s.queue, turn{do: f})
	return true
}

// Begin runs f: in place if there is a slot and inPlace is set, else in a
// goroutine of its own once there is one. It reports false if too many wait.
func (s *Slots) Begin(f func(), inPlace bool) bool {
	s.mu.Lock()
	if !inPlace || s.running >= s.cap {
		s.mu.Unlock()
		return s.enter(f)
	}
	s.running++
	s.mu.Unlock()
	s.work(f)
	return true
}

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

// work runs f, which holds a slot, and hands the slot on.
func (s *Slots) work(f func()) {
	f()
	s.Leave()
}

// start runs f, which holds a slot, in a goroutine that is idle, or in a new
// one.
func (s *Slots) start(f func()) {
	select {
	case s.idle <- f:
	default:
		go s.labour(f)
	}
}

// labour runs f and what comes after it.
func (s *Slots) labour(f func()) {
	var t *time.Timer
	for f != nil {
		f()
		if f = s.release(); f != nil {
			continue
		}
		if t == nil {
			t = time.NewTimer(idleTime)
		} else {
			t.Reset(idleTime)
		}
		select {
		case f = <-s.idle:
		case <-t.C:
		}
	}
}

// Leave gives the caller's slot to the next that waits.
func (s *Slots) Leave() {
	if f := s.release(); f != nil {
		s.start(f)
	}
}

// release gives up a slot. If work waits for it, that is returned, and has it.
func (s *Slots) release() func() {
	s.mu.Lock()
	if len(s.queue) == 0 {
		s.running--
		s.mu.Unlock()
		return nil
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	s.mu.Unlock()
	if next.pass {
		next.do()
		return nil
	}
	return next.do
}

// Reenter waits for a slot, before those that have not begun; it reports
// whether ctx was still alive then. The caller holds a slot either way.
func (s *Slots) Reenter(ctx context.Context) bool {
	s.mu.Lock()
	if s.running < s.cap {
		s.running++
		s.mu.Unlock()
		return ctx.Err() == nil
	}
	mine := make(chan struct{})
	s.queue = append([]turn{{func() { close(mine) }, true}}, s.queue...)
	s.mu.Unlock()
	<-mine
	return ctx.Err() == nil
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
