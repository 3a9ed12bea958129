package mcp

import (
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/sdk"
)

const (
	patience  = 500 * time.Microsecond // how long the reader may be inside a call, about
	watchTime = 20                     // patiences without a call before the guard sleeps
	slowCalls = 16                     // calls that get goroutines of their own after one was slow
)

// A relay reads lines. One goroutine at a time is the reader. A call that
// comes alone it runs itself, which spares waking another thread; if the call
// is not done soon, the guard makes another goroutine the reader and the first
// one ends with its call.
type relay struct {
	f     *front
	lines *lineReader // the reader's
	end   chan error  // how the input ended, once

	alone bool   // the line being accepted is the only one at hand; the reader's
	run   func() // the call that the reader is to run itself, or nil; the reader's

	turn  atomic.Int64 // even: the reader reads; odd: it is inside a call
	slow  atomic.Int32 // calls left that the reader does not run itself
	awake atomic.Bool  // the guard is, or is about to be
	wake  chan struct{}
}

func newRelay(f *front) *relay {
	return &relay{f: f, end: make(chan error, 1), wake: make(chan struct{}, 1)}
}

// start begins to read r.
func (r *relay) start(in io.Reader) {
	r.lines = newLineReader(in, r.f.o.MaxLine)
	go r.guard()
	go r.read()
}

// read accepts lines for as long as this goroutine is the reader.
func (r *relay) read() {
	f, lines := r.f, r.lines
	for {
		if !lines.ready() {
			f.w.uncork()
			runtime.Gosched() // let the last call run here rather than wait for another thread
		}
		line, err := lines.next()
		switch {
		case err == nil:
			if r.alone = !lines.ready(); !r.alone {
				f.w.cork() // more requests, so more answers, are at hand
			}
			f.line(line)
			if !r.runSelf() {
				return
			}
		case errors.Is(err, errLong):
			f.refuse(nil, nil, &fault{code: codeInvalidRequest, message: "invalid request", details: "line too long"})
		default:
			f.w.uncork()
			if errors.Is(err, io.EOF) {
				err = nil
			} else {
				err = &sdk.Error{Kind: sdk.Unavailable, Op: "mcp.Serve", What: "cannot read from the client", Err: err}
			}
			r.end <- err
			return
		}
	}
}

// begin runs c: in place, after the line is accepted, if it came alone and
// nothing else runs, else in a goroutine of its own. It is called by the
// reader; false means that too many wait.
func (r *relay) begin(c *call) bool {
	s := r.f.slots
	if r.alone && c.batch == nil {
		if r.slow.Load() > 0 {
			r.slow.Add(-1)
		} else if s.first() {
			r.run = func() { s.work(c.callTool) }
			return true
		}
	}
	return s.enter(c.callTool, r.f.o.Queue)
}

// runSelf runs what begin left for the reader. It reports whether this
// goroutine is the reader still.
func (r *relay) runSelf() bool {
	run := r.run
	if run == nil {
		return true
	}
	r.run = nil
	r.f.w.uncork()
	turn := r.turn.Add(1)
	if r.awake.CompareAndSwap(false, true) {
		r.wake <- struct{}{}
	}
	run()
	return r.turn.CompareAndSwap(turn, turn+1)
}

// guard replaces a reader that is inside a call for too long. It sleeps while
// there are no calls.
func (r *relay) guard() {
	done := r.f.base.Done()
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
func (r *relay) watch(done <-chan struct{}) {
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
			go r.read()
		}
		last = now
	}
}
