// Package relay reads lines and runs the calls that they bring, with as few
// changes of thread as it can: a call that comes alone, or among others that are
// brief, runs where it was read, and never holds up the line behind it for long.
// Slots bound what runs at once.
//
// It does not know what a line says or what a call does.
package relay

import (
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/host/mcp/wire"
)

const (
	patience  = 500 * time.Microsecond // how long the reader may be inside a call, about
	watchTime = 20                     // patiences without a call before the guard sleeps
	slowCalls = 16                     // calls that get goroutines of their own after one was slow
	brief     = 50 * time.Microsecond  // calls that take less gain nothing from running beside each other
)

// A Relay reads lines. One goroutine at a time is the reader. A call that
// comes alone, or when calls are brief, it runs itself, which spares waking
// another thread; if the call is not done soon, the guard makes another
// goroutine the reader and the first one ends with its call.
type Relay struct {
	lines  *wire.Reader // the reader's
	accept func(line []byte, err error)
	w      *wire.Writer // of the answers
	slots  *Slots
	end    chan error // how the input ended, once

	own // of the reader alone

	turn  atomic.Int64 // even: the reader reads; odd: it is inside a call
	slow  atomic.Int32 // calls left that the reader does not run itself
	awake atomic.Bool  // the guard is, or is about to be
	wake  chan struct{}
}

// own is what only the reader touches.
type own struct {
	alone   bool          // the line being accepted is the only one at hand
	run     func()        // the call that the reader is to run itself, or nil
	held    time.Duration // what calls took whose answers wait for others
	pace    time.Duration // what calls take that the reader runs, a moving average
	untried int           // calls that it did not run because they are not brief
}

// New returns a Relay that gives each line to accept, which is not called twice
// at once and must copy what it keeps. In place of a line over the limit accept
// gets wire.ErrLong. The answers go to w, which gathers them while more lines
// are at hand.
func New(w *wire.Writer, slots *Slots, accept func(line []byte, err error)) *Relay {
	return &Relay{accept: accept, w: w, slots: slots, end: make(chan error, 1), wake: make(chan struct{}, 1)}
}

// Start begins to read. The guard, and what Begin is given after that, need
// done to be open; the reading ends with the input only.
func (r *Relay) Start(lines *wire.Reader, done <-chan struct{}) {
	r.lines = lines
	go r.guard(done)
	go r.read()
}

// End returns a channel that gets one value: the error that ended the input, or
// nil at its end.
func (r *Relay) End() <-chan error { return r.end }

// read accepts lines for as long as this goroutine is the reader.
func (r *Relay) read() {
	lines := r.lines
	for {
		if !lines.Ready() {
			r.w.Uncork()
			r.held = 0
			if r.slots.busy() { // else it only wakes a thread that finds nothing to do
				runtime.Gosched() // let the last call run here rather than wait for another thread
			}
		}
		line, err := lines.Next()
		switch {
		case err == nil:
			if r.alone = !lines.Ready(); !r.alone {
				r.w.Cork() // more requests, so more answers, are at hand
			}
			r.accept(line, nil)
			if !r.runSelf() {
				return
			}
		case errors.Is(err, wire.ErrLong):
			r.accept(nil, err)
		default:
			r.w.Uncork()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			r.end <- err
			return
		}
	}
}

// Begin runs call: in place, after the line is accepted, if single is set and
// nothing else runs or calls are brief, else in a goroutine of its own. Only
// accept may call it; the error is that too many wait.
func (r *Relay) Begin(call func(), single bool) error {
	s := r.slots
	switch {
	case !single:
	case r.slow.Load() > 0:
		r.slow.Add(-1)
	case r.alone && s.first() || r.tries() && s.take():
		r.run = call
		return nil
	}
	return s.All().Begin(call, false)
}

// tries reports whether to run a call in place that is not the only one: when
// calls are brief, and else now and then, to see whether they are.
func (r *Relay) tries() bool {
	if r.pace < brief {
		return true
	}
	r.untried++
	return r.untried%slowCalls == 0
}

// learn takes note of what a call in place took. One that was held up is to
// change little; a few that are brief are enough.
func (r *Relay) learn(took time.Duration) {
	if took = min(took, 4*brief); took > r.pace {
		r.pace += (took - r.pace) / 8
	} else {
		r.pace = (r.pace + took) / 2
	}
}

// runSelf runs what begin left for the reader. It reports whether this
// goroutine is the reader still.
func (r *Relay) runSelf() bool {
	run := r.run
	if run == nil {
		return true
	}
	r.run = nil
	if r.pace >= brief { // else the answer of this call can go along
		r.w.Uncork()
	}
	turn := r.turn.Add(1)
	if r.awake.CompareAndSwap(false, true) {
		r.wake <- struct{}{}
	}
	begin := time.Now()
	run()
	took := time.Since(begin)
	r.slots.All().Leave()
	if !r.turn.CompareAndSwap(turn, turn+1) {
		return false
	}
	r.learn(took)
	if r.held += took; r.held > patience { // answers wait for those to come, but not for long
		r.w.Uncork()
		r.held = 0
	}
	return true
}

// guard replaces a reader that is inside a call for too long. It sleeps while
// there are no calls, and ends when done is closed.
func (r *Relay) guard(done <-chan struct{}) {
	for {
		select {
		case <-r.wake:
		case <-done:
			return
		}
		for asleep := false; !asleep; {
			r.watch(done)
			r.awake.Store(false)
			// A call that began before the guard slept did not wake it.
			asleep = r.turn.Load()%2 == 0 || !r.awake.CompareAndSwap(false, true)
		}
	}
}

// watch returns after a time without calls.
func (r *Relay) watch(done <-chan struct{}) {
	t := time.NewTicker(patience)
	defer t.Stop()
	last := r.turn.Load()
	for quiet := 0; quiet < watchTime; {
		select {
		case <-t.C:
		case <-done:
			return
		}
		now := r.turn.Load()
		switch {
		case now != last:
			quiet = 0
		case now%2 == 0:
			quiet++
		case r.turn.CompareAndSwap(now, now+1):
			r.slow.Store(slowCalls)
			go func() {
				r.w.Uncork() // what was answered before the call that takes so long
				r.read()
			}()
		}
		last = now
	}
}
