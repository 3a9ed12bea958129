package main

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/skillhost/skill/sdk/guest"
)

// A breaker remembers, from one search to the next, which engines are to be
// left alone. It is kept for the caller, in all workspaces.
type breaker struct {
	call    *guest.Call
	version int64
	most    time.Duration   // no suspension is longer
	trying  map[string]bool // engines that this search tries again
	circuits
}

// circuits is what is stored.
type circuits struct {
	Format  int                `json:"format"`
	Engines map[string]circuit `json:"engines"`
}

// A circuit is what is known of one engine.
type circuit struct {
	Until    int64  `json:"until"`              // Unix milliseconds: no request before that
	Why      state  `json:"why,omitempty"`      // what it did; "": it only wants a pause
	Failures int    `json:"failures,omitempty"` // in a row
	Base     string `json:"base,omitempty"`     // the address that this is about
}

const (
	breakerKey    = "engines"
	breakerFormat = 1
	breakerTries  = 5
)

// openBreaker reads what is stored. What cannot be read is forgotten: it only
// keeps engines from being asked.
func openBreaker(c *guest.Call, most time.Duration) *breaker {
	b := &breaker{call: c, most: most, trying: map[string]bool{}}
	b.load()
	return b
}

func (b *breaker) load() {
	b.circuits = circuits{}
	data, version, err := b.call.KV.In("caller").Get(breakerKey)
	if err != nil {
		b.call.Log("warning", "which engines are suspended cannot be read: "+err.Error())
	}
	b.version = version
	if json.Unmarshal(data, &b.circuits) != nil || b.Format != breakerFormat {
		b.circuits = circuits{}
	}
	if b.Engines == nil {
		b.Engines = map[string]circuit{}
	}
}

// until is the moment before which s is left alone, the zero time if it may be
// asked. A clock that was set back makes no suspension longer.
func (b *breaker) until(s *source, now time.Time) (time.Time, state) {
	c, ok := b.Engines[s.name]
	if !ok || c.Base != s.base || b.trying[s.name] {
		return time.Time{}, ""
	}
	until := time.UnixMilli(c.Until)
	if until.After(now.Add(b.most)) {
		until = now.Add(b.most)
	}
	if b.most <= 0 || !until.After(now) {
		return time.Time{}, ""
	}
	return until, c.Why
}

// claim takes those of sources for this search that are tried again after a
// suspension: of the searches that go on at the same time one tries, the others
// leave the engine alone until it knows.
func (b *breaker) claim(sources []*source, now time.Time) {
	for range breakerTries {
		changed := false
		for _, s := range sources {
			c := b.Engines[s.name]
			if until, _ := b.until(s, now); c.Failures > 0 && c.Base == s.base && until.IsZero() {
				c.Until, changed = now.Add(s.timeout).UnixMilli(), true
				b.Engines[s.name] = c
				b.trying[s.name] = true
			}
		}
		if !changed {
			return
		}
		version, err := b.put()
		if err == nil {
			b.version = version
			return
		}
		clear(b.trying)
		if !errors.Is(err, guest.ErrConflict) {
			b.call.Log("warning", "which engines are suspended cannot be kept: "+err.Error())
			return
		}
		b.load()
	}
}

// note says how s did, and reports whether that changes anything.
func (b *breaker) note(s *source, r reading, now time.Time) bool {
	before, had := b.Engines[s.name]
	if r.hasty {
		return false
	}
	c := before
	if c.Base != s.base {
		c = circuit{Base: s.base}
	}
	wait := s.pause
	switch r.state {
	case stateOK, stateEmpty:
		c.Failures, c.Why = 0, ""
		wait = max(wait, r.wait)
	case stateDenied, stateNoKey, stateSkipped, stateSuspended:
		return false // it was not asked
	case stateLate:
		if wait == 0 {
			return false // says nothing of the engine
		}
	default:
		c.Failures, c.Why = c.Failures+1, r.state
		wait = max(wait, min(suspension(s, r, c.Failures), b.most))
	}
	c.Until = now.Add(wait).UnixMilli()
	if wait == 0 && c.Failures == 0 {
		delete(b.Engines, s.name)
		return had
	}
	b.Engines[s.name] = c
	return c != before
}

// An outcome is how an engine did, for the breaker.
type outcome struct {
	source  *source
	reading reading
}

// put writes what is known if nobody else has written meanwhile.
func (b *breaker) put() (version int64, err error) {
	b.Format = breakerFormat
	data, _ := json.Marshal(b.circuits) // strings and numbers: cannot fail
	return b.call.KV.In("caller").Put(breakerKey, data, b.version)
}

// save writes what has changed: notes, on top of what others have written
// meanwhile.
func (b *breaker) save(notes []outcome, now time.Time) {
	for range breakerTries {
		changed := false
		for _, n := range notes {
			changed = b.note(n.source, n.reading, now) || changed
		}
		if !changed || len(b.Engines) == 0 && b.version == 0 {
			return
		}
		_, err := b.put()
		if err == nil {
			return
		}
		if !errors.Is(err, guest.ErrConflict) {
			b.call.Log("warning", "which engines are suspended cannot be kept: "+err.Error())
			return
		}
		b.load()
	}
}
