package timer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skillhost/skill/host/tasks/timer/row"
	"github.com/skillhost/skill/sdk"
)

func (s *Spec) check() error {
	invalid := func(what, hint string) error { return &sdk.Error{Kind: sdk.Invalid, What: what, Hint: hint} }
	s.Message = strings.ToValidUTF8(s.Message, "\ufffd")
	n := utf8.RuneCountInString(s.Message)
	switch {
	case strings.TrimSpace(s.Message) == "":
		return invalid("message", "want what is to come back")
	case n > MaxMessage:
		return invalid(fmt.Sprintf("a message of %d characters", n), fmt.Sprintf("at most %d", MaxMessage))
	case s.Delay < MinDelay || s.Delay > MaxDelay || s.Delay%time.Second != 0:
		return invalid(fmt.Sprintf("a delay of %v", s.Delay), fmt.Sprintf("want %d to %d seconds", MinDelay/time.Second, MaxDelay/time.Second))
	case s.Repeat != Forever && (s.Repeat < 1 || s.Repeat > MaxRepeat):
		return invalid(fmt.Sprintf("repeat %d", s.Repeat), fmt.Sprintf("want 1 to %d, or %d for ever", MaxRepeat, Forever))
	}
	return nil
}

func (o Owner) check() error {
	if o.Caller == "" || o.Skill == "" { // nobody's would be everybody's
		return &sdk.Error{Kind: sdk.Internal, Op: "timer", What: "a timer without an owner"}
	}
	return nil
}

// Set sets a timer. The error has kind Limit if there are too many.
func (t *Timers) Set(ctx context.Context, o Owner, s Spec) (Timer, error) {
	if err := cmp.Or(o.check(), s.check()); err != nil {
		return Timer{}, err
	}
	boot, err := t.o.Boots.Self()
	if err != nil {
		return Timer{}, err
	}
	if err := t.open(); err != nil {
		return Timer{}, err
	}
	if err := t.room(ctx, o.scope()); err != nil {
		return Timer{}, err
	}
	b := t.hold(o.scope().Key())
	defer t.release(b)
	if err := t.settle(ctx, b, o.scope(), 0); err != nil {
		return Timer{}, err
	}
	var set row.Timer
	err = t.change(ctx, b, func(r *row.Row) error {
		id, ok := freeSlot(t.taken(o, b, r), s.Slot)
		if !ok {
			return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("all callback slots full (max %d)", Slots), Hint: "cancel one first"}
		}
		r.Caller, r.Workspace, r.Session = o.Caller, o.Workspace, o.Session
		set = row.Timer{N: r.Number(), ID: id, Skill: o.Skill, Boot: boot, Message: s.Message, Delay: int(s.Delay / time.Second),
			Left: s.Repeat, Durable: s.Durable, Due: t.o.Clock.Now().Add(s.Delay)}
		r.Timers = append(r.Timers, set)
		return nil
	})
	if err != nil {
		return Timer{}, err
	}
	t.run(running)
	return t.tell(b, &set), nil
}

// open refuses what comes after the end.
func (t *Timers) open() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life == closed {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "timer", What: "the host is shutting down"}
	}
	return nil
}

// taken are the slots of a skill in a session: those in r, the row of b, and in
// what the session has taken over.
func (t *Timers) taken(o Owner, b *box, r *row.Row) map[int]bool {
	taken := map[int]bool{}
	note := func(r *row.Row) {
		for i := range r.Timers {
			if r.Timers[i].Skill == o.Skill {
				taken[r.Timers[i].ID] = true
			}
		}
	}
	note(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.boxes {
		if other != b && other.row.Scope() == o.scope() {
			note(other.row)
		}
	}
	return taken
}

// freeSlot returns the slot that is wished for, or the first, if it is free.
func freeSlot(taken map[int]bool, wished *int) (int, bool) {
	if len(taken) >= Slots {
		return 0, false
	}
	if wished != nil && *wished >= 0 && *wished < Slots && !taken[*wished] {
		return *wished, true
	}
	for id := range Slots {
		if !taken[id] {
			return id, true
		}
	}
	return 0, false
}

// room refuses one more timer to a caller that has very many in a workspace: a
// client can make up any number of sessions.
func (t *Timers) room(ctx context.Context, s row.Scope) error {
	n := 0
	for after := ""; ; {
		items, err := t.o.Store.List(ctx, rowBucket, s.Family()+":", after, rowPage)
		if err != nil {
			return unavailable(err)
		}
		for _, it := range items {
			after = it.Key
			if r, _, err := row.Parse(it.Key, it.Value); err == nil {
				n += max(1, len(r.Timers))
			}
		}
		if n >= maxFamily {
			return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("%d callbacks in this workspace, in all sessions together", n), Hint: "cancel some of them"}
		}
		if len(items) < rowPage {
			return nil
		}
	}
}

// rowPage is how many rows are asked of the store at once.
const rowPage = 64

// List returns the timers of a skill in a session by their ids, and those that
// fire no more while something of them is in the inbox.
func (t *Timers) List(ctx context.Context, o Owner) ([]Timer, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	all, err := t.boxesOf(ctx, o.scope())
	defer all.release(t)
	if err != nil {
		return nil, err
	}
	out := []Timer{}
	for _, b := range all {
		r := t.rowOf(b)
		for i := range r.Timers {
			if r.Timers[i].Skill == o.Skill {
				out = append(out, t.tell(b, &r.Timers[i]))
			}
		}
		for _, e := range r.Inbox {
			if over := !slices.ContainsFunc(r.Timers, func(x row.Timer) bool { return x.N == e.Timer }); over && e.Skill == o.Skill {
				out = append(out, t.tell(b, &row.Timer{N: e.Timer, ID: e.ID, Message: e.Message, Delivered: max(0, e.Fire-e.Count), Durable: e.Durable}))
			}
		}
	}
	slices.SortStableFunc(out, func(x, y Timer) int { return cmp.Compare(x.ID, y.ID) })
	return out, nil
}

// boxesOf returns what there is for a session as it is now, also after an error.
func (t *Timers) boxesOf(ctx context.Context, s row.Scope) (boxes, error) {
	own := t.hold(s.Key())
	defer t.release(own)
	if err := cmp.Or(t.come(ctx, s), t.settle(ctx, own, s, 0)); err != nil {
		return nil, err
	}
	return t.of(s), nil
}

func (t *Timers) rowOf(b *box) *row.Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	return b.row
}

// tell says how a timer is.
func (t *Timers) tell(b *box, x *row.Timer) Timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := Timer{ID: x.ID, Message: x.Message, Delay: x.Delay, Remaining: x.Left, Delivered: x.Delivered, Durable: x.Durable}
	if x.Left != 0 {
		out.NextFire = x.Due
	}
	if a, ok := b.armed[x.N]; ok && !x.Durable {
		out.NextFire = t.o.Clock.Now().Add(max(0, a.at-t.o.Clock.Elapsed()))
	}
	out.NextFire = out.NextFire.UTC().Truncate(time.Second)
	if x.Left == 0 {
		out.NextFire = time.Time{}
	}
	for i := range b.row.Inbox {
		if e := &b.row.Inbox[i]; e.Timer == x.N {
			gone := b.gone(e)
			out.Pending += e.Count - gone
			out.Delivered += gone
		}
	}
	return out
}

// Cancel ends the timer of that id, or all of the skill in the session if id is
// nil, with what of them is in the inbox. It returns the ids of what it ended;
// none, if id is nil and there were none.
func (t *Timers) Cancel(ctx context.Context, o Owner, id *int) ([]int, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	all, err := t.boxesOf(ctx, o.scope())
	defer all.release(t)
	if err != nil {
		return nil, err
	}
	ended := []int{}
	for _, b := range all {
		var here []int
		meant := func(skill string, n int) bool { return skill == o.Skill && (id == nil || *id == n) }
		err := t.change(ctx, b, func(r *row.Row) error {
			here = nil
			r.Timers = slices.DeleteFunc(r.Timers, func(x row.Timer) bool {
				if meant(x.Skill, x.ID) {
					here = append(here, x.ID)
				}
				return meant(x.Skill, x.ID)
			})
			r.Inbox = slices.DeleteFunc(r.Inbox, func(e row.Entry) bool {
				if meant(e.Skill, e.ID) {
					here = append(here, e.ID)
				}
				return meant(e.Skill, e.ID)
			})
			if here == nil {
				return errSame
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		ended = append(ended, here...)
	}
	slices.Sort(ended)
	ended = slices.Compact(ended)
	if id != nil && len(ended) == 0 {
		return nil, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no callback %d", *id), Hint: "list has those that there are"}
	}
	return ended, nil
}
