package dispatch

import (
	"container/heap"
	"sync"
	"time"
)

// alarms rings at many times with one timer. Calls mostly last microseconds and
// have deadlines of seconds: setting a timer of the runtime for each would wake
// the thread that waits for the network at every call, which costs more than
// the call.
type alarms struct {
	mu    sync.Mutex
	queue queue
	timer *time.Timer
	armed time.Time // when timer rings; zero if it does not
}

// An alarm is one time to ring at. It belongs to one alarms.
type alarm struct {
	at   time.Time
	of   ringer
	slot int // in the queue, from 1; 0 if it is not set
}

// A ringer is told that the time of its alarm has come.
type ringer interface{ ring() }

// set makes x ring at at, also if it was set for another time.
func (a *alarms) set(x *alarm, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x.at = at
	if x.slot > 0 {
		heap.Fix(&a.queue, x.slot-1)
	} else {
		heap.Push(&a.queue, x)
	}
	a.arm()
}

// drop makes x not ring. The timer is left as it is: it finds nothing to do.
func (a *alarms) drop(x *alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x.slot > 0 {
		heap.Remove(&a.queue, x.slot-1)
	}
}

// arm sees to it that the timer rings in time for the first of the queue.
func (a *alarms) arm() {
	if len(a.queue) == 0 {
		return
	}
	first := a.queue[0].at
	if !a.armed.IsZero() && !first.Before(a.armed) {
		return
	}
	a.armed = first
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(first), a.due)
	} else {
		a.timer.Reset(time.Until(first))
	}
}

// due rings all alarms whose time has come.
func (a *alarms) due() {
	var ring []ringer
	a.mu.Lock()
	a.armed = time.Time{}
	for now := time.Now(); len(a.queue) > 0 && !a.queue[0].at.After(now); {
		x := a.queue[0]
		heap.Pop(&a.queue)
		ring = append(ring, x.of)
	}
	a.arm()
	a.mu.Unlock()
	for _, r := range ring {
		r.ring()
	}
}

// queue is a heap of alarms by their times (container/heap).
type queue []*alarm

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].slot, q[j].slot = i+1, j+1
}

// Push is for container/heap.
func (q *queue) Push(x any) {
	*q = append(*q, x.(*alarm))
	(*q)[len(*q)-1].slot = len(*q)
}

// Pop is for container/heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = nil
	*q, x.slot = (*q)[:last], 0
	return x
}
