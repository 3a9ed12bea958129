package relay

import (
	"errors"
	"fmt"
)

// A Lane is one caller's way to the Slots: all of them, or a share. What is
// beyond a share waits by itself, behind nobody else and in nobody else's way.
// It is a value: two Lanes of one name are one Lane.
type Lane struct {
	s     *Slots
	of    string // whose; does not matter if there is no share
	most  int    // slots at once; 0: all there are
	queue int    // turns that may wait
}

// held is what a lane has taken.
type held struct {
	slots   int    // and places in the queue of all
	waiting int    // turns in either queue
	queue   []turn // for which there is no place in the share
}

// ErrBusy is why work is refused that is too much for all together.
var ErrBusy = errors.New("too many calls are waiting")

// All is the Lane of callers who are not told apart.
func (s *Slots) All() Lane { return Lane{s: s} }

// Share is the Lane of one caller, who may have that part of the slots and of
// the queue, but one of each at least.
func (s *Slots) Share(of string, part float64) Lane {
	return Lane{s, of, max(1, int(float64(s.cap)*part)), max(1, int(float64(s.max)*part))}
}

// Begin runs f: in place if there is a slot and inPlace is set, else in a
// goroutine of its own once there is one. The error says why f is refused.
func (l Lane) Begin(f func(), inPlace bool) error {
	s := l.s
	t := turn{do: f, lane: l}
	s.mu.Lock()
	if !s.fits(l) {
		if err := s.refuses(l); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	now := s.place(t)
	s.mu.Unlock()
	switch {
	case !now:
	case inPlace:
		f()
		l.Leave()
	default:
		s.start(t)
	}
	return nil
}

// Leave gives the slot of a piece of work to the next that waits.
func (l Lane) Leave() {
	if t, ok := l.s.release(l); ok {
		l.s.start(t)
	}
}

// fits reports whether a turn of l need not wait. The caller holds mu, as for
// all below.
func (s *Slots) fits(l Lane) bool {
	h := s.lanes[l.of]
	return s.running < s.cap && (l.most == 0 || h == nil || h.slots < l.most)
}

// refuses says why no turn of l may wait, or nothing.
func (s *Slots) refuses(l Lane) error {
	if h := s.lanes[l.of]; l.most > 0 && h != nil && h.waiting >= l.queue {
		return fmt.Errorf("too many calls of this caller are waiting: its share is %d that run, and %d that wait", l.most, l.queue)
	}
	if s.waiting >= s.max {
		return ErrBusy
	}
	return nil
}

// place gives t a slot, and reports that, or lets it wait: one that is to pass
// before all that have not begun, for its lane's turn or for that of all.
func (s *Slots) place(t turn) bool {
	var h *held
	if t.lane.most > 0 {
		if h = s.lanes[t.lane.of]; h == nil {
			if s.lanes == nil {
				s.lanes = map[string]*held{}
			}
			h = &held{}
			s.lanes[t.lane.of] = h
		}
	}
	full := h != nil && h.slots >= t.lane.most
	if h != nil && !full {
		h.slots++
	}
	if !full && s.running < s.cap {
		s.running++
		return true
	}
	s.waiting++
	if h != nil {
		h.waiting++
	}
	if full {
		h.queue = lineUp(h.queue, t)
	} else {
		s.queue = lineUp(s.queue, t)
	}
	return false
}

// lineUp adds t to a queue: behind all, or before all if it is to pass.
func lineUp(queue []turn, t turn) []turn {
	if t.pass {
		return append([]turn{t}, queue...)
	}
	return append(queue, t)
}

// yield gives back what one piece of work had of its lane's share. What waits
// for that comes behind all others.
func (s *Slots) yield(l Lane) {
	if l.most == 0 {
		return
	}
	h := s.lanes[l.of]
	h.slots--
	if len(h.queue) > 0 {
		t := h.queue[0]
		h.queue[0] = turn{}
		h.queue = h.queue[1:]
		h.slots++
		s.queue = lineUp(s.queue, t)
	}
	if h.slots == 0 {
		delete(s.lanes, l.of)
	}
}

// unqueued takes note that a turn of l waits no more.
func (s *Slots) unqueued(l Lane) {
	s.waiting--
	if l.most > 0 {
		s.lanes[l.of].waiting--
	}
}
