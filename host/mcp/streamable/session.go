package streamable

import (
	"crypto/rand"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/streamable/bound"
	"github.com/skillhost/skill/host/mcp/streamable/head"
	"github.com/skillhost/skill/host/mcp/streamable/shelf"
	"github.com/skillhost/skill/host/mcp/wire"
)

// A session is a legacy client's talk over many requests.
type session struct {
	*shelf.Shelf
	h      *Handler
	id     string
	caller string
	old    bool // of the transport of 2024-11-05
	talk   *conversation.Conversation
	apart  *shelf.Stream // what belongs to no request
	used   atomic.Int64  // when, in nanoseconds since 1970
	active atomic.Int32  // requests that use it now
	leave  func()        // counts it no more
}

// sessions are those that are open.
type sessions struct {
	h     *Handler
	count bound.Count // also of those that are not known yet
	mu    sync.Mutex
	byID  map[string]*session
	sweep *time.Timer // nil while there is none open
	shut  bool
}

// evictable is how long a session must be idle to make room for another one of
// its caller.
const evictable = time.Minute

// start makes a session, which is not known yet, and is to be ended even so. Its
// events have ids that begin with tag, or none.
func (h *Handler) start(v *visit, tag string) (*session, *refusal) {
	s := &session{h: h, Shelf: shelf.New(tag, v.scope.Caller, &h.events), id: rand.Text(), caller: v.scope.Caller, old: tag == ""}
	if no := h.sessions.room(s.caller); no != nil {
		return nil, no
	}
	s.leave = sync.OnceFunc(func() { h.sessions.count.Leave(s.caller) })
	scope := v.scope
	scope.Session = "http:" + rand.Text() // the id is a secret, and scopes are on record
	s.apart = s.Open(nil)
	s.talk = h.open(h.base, scope, apart{s.apart})
	return s, nil
}

// apart is the Outlet of what belongs to no request. It never waits: who
// announces a change tells others as well.
type apart struct{ *shelf.Stream }

func (a apart) Send(b *wire.Buffer) { a.Put(b) }

// room counts one more session of a caller. If there are too many, it ends one of
// the same caller that seems forgotten.
func (s *sessions) room(caller string) *refusal {
	err := s.count.Take(caller)
	if err != nil {
		if oldest := s.forgotten(caller); oldest != nil {
			s.end(oldest)
			err = s.count.Take(caller)
		}
	}
	if err != nil {
		return &refusal{status: http.StatusServiceUnavailable, what: "limit", why: err.Error(), retry: time.Minute}
	}
	return nil
}

// forgotten returns the session of a caller that has been idle for the longest
// time, if that is long enough.
func (s *sessions) forgotten(caller string) (oldest *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.byID {
		if x.caller == caller && x.active.Load() == 0 && (oldest == nil || x.used.Load() < oldest.used.Load()) {
			oldest = x
		}
	}
	if oldest != nil && (time.Since(time.Unix(0, oldest.used.Load())) < evictable || oldest.Busy()) {
		return nil
	}
	return oldest
}

// add makes a session known, in use; false if it cannot be any more.
func (s *sessions) add(x *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return false
	}
	if s.byID == nil {
		s.byID = map[string]*session{}
	}
	x.used.Store(time.Now().UnixNano())
	x.active.Add(1)
	s.byID[x.id] = x
	if s.sweep == nil {
		s.sweep = time.AfterFunc(s.h.o.Limits.sweepEvery, s.expire)
	}
	return true
}

// enter returns the caller's session of that id, in use; nil if there is none.
func (s *sessions) enter(id, caller string, old bool) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byID[id]
	if x == nil || x.caller != caller || x.old != old {
		return nil
	}
	x.active.Add(1)
	return x
}

// leave undoes enter.
func (s *sessions) leave(x *session) {
	x.used.Store(time.Now().UnixNano())
	x.active.Add(-1)
}

// expire ends sessions that nobody uses.
func (s *sessions) expire() {
	now := time.Now()
	var idle, rest []*session
	s.mu.Lock()
	for _, x := range s.byID {
		if x.active.Load() == 0 && now.Sub(time.Unix(0, x.used.Load())) > s.h.o.Limits.SessionIdle {
			idle = append(idle, x)
		} else {
			rest = append(rest, x)
		}
	}
	if s.sweep = nil; len(rest) > 0 && !s.shut {
		s.sweep = time.AfterFunc(s.h.o.Limits.sweepEvery, s.expire)
	}
	s.mu.Unlock()
	for _, x := range idle {
		s.end(x)
	}
	for _, x := range rest {
		x.Age(now)
	}
}

// end forgets a session and cancels what it does.
func (s *sessions) end(x *session) {
	s.mu.Lock()
	delete(s.byID, x.id)
	s.mu.Unlock()
	x.talk.Shut()
	x.talk.Close()
	x.Close()
	x.leave()
	if s.h.o.Ended != nil {
		s.h.o.Ended(x.talk.Scope())
	}
}

// all stops accepting sessions and returns those that are open.
func (s *sessions) all() (out []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	if s.sweep != nil {
		s.sweep.Stop()
	}
	for _, x := range s.byID {
		out = append(out, x)
	}
	return out
}

// session returns the session that a request names, in use.
func (h *Handler) session(v *visit, id, version string) (*session, *refusal) {
	s := h.sessions.enter(id, v.scope.Caller, false)
	if s == nil {
		return nil, &refusal{status: http.StatusNotFound, what: "session not found", why: "it has ended, or is not yours: initialize a new one"}
	}
	if negotiated, _ := s.talk.Met(); version != "" && version != negotiated {
		h.sessions.leave(s)
		return nil, bad("header " + versionHeader + " is not the revision that this session has agreed on, " + negotiated)
	}
	return s, nil
}

// A greeting is the Outlet of an initialize.
type greeting struct {
	b *wire.Buffer
	f *wire.Fault
}

func (g *greeting) Send(b *wire.Buffer) { b.Free() }

func (g *greeting) End(b *wire.Buffer, f *wire.Fault) { g.b, g.f = b, f }

// initialize opens a session for a client that introduces itself.
func (h *Handler) initialize(v *visit, m *message.Request) *refusal {
	s, no := h.start(v, rand.Text()[:8])
	if no != nil {
		return no
	}
	var g greeting
	s.talk.Take(m, conversation.Via{Out: &g}) // answers at once
	if g.f != nil || g.b == nil || !h.sessions.add(s) {
		h.sessions.end(s)
		if g.f != nil && g.b != nil {
			_ = h.writeJSON(v, http.StatusOK, g.b) // a client that is gone needs no answer
			return nil
		}
		return &refusal{status: http.StatusServiceUnavailable, what: "unavailable", why: "no session can be opened", id: m.ID, retry: 5 * time.Second}
	}
	defer h.sessions.leave(s)
	v.w.Header().Set(sessionHeader, s.id)
	if h.writeJSON(v, http.StatusOK, g.b) != nil {
		h.sessions.end(s) // nobody knows of it
	}
	return nil
}

// post takes what a client says in a session. asks says that there is something
// to answer.
func (s *session) post(v *visit, asks bool, take func(*conversation.Conversation, conversation.Via)) *refusal {
	h := s.h
	if !asks {
		take(s.talk, conversation.Via{Out: nowhere{}})
		v.w.WriteHeader(http.StatusAccepted)
		return nil
	}
	if no := h.takeStream(v); no != nil {
		return no
	}
	defer h.leaveStream(v)
	r := newReader(settings{ids: true, prime: never})
	if version, _ := s.talk.Met(); version >= primed {
		r.prime, r.primes, r.poll = h.o.Limits.primeAfter, true, h.o.PollAfter
	}
	if v.events {
		r.prime = 0
	}
	t := s.Open(r.Reader)
	take(s.talk, conversation.Via{Out: t, Begin: s.talk.Begin})
	h.serve(v, t, r)
	return nil
}

// get serves what belongs to no request of a session, or what a client missed
// of some stream.
func (h *Handler) get(v *visit) *refusal {
	s, no := h.named(v)
	if no != nil {
		return no
	}
	defer h.sessions.leave(s)
	if _, asEvents, _ := head.Accepts(v.r.Header); !asEvents {
		return &refusal{status: http.StatusNotAcceptable, what: "not acceptable", why: "a client must accept text/event-stream"}
	}
	last, resumes, no := single(v.r.Header, eventHeader)
	if no != nil {
		return no
	}
	t, r := s.apart, newReader(settings{ids: true})
	if resumes {
		if t, r.At = s.Find(last); t == nil {
			return bad("Last-Event-ID: not an event of this session, or no longer kept")
		}
	}
	if version, _ := s.talk.Met(); version >= primed && !t.Apart() {
		r.primes, r.poll = true, h.o.PollAfter
	}
	if no := h.takeStream(v); no != nil {
		return no
	}
	defer h.leaveStream(v)
	// The other connection of a client that resumes is lost, whether or not this
	// end knows.
	if !t.Attach(r.Reader, resumes) {
		return &refusal{status: http.StatusConflict, what: "conflict", why: "this session has such a stream already"}
	}
	h.serve(v, t, r)
	return nil
}

// delete ends a session.
func (h *Handler) delete(v *visit) *refusal {
	s, no := h.named(v)
	if no != nil {
		return no
	}
	h.sessions.leave(s)
	h.sessions.end(s)
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// named returns the session of a request that must have one, in use.
func (h *Handler) named(v *visit) (*session, *refusal) {
	version, _, no := single(v.r.Header, versionHeader)
	if no != nil {
		return nil, no
	}
	id, has, no := single(v.r.Header, sessionHeader)
	switch {
	case no != nil:
		return nil, no
	case version >= message.ModernEra:
		v.w.Header().Set("Allow", "POST")
		return nil, &refusal{status: http.StatusMethodNotAllowed, what: "method not allowed", why: "this revision has no sessions: want POST"}
	case !has:
		return nil, bad("missing header " + sessionHeader)
	}
	return h.session(v, id, version)
}
