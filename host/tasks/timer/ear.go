package timer

import (
	"time"

	"github.com/skillhost/skill/host/tasks/timer/row"
	"github.com/skillhost/skill/sdk"
)

// An Ear is a client that can be told of what has come without having asked.
type Ear struct {
	Wakes bool            // what it is told may wake the client's model, so it is always told
	Hears func() bool     // whether else it is to be told at present
	Busy  func() bool     // whether a tool runs for it that Begin was not told of
	Tell  func([]Arrival) // may take its time
}

// A talk is what goes on in a session.
type talk struct {
	scope   sdk.Scope
	ears    map[*Ear]struct{}
	calls   int           // tools that run
	ended   time.Duration // when the last one did
	telling bool
}

// quiet is how long a session must have been idle before it is told something.
const quiet = 2 * time.Second

// talk returns what goes on in a session. The caller holds mu.
func (t *Timers) talk(s sdk.Scope) *talk {
	at := scopeOf(s)
	k := t.talks[at]
	if k == nil {
		k = &talk{ears: map[*Ear]struct{}{}, ended: -quiet}
		t.talks[at] = k
	}
	k.scope = s
	return k
}

// hush forgets a talk in which nothing goes on. The caller holds mu.
func (t *Timers) hush(k *talk) {
	if at := scopeOf(k.scope); len(k.ears) == 0 && k.calls == 0 && t.talks[at] == k {
		delete(t.talks, at)
	}
}

// Begin notes that a tool runs for scope until done is called: nobody is told
// anything meanwhile.
func (t *Timers) Begin(s sdk.Scope) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.talk(s)
	k.calls++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		k.calls--
		k.ended = t.o.Clock.Elapsed()
		t.hush(k)
	}
}

// Join lets e be told of what comes for scope, until leave. over says that the
// session has ended as well, and with it its timers.
func (t *Timers) Join(s sdk.Scope, e *Ear) (leave func(over bool)) {
	t.mu.Lock()
	k := t.talk(s)
	k.ears[e] = struct{}{}
	t.note(scopeOf(s))
	if t.left[scopeOf(s).Family()] { // here is somebody who may have it
		t.scanned = -scanEvery
	}
	t.mu.Unlock()
	t.run(serving)
	return func(over bool) {
		t.mu.Lock()
		delete(k.ears, e)
		t.hush(k)
		closing := t.life == closed
		t.mu.Unlock()
		if over && !closing {
			t.end(scopeOf(s))
		}
	}
}

// note remembers that a session is there, to take over what others leave. The
// caller holds mu.
func (t *Timers) note(s row.Scope) {
	if len(t.seen) >= maxPresent {
		clear(t.seen)
	}
	if !s.Outlives() { // what is taken over goes to who comes again by itself
		t.seen[s.Family()] = s
	}
}

// end ends what a session has, and leaves what is durable to another one.
func (t *Timers) end(s row.Scope) {
	all := t.of(s)
	defer all.release(t)
	for _, b := range all {
		if err := t.abandon(t.ctx, b); err != nil { // it is found later, when this host has ended
			t.o.Log.Warn("the callbacks of a session cannot be ended", "err", err)
		}
		t.forget(b)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if family := s.Family(); t.seen[family] == s {
		delete(t.seen, family)
		for _, k := range t.talks {
			if at := scopeOf(k.scope); at != s && len(k.ears) > 0 && at.Family() == family {
				t.note(at)
			}
		}
	}
	t.scanned = -scanEvery
	t.ring()
}

// A Way is how what a session's timers fire gets to its client.
type Way int

// The ways.
const (
	Later   Way = iota // another process will hand it over: this one does not
	Reply              // with the answer to its next call
	Updated            // it is told that there is something
	Event              // it is told, and its model wakes
)

// Way returns the best way to a session at present. Reply is one in any case,
// but for Later.
func (t *Timers) Way(o Owner) Way {
	t.mu.Lock()
	defer t.mu.Unlock()
	way := Reply
	if t.life != serving {
		way = Later
	}
	if k := t.talks[o.scope()]; k != nil {
		for e := range k.ears {
			switch {
			case e.Wakes:
				way = Event
			case e.Hears():
				way = max(way, Updated)
			}
		}
	}
	return way
}

// tellEars tells those who listen what they were not told yet, where nothing
// else goes on. It reports whether somebody is to be told later.
func (t *Timers) tellEars() (more bool) {
	t.mu.Lock()
	var talks []*talk
	for _, k := range t.talks {
		if len(k.ears) > 0 && !k.telling {
			talks = append(talks, k)
		}
	}
	t.mu.Unlock()
	for _, k := range talks {
		more = t.tellTalk(k) || more
	}
	return more
}

func (t *Timers) tellTalk(k *talk) (later bool) {
	t.mu.Lock()
	s := k.scope
	t.mu.Unlock()
	all := t.of(scopeOf(s))
	defer all.release(t)
	if len(all) == 0 {
		return false
	}
	may := t.may(all, s)
	t.mu.Lock()
	defer t.mu.Unlock()
	var news []Arrival
	for _, b := range all {
		for i := range b.row.Inbox {
			if e := &b.row.Inbox[i]; may[e.Skill] && b.out[e.N] == nil && b.told[e.N].fire != e.Fire {
				news = append(news, b.news(e))
			}
		}
	}
	var ears []*Ear
	for e := range k.ears {
		if e.Wakes || e.Hears() {
			ears = append(ears, e)
		}
	}
	if len(news) == 0 || len(ears) == 0 {
		return false
	}
	busy := k.calls > 0 || t.o.Clock.Elapsed()-k.ended < quiet
	for _, e := range ears {
		busy = busy || e.Busy()
	}
	if busy {
		return true
	}
	for _, b := range all {
		for i := range b.row.Inbox {
			if e := &b.row.Inbox[i]; may[e.Skill] && b.out[e.N] == nil {
				b.told[e.N] = told{e.Fire, e.Missed}
			}
		}
	}
	k.telling = true
	t.work.Go(func() { t.speak(k, ears, news) })
	return false
}

// news is what of e nobody was told yet. The caller holds mu.
func (b *box) news(e *row.Entry) Arrival {
	a := b.arrival(e)
	if was, ok := b.told[e.N]; ok {
		a.Count = min(a.Count, a.Fire-was.fire)
		a.Missed = max(0, e.Missed-was.missed)
	}
	return a
}

// speak tells ears, which may be slow.
func (t *Timers) speak(k *talk, ears []*Ear, news []Arrival) {
	for _, e := range ears {
		e.Tell(news)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k.telling = false
	t.ring()
}
