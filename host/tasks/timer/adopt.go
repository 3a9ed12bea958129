package timer

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/tasks/timer/row"
)

// scan looks through the store for what dead hosts have left: what is durable is
// taken over where a session is there for it, and the rest is removed.
func (t *Timers) scan(ctx context.Context) error {
	left := map[string]bool{}
	var errs []error
	for after := ""; ; {
		items, err := t.o.Store.List(ctx, rowBucket, "", after, rowPage)
		if err != nil {
			return unavailable(err)
		}
		for _, it := range items {
			after = it.Key
			r, err := t.decode(ctx, it.Key, it.Value, it.Version)
			if err != nil { // it is on the log, and said to whose row it was
				continue
			}
			family, err := t.leftOver(ctx, it, r)
			if err != nil {
				errs = append(errs, err)
			}
			if family != "" {
				left[family] = true
			}
		}
		if len(items) < rowPage {
			break
		}
	}
	t.mu.Lock()
	was := t.left
	t.left = left
	t.waiting.Add(int64(len(left) - len(was)))
	var heirs []row.Scope
	for family := range left {
		if s, ok := t.seen[family]; ok {
			heirs = append(heirs, s)
		}
	}
	t.mu.Unlock()
	for _, s := range heirs {
		errs = append(errs, t.adopt(ctx, s))
	}
	return errors.Join(append(errs, t.sweepDamaged(ctx))...)
}

// leftOver returns the family of a row that a session of this host may take
// over, and removes one that nobody needs.
func (t *Timers) leftOver(ctx context.Context, it store.Item, r *row.Row) (family string, err error) {
	orphan, err := t.orphan(r)
	if err != nil || !orphan {
		return "", err
	}
	old := t.o.Clock.Now().Sub(r.Changed) > keepFor
	keeps := slices.ContainsFunc(r.Timers, func(x row.Timer) bool { return x.Durable }) ||
		slices.ContainsFunc(r.Inbox, func(e row.Entry) bool { return e.Durable || r.Scope().Outlives() })
	if old || !keeps {
		err := t.o.Store.Delete(ctx, rowBucket, it.Key, it.Version)
		if errors.Is(err, store.ErrConflict) { // somebody else was faster
			return "", nil
		}
		return "", unavailable(err)
	}
	if r.Scope().Outlives() || r.Workspace != t.o.Workspace {
		return "", nil
	}
	return r.Scope().Family(), nil
}

// orphan reports whether the hosts of all that is in a row have ended.
func (t *Timers) orphan(r *row.Row) (bool, error) {
	for i := range r.Timers {
		if over, err := t.over(r.Timers[i].Boot); err != nil || !over {
			return false, err
		}
	}
	for i := range r.Inbox {
		if over, err := t.over(r.Inbox[i].Boot); err != nil || !over {
			return false, err
		}
	}
	return true, nil
}

// adopt makes what other sessions of its caller have left to nobody that of s.
func (t *Timers) adopt(ctx context.Context, s row.Scope) error {
	family := s.Family()
	t.mu.Lock()
	if t.left[family] {
		delete(t.left, family)
		t.waiting.Add(-1)
	}
	t.mu.Unlock()
	if s.Outlives() {
		return nil
	}
	var errs []error
	for after := ""; ; {
		items, err := t.o.Store.List(ctx, rowBucket, family+":", after, rowPage)
		if err != nil {
			return unavailable(err)
		}
		for _, it := range items {
			after = it.Key
			r, err := t.decode(ctx, it.Key, it.Value, it.Version)
			if err == nil && !r.Scope().Outlives() {
				err = t.takeOver(ctx, it.Key, s)
			}
			errs = append(errs, err)
		}
		if len(items) < rowPage {
			return errors.Join(errs...)
		}
	}
}

// takeOver makes a row that of s, if its hosts have ended: who writes it first
// has it.
func (t *Timers) takeOver(ctx context.Context, key string, s row.Scope) error {
	mine, err := t.o.Boots.Self()
	if err != nil {
		return err
	}
	b := t.hold(key)
	defer t.release(b)
	t.mu.Lock()
	ours := b.known && !b.row.Empty()
	t.mu.Unlock()
	if ours {
		return nil
	}
	return t.change(ctx, b, func(r *row.Row) error {
		orphan, err := t.orphan(r)
		if err != nil {
			return err
		}
		if !orphan || r.Empty() {
			return errSame
		}
		r.Inherit(s.Session, mine, func(x *row.Timer) int { return t.renumber(b, r, x, s) })
		return nil
	})
}

// renumber returns the id of a timer that comes to a session: its own, if it is
// free there, or the next that is. More than Slots may come.
func (t *Timers) renumber(b *box, r *row.Row, x *row.Timer, s row.Scope) int {
	others := r.Clone()
	others.Timers = slices.DeleteFunc(others.Timers, func(o row.Timer) bool { return o.N == x.N })
	taken := t.taken(Owner{s.Caller, s.Workspace, s.Session, x.Skill}, b, &others)
	if !taken[x.ID] {
		return x.ID
	}
	id := 0
	for taken[id] {
		id++
	}
	return id
}

// settle reads a row anew, unless that was done within the time given, if
// other hosts may have written it. What dead hosts have left in it is taken over
// or ended.
func (t *Timers) settle(ctx context.Context, b *box, s row.Scope, within time.Duration) error {
	if !s.Outlives() {
		return t.look(ctx, b, 1<<62)
	}
	if err := t.look(ctx, b, within); err != nil {
		return err
	}
	mine, err := t.o.Boots.Self()
	if err != nil {
		return err
	}
	dead := map[string]bool{}
	for _, x := range t.rowOf(b).Timers {
		if x.Boot == mine || dead[x.Boot] {
			continue
		}
		over, err := t.over(x.Boot)
		if err != nil {
			return err
		}
		if over {
			dead[x.Boot] = true
		}
	}
	if len(dead) == 0 {
		return nil
	}
	return t.change(ctx, b, func(r *row.Row) error {
		r.Timers = slices.DeleteFunc(r.Timers, func(x row.Timer) bool { return dead[x.Boot] && !x.Durable })
		for i := range r.Timers {
			if dead[r.Timers[i].Boot] {
				r.Timers[i].Boot = mine
			}
		}
		return nil
	})
}

// sweepDamaged removes what was put aside long ago.
func (t *Timers) sweepDamaged(ctx context.Context) error {
	items, err := t.o.Store.List(ctx, damagedBucket, "", "", 1000)
	if err != nil {
		return unavailable(err)
	}
	for i, it := range items {
		_, at, _ := strings.Cut(it.Key, "@")
		when, err := strconv.ParseInt(at, 10, 64)
		if old := err != nil || t.o.Clock.Now().Sub(time.Unix(when, 0)) > keepFor; !old && i >= len(items)-maxDamaged {
			continue
		}
		if err := t.o.Store.Delete(ctx, damagedBucket, it.Key, store.Any); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// maxDamaged is how many damaged rows are kept.
const maxDamaged = 64
