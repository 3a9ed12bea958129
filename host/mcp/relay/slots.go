package relay

import (
	"context"
	"sync"
)

// Slots bound the work that runs at once. What is beyond waits in a bounded
// queue.
type Slots struct {
	mu      sync.Mutex
	cap     int
	running int
	queue   []func() // each takes over the slot of whoever calls it
	max     int      // that wait
}

// NewSlots returns Slots for n pieces of work, and a queue for as many more as
// given.
func NewSlots(n, queue int) *Slots { return &Slots{cap: n, max: queue} }

// enter runs f in its own goroutine once there is a slot; false if too many
// wait already.
func (s *Slots) enter(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running < s.cap {
		s.running++
		go s.work(f)
		return true
	}
	if len(s.queue) >= s.max {
		return false
	}
	s.queue = append(s.queue, func() { s.work(f) })
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

// Leave gives the caller's slot to the next that waits.
func (s *Slots) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.running--
		return
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	go next()
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
	s.queue = append([]func(){func() { close(mine) }}, s.queue...)
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
