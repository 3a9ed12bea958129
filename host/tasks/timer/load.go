package timer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/tasks/timer/row"
	"github.com/skillhost/skill/sdk"
)

// Buckets: rows by key, and what could not be read of them.
const (
	rowBucket     = "timers"
	damagedBucket = "timers.damaged"
)

// load reads a row; it is nil if there is none. One that cannot be read is put
// aside, so that the next one begins anew.
func (t *Timers) load(ctx context.Context, key string) (*row.Row, int64, error) {
	value, version, err := t.o.Store.Get(ctx, rowBucket, key)
	switch {
	case errors.Is(err, store.ErrAbsent):
		return nil, 0, t.said(key)
	case err != nil:
		return nil, 0, unavailable(err)
	}
	r, err := t.decode(ctx, key, value, version)
	if err != nil {
		_ = t.said(key)
	}
	return r, version, err
}

// decode is parse for who looks after the row.
func (t *Timers) decode(ctx context.Context, key string, value []byte, version int64) (*row.Row, error) {
	r, newer, err := row.Parse(key, value)
	switch {
	case err == nil:
		return r, nil
	case newer:
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "timer", What: "the callbacks of this session were written by a newer version of the host", Err: err, Hint: "use that version"}
	}
	return nil, t.aside(ctx, key, value, version, err)
}

// aside keeps a value that is no row where nobody stumbles over it.
func (t *Timers) aside(ctx context.Context, key string, value []byte, version int64, why error) error {
	told := &sdk.Error{Kind: sdk.Unavailable, Op: "timer", What: "the callbacks of this session could not be read, and are gone: their record was damaged",
		Err: why, Hint: "the record is kept aside for the operator; set the callbacks again"}
	at := fmt.Sprintf("%s.%d@%d", key, version, t.o.Clock.Now().Unix())
	_, err := t.o.Store.Put(ctx, damagedBucket, at, value, store.Any)
	if err != nil {
		return unavailable(err)
	}
	t.say(key, told) // before there is no row any more
	err = t.o.Store.Delete(ctx, rowBucket, key, version)
	if err != nil {
		_ = t.said(key)
	}
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return unavailable(err)
	}
	t.o.Log.Warn("the callbacks of a session could not be read and were put aside", "bucket", damagedBucket, "key", at, "err", why)
	return told
}

// say keeps word of a row that was put aside for whose it was.
func (t *Timers) say(key string, what error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.unsaid) < maxDamaged {
		t.unsaid[key] = what
	}
}

// said returns what has become of a row, once.
func (t *Timers) said(key string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.unsaid[key]
	delete(t.unsaid, key)
	return err
}

// save writes a row, or removes one that is empty, if its version is still old.
// The new version is 0 if there is no row.
func (t *Timers) save(ctx context.Context, key string, r *row.Row, old int64) (version int64, err error) {
	if r.Empty() {
		if old == 0 {
			return 0, nil
		}
		err = t.o.Store.Delete(ctx, rowBucket, key, old)
	} else {
		r.Format, r.Changed = row.Format, t.o.Clock.Now()
		var value []byte
		if value, err = json.Marshal(r); err != nil {
			return 0, err
		}
		version, err = t.o.Store.Put(ctx, rowBucket, key, value, old)
	}
	if errors.Is(err, store.ErrConflict) {
		return 0, store.ErrConflict
	}
	return version, unavailable(err)
}
