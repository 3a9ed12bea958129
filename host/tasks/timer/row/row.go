// Package row is what the store has of a session's timers and inbox: one row,
// which changes as a whole. It is values only: what a change comes to, and
// whether what was read makes sense.
//
// It does not know the store, clocks, hosts or clients.
package row

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a timer, and of a row.
const (
	MaxMessage = 2048 // characters
	MinDelay   = time.Second
	MaxDelay   = time.Hour
	Forever    = -1 // as a number of repeats
	MaxTimers  = 256
	MaxInbox   = 100
)

// A Scope is a session of a caller in a workspace.
type Scope struct{ Caller, Workspace, Session string }

// Family names whose sessions may take over from each other. Parts are hashed
// with their lengths: no choice of names leads to another caller's.
func (s Scope) Family() string { return digest(s.Caller, s.Workspace) }

// Key is that of the session's own row.
func (s Scope) Key() string { return s.Family() + ":" + digest(s.Session) }

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Outlives reports whether the session is one that a client names itself, by a
// task_id. It is the same in every host, and no host's end is its own.
func (s Scope) Outlives() bool { return strings.HasPrefix(s.Session, "task:") }

// Format is that of the rows that this package reads, and that are to be written.
const Format = 1

// A Row is what the store has of a session.
type Row struct {
	Format    int       `json:"format"`
	Caller    string    `json:"caller"`
	Workspace string    `json:"workspace,omitempty"`
	Session   string    `json:"session,omitempty"` // whose it is now
	Next      int64     `json:"next"`              // the last number given
	Timers    []Timer   `json:"timers,omitempty"`  // by ID
	Inbox     []Entry   `json:"inbox,omitempty"`   // the oldest first
	Dropped   int       `json:"dropped,omitempty"` // fires that the inbox had no room for
	Changed   time.Time `json:"changed"`
}

// A Timer is one as the store has it.
type Timer struct {
	N         int64     `json:"n"`  // in the row, never given twice
	ID        int       `json:"id"` // what the skill calls it
	Skill     string    `json:"skill"`
	Boot      string    `json:"boot,omitempty"` // whose it is; "": nobody's
	Message   string    `json:"message"`
	Delay     int       `json:"delay"` // seconds
	Left      int       `json:"left"`
	Fires     int       `json:"fires,omitempty"` // so far
	Delivered int       `json:"delivered,omitempty"`
	Durable   bool      `json:"durable,omitempty"`
	Due       time.Time `json:"due"` // by the wall clock, which only a durable one obeys
}

// Period is what goes by between fires.
func (x *Timer) Period() time.Duration { return time.Duration(x.Delay) * time.Second }

// An Entry is a timer that has fired. Fires that nobody was told of yet are one.
type Entry struct {
	N       int64     `json:"n"`
	Timer   int64     `json:"timer"` // its N
	ID      int       `json:"id"`    // and its ID
	Skill   string    `json:"skill"`
	Boot    string    `json:"boot,omitempty"`
	Message string    `json:"message"`
	Fire    int       `json:"fire"` // the number of the last
	Count   int       `json:"count"`
	Missed  int       `json:"missed,omitempty"`
	Durable bool      `json:"durable,omitempty"`
	Last    time.Time `json:"last"`
}

// Scope is the session whose row it is now.
func (r *Row) Scope() Scope { return Scope{r.Caller, r.Workspace, r.Session} }

// Empty reports whether there is nothing to keep.
func (r *Row) Empty() bool { return len(r.Timers) == 0 && len(r.Inbox) == 0 }

// Clone returns a row that can be changed.
func (r *Row) Clone() Row {
	c := *r
	c.Timers, c.Inbox = slices.Clone(r.Timers), slices.Clone(r.Inbox)
	return c
}

// Number gives out a number.
func (r *Row) Number() int64 {
	r.Next++
	return r.Next
}

// fire makes x fire, which is late by so much. Intervals that went by meanwhile
// are counted, and not made up for.
func (r *Row) fire(x *Timer, now time.Time, late time.Duration) {
	missed := int(late / x.Period())
	x.Fires++
	if x.Left > 0 {
		x.Left--
	}
	x.Due = now.Add(x.Period())
	if i := slices.IndexFunc(r.Inbox, func(e Entry) bool { return e.Timer == x.N }); i >= 0 {
		e := &r.Inbox[i]
		e.Fire, e.Last = x.Fires, now
		e.Count++
		e.Missed += missed
		return
	}
	for len(r.Inbox) >= MaxInbox {
		r.Dropped += r.Inbox[0].Count
		r.Inbox = r.Inbox[1:]
	}
	r.Inbox = append(r.Inbox, Entry{N: r.Number(), Timer: x.N, ID: x.ID, Skill: x.Skill, Boot: x.Boot, Message: x.Message,
		Fire: x.Fires, Count: 1, Missed: missed, Durable: x.Durable, Last: now})
}

// Took takes so many fires of an entry out of the inbox.
func (r *Row) Took(n int64, count, missed int) {
	i := slices.IndexFunc(r.Inbox, func(e Entry) bool { return e.N == n })
	if i < 0 {
		return
	}
	e := &r.Inbox[i]
	if k := slices.IndexFunc(r.Timers, func(x Timer) bool { return x.N == e.Timer }); k >= 0 {
		r.Timers[k].Delivered += min(count, e.Count)
	}
	e.Count -= count
	e.Missed = max(0, e.Missed-missed)
	if e.Count <= 0 {
		r.Inbox = slices.Delete(r.Inbox, i, i+1)
	}
	if len(r.Inbox) == 0 {
		r.Dropped = 0
	}
}

// Leave ends what a boot has in the row, and makes what is durable nobody's. The
// inbox of a session that outlives its hosts stays whole.
func (r *Row) Leave(boot string) {
	r.Timers = slices.DeleteFunc(r.Timers, func(x Timer) bool { return x.Boot == boot && !x.Durable })
	for i := range r.Timers {
		if r.Timers[i].Boot == boot {
			r.Timers[i].Boot = ""
		}
	}
	outlives := r.Scope().Outlives()
	r.Inbox = slices.DeleteFunc(r.Inbox, func(e Entry) bool { return e.Boot == boot && !e.Durable && !outlives })
	for i := range r.Inbox {
		if r.Inbox[i].Boot == boot {
			r.Inbox[i].Boot = ""
		}
	}
}

// Inherit makes what is durable of a row that of another session and boot, and
// ends the rest. renumber returns the ID that a timer gets.
func (r *Row) Inherit(session, boot string, renumber func(*Timer) int) {
	r.Timers = slices.DeleteFunc(r.Timers, func(x Timer) bool { return !x.Durable })
	r.Inbox = slices.DeleteFunc(r.Inbox, func(e Entry) bool { return !e.Durable })
	r.Session = session
	for i := range r.Timers {
		x := &r.Timers[i]
		x.Boot, x.ID = boot, renumber(x)
		for k := range r.Inbox {
			if r.Inbox[k].Timer == x.N {
				r.Inbox[k].ID = x.ID
			}
		}
	}
	for i := range r.Inbox {
		r.Inbox[i].Boot = boot
	}
}

// check says why a row cannot be what this package has written.
func (r *Row) check(key string) error {
	if r.Format > Format {
		return fmt.Errorf("format %d, and this program knows %d", r.Format, Format)
	}
	if r.Format < 1 || r.Caller == "" || len(key) < 64 || r.Scope().Family() != key[:64] {
		return errors.New("it is not the row of its caller")
	}
	if len(r.Timers) > MaxTimers || len(r.Inbox) > MaxInbox {
		return errors.New("it is too long")
	}
	known := map[int64]bool{}
	for i := range r.Timers {
		x := &r.Timers[i]
		if x.N < 1 || x.N > r.Next || known[x.N] || x.ID < 0 || x.Delay < int(MinDelay/time.Second) || x.Delay > int(MaxDelay/time.Second) || x.Left < Forever || x.Left == 0 || x.Fires < 0 || !sound(x.Message, x.Skill) {
			return fmt.Errorf("timer %d makes no sense", x.N)
		}
		known[x.N] = true
	}
	for i := range r.Inbox {
		e := &r.Inbox[i]
		if e.N < 1 || e.N > r.Next || known[e.N] || e.Count < 1 || e.Missed < 0 || !sound(e.Message, e.Skill) {
			return fmt.Errorf("entry %d makes no sense", e.N)
		}
		known[e.N] = true
	}
	return nil
}

func sound(message, skill string) bool {
	return message != "" && skill != "" && len(message) <= utf8.UTFMax*MaxMessage && utf8.RuneCountInString(message) <= MaxMessage
}

// Turn fires x if it is due: late says by how much it is if it is not durable.
// It reports whether anything has changed.
func (r *Row) Turn(x *Timer, late time.Duration, wall time.Time) bool {
	if x.Durable {
		late = wall.Sub(x.Due)
		if -late > x.Period() { // the clock was put back: it is not waited for what was today already
			x.Due = wall.Add(x.Period())
			return true
		}
	}
	if late < 0 {
		return false
	}
	r.fire(x, wall, late)
	return true
}

// Parse reads the value of a row. What is wrong with it is an error; newer says
// that nothing may be.
func Parse(key string, value []byte) (r *Row, newer bool, err error) {
	r = &Row{}
	if err = json.Unmarshal(value, r); err == nil {
		err = r.check(key)
	}
	return r, r.Format > Format, err
}
