// Package shelf keeps what is said to a client in streams of events, until the
// client has it, and for a while after: a client that lost its connection may
// fetch it again. What is kept is bounded, and so is who waits for whom.
//
// It does not know connections, HTTP, or what an event says.
package shelf

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/mcp/wire"
)

const (
	maxEvents  = 1024            // kept on one shelf
	maxWaiting = 64              // events that wait for a client before who says more waits as well
	replayTime = 5 * time.Minute // how long what was written is kept for a client that did not get it
)

// A Shelf holds what is said to one client: streams of events, each with what
// is still to be written and what a client that lost its connection may fetch
// again.
type Shelf struct {
	budget  *Budget
	caller  string
	tag     string // of the ids of its events; "": they have none and are not kept
	mu      sync.Mutex
	streams []*Stream // by number
	next    int       // number of the next stream
	bytes   int       // of events
	count   int       // of events
	closed  bool
}

// New returns an empty Shelf for what is said to a caller. The ids of its events
// begin with tag; without one, they have none, and are not kept once they are
// written.
func New(tag, caller string, b *Budget) *Shelf { return &Shelf{budget: b, caller: caller, tag: tag} }

// A Stream is what is said about one request, or, as number 0 of a session,
// about none. It is an Outlet that never waits for a client that is not there.
type Stream struct {
	*Shelf
	number int
	events []Event
	said   int // events so far
	sent   int // of those, written
	ended  time.Time
	fault  *wire.Fault // of the answer
	reader *Reader
	space  sync.Cond // events were written, or the reader is gone
}

// An Event is one message. Numbers begin with 1: event 0 is what a client names
// that has had none.
type Event struct {
	N    int
	Text []byte

	written func(ok bool) // is told when it was written; may be nil
}

// Open adds a stream that r reads, if that is not nil.
func (s *Shelf) Open(r *Reader) *Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &Stream{Shelf: s, number: s.next, reader: r}
	t.space.L = &s.mu
	s.next++
	s.streams = append(s.streams, t)
	return t
}

// Find returns the stream and the number of an event by its id; nil if the id is
// none of this shelf's, or nothing is left of its stream.
func (s *Shelf) Find(id string) (*Stream, int) {
	rest, ok := strings.CutPrefix(id, s.tag+"-")
	number, n, ok2 := strings.Cut(rest, "-")
	if !ok || !ok2 {
		return nil, 0
	}
	k, err := strconv.Atoi(number)
	after, err2 := strconv.Atoi(n)
	if err != nil || err2 != nil || after < 0 {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := slices.BinarySearchFunc(s.streams, k, func(t *Stream, k int) int { return t.number - k })
	if !ok || after > s.streams[at].said {
		return nil, 0
	}
	t := s.streams[at]
	if !t.ended.IsZero() && len(t.events) == 0 && after < t.said {
		return nil, 0
	}
	return t, after
}

// Send puts b on the stream. While the client is far behind, it waits.
func (t *Stream) Send(b *wire.Buffer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.reader != nil && t.said-t.sent >= maxWaiting && !t.closed {
		t.space.Wait()
	}
	t.put(b)
}

// Put puts b on the stream and waits for nobody.
func (t *Stream) Put(b *wire.Buffer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(b)
}

// Apart reports whether the stream is the first of its shelf.
func (t *Stream) Apart() bool { return t.number == 0 }

// ID is that of event n, for Find.
func (t *Stream) ID(n int) string {
	return t.tag + "-" + strconv.Itoa(t.number) + "-" + strconv.Itoa(n)
}

// End puts the answer on the stream, which is its last.
func (t *Stream) End(b *wire.Buffer, f *wire.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.fault = time.Now(), f
	t.put(b)
}

// put adds an event, if there is one, and tells the reader. The caller holds mu.
func (t *Stream) put(b *wire.Buffer) {
	if b != nil {
		t.said++
		if !t.closed || t.reader != nil {
			t.events = append(t.events, Event{t.said, bytes.Clone(b.B), b.Written})
			t.count++
			t.weigh(len(b.B))
		}
		b.Free()
		t.fit()
	}
	t.reader.ring()
	t.forget(t)
}

func (s *Shelf) weigh(n int) {
	s.bytes += n
	s.budget.add(s.caller, n)
}

// fit keeps the shelf within bounds. What does not fit even so is not kept: it is
// as if it were dropped already. A reader that is there gets it, until there is
// far too much of that as well. The caller holds mu.
func (t *Stream) fit() {
	t.trim(t)
	times := int64(1)
	if t.reader != nil {
		times = readers
	}
	if !t.budget.over(t.caller, times) {
		return
	}
	for len(t.events) > 0 {
		t.drop()
	}
	t.reader.ring() // it finds that it is the reader no more
	t.reader = nil
	t.space.Broadcast()
}

// trim drops events until the rest is within bounds: first those that were
// written, then the oldest, and never the newest of the stream that grew. The
// caller holds mu.
func (s *Shelf) trim(grew *Stream) {
	over := func() bool {
		b := s.budget
		return s.count > maxEvents || s.bytes > b.Each || s.bytes > b.Each/16 && b.over(s.caller, 1)
	}
	for _, written := range []bool{true, false} {
		for i := 0; over() && i < len(s.streams); {
			t := s.streams[i]
			for over() && len(t.events) > 0 && (!written || t.events[0].N <= t.sent) && !(t == grew && len(t.events) == 1) {
				t.drop()
			}
			if !s.forget(t) {
				i++
			}
		}
	}
}

// drop forgets the oldest event. The caller holds mu.
func (t *Stream) drop() {
	t.weigh(-len(t.events[0].Text))
	t.count--
	t.events[0].Text = nil
	t.events = t.events[1:]
}

// forget removes t if nothing more can be had of it. The caller holds mu.
func (s *Shelf) forget(t *Stream) bool {
	if t.ended.IsZero() || len(t.events) > 0 || t.reader != nil {
		return false
	}
	if i := slices.Index(s.streams, t); i >= 0 {
		s.streams = slices.Delete(s.streams, i, i+1)
		return true
	}
	return false
}

// Age drops what was written and has ended long ago.
func (s *Shelf) Age(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range slices.Clone(s.streams) {
		if !t.ended.IsZero() && t.sent == t.said && t.reader == nil && now.Sub(t.ended) > replayTime {
			for len(t.events) > 0 {
				t.drop()
			}
			s.forget(t)
		}
	}
}

// Busy reports whether any request has no answer yet.
func (s *Shelf) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.streams, func(t *Stream) bool { return t.number > 0 && t.ended.IsZero() })
}

// Close ends all streams once their readers have written what is there.
func (s *Shelf) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, t := range s.streams {
		t.space.Broadcast()
		if t.reader != nil {
			t.reader.ring()
			continue
		}
		for len(t.events) > 0 {
			t.drop()
		}
	}
}

// A Reader is a connection that a stream is written to.
type Reader struct {
	Bell chan struct{} // rings when there is something to do
	At   int           // events that were written, or that the client has
}

// NewReader returns a Reader that has read nothing.
func NewReader() *Reader { return &Reader{Bell: make(chan struct{}, 1)} }

func (r *Reader) ring() {
	if r == nil {
		return
	}
	select {
	case r.Bell <- struct{}{}:
	default:
	}
}

// Attach makes r the stream's reader, in the place of another one if that may
// be.
func (t *Stream) Attach(r *Reader, replace bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader != nil && !replace {
		return false
	}
	t.reader.ring() // it finds that it is the reader no more
	t.reader = r
	if !replace {
		r.At = t.sent
	}
	return true
}

// Detach undoes Attach.
func (t *Stream) Detach(r *Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader != r {
		return
	}
	t.reader = nil
	t.space.Broadcast()
	if t.closed {
		for len(t.events) > 0 {
			t.drop()
		}
	}
	t.fit()
	t.forget(t)
}

// A Portion is what a reader is to write next.
type Portion struct {
	Events []Event
	Whole  bool // the events are one answer, and all there ever was
	Over   bool // nothing comes behind them
	Fault  *wire.Fault
}

// Take returns what r has not written yet, and takes note of what it has.
func (t *Stream) Take(r *Reader) Portion {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader != r {
		return Portion{Over: true}
	}
	from := 0
	for from < len(t.events) && t.events[from].N <= r.At {
		from++
	}
	p := Portion{Events: slices.Clone(t.events[from:]), Fault: t.fault}
	p.Over = !t.ended.IsZero() || t.closed
	p.Whole = !t.ended.IsZero() && t.said == 1 && len(p.Events) == 1
	return p
}

// Wrote takes note that r has written up to event n, the last of those that are
// not kept.
func (t *Stream) Wrote(r *Reader, n int, forget bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.At = n
	t.sent = max(t.sent, n)
	for i := range t.events {
		if e := &t.events[i]; e.N <= n && e.written != nil {
			e.written(true)
			e.written = nil
		}
	}
	for (forget || t.tag == "") && len(t.events) > 0 && t.events[0].N <= n {
		t.drop()
	}
	t.space.Broadcast()
}
