package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// A record is what the store has of one session.
type record struct {
	Format  int       `json:"format"`
	Changed time.Time `json:"changed"`
	Layers  []Laid    `json:"layers"`
}

const (
	recordFormat = 1
	maxConflicts = 64 // before a busy record is given up
	maxRead      = 4096
	page         = 16 // records that are read at once: at most a few MiB
)

// bucket is where the records of a caller's sessions are; hashed, so that no
// choice of names leads to another caller's.
func (p place) bucket() string { return "layers/" + digest(p.caller) }

func (p place) key() string { return digest(p.workspace, p.session) }

func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// load reads the layers of p, and the version of the record, 0 if there is none.
func (l *Layers) load(ctx context.Context, p place) (*Stack, int64, error) {
	value, version, err := l.o.Store.Get(ctx, p.bucket(), p.key())
	switch {
	case errors.Is(err, store.ErrAbsent):
		l.remember(p, nil)
		return nil, 0, nil
	case err != nil:
		return nil, 0, unknown(err)
	}
	l.mu.RLock()
	old := l.read[p]
	l.mu.RUnlock()
	if old != nil && old.version == version {
		return old, version, nil
	}
	var r record
	if err := json.Unmarshal(value, &r); err != nil || r.Format != recordFormat {
		return nil, 0, damaged(err)
	}
	s, err := l.stack(p, r.Layers, old)
	if err != nil {
		return nil, 0, damaged(err)
	}
	if s != nil {
		s.version = version
	}
	l.remember(p, s)
	return s, version, nil
}

// remember keeps s, so that calls one after the other have the same one.
func (l *Layers) remember(p place, s *Stack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s == nil {
		delete(l.read, p)
		return
	}
	if len(l.read) >= maxRead {
		clear(l.read)
	}
	l.read[p] = s
}

// swap is change for a session that is kept in the store.
func (l *Layers) swap(ctx context.Context, p place, do func([]Laid) ([]Laid, error)) error {
	for range maxConflicts {
		old, version, err := l.load(ctx, p)
		if err != nil {
			return err
		}
		rows, err := do(old.rows())
		if err != nil {
			return err
		}
		switch {
		case len(rows) == 0 && version == 0:
			return nil
		case len(rows) == 0:
			err = l.o.Store.Delete(ctx, p.bucket(), p.key(), version)
		default:
			if version == 0 {
				if err := l.makeRoom(ctx, p); err != nil {
					return err
				}
			}
			var value []byte
			if value, err = json.Marshal(record{recordFormat, l.o.Now().UTC(), rows}); err != nil {
				return err
			}
			_, err = l.o.Store.Put(ctx, p.bucket(), p.key(), value, version)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return unknown(err)
		}
	}
	return &sdk.Error{Kind: sdk.Unavailable, What: "the session's layers are being changed by others all the time", Hint: "try again"}
}

// makeRoom removes what nobody has changed for long, and fails if the caller
// has layers over too many other sessions.
func (l *Layers) makeRoom(ctx context.Context, p place) error {
	old := l.o.Now().Add(-forgotten)
	n, after := 0, ""
	for {
		items, err := l.o.Store.List(ctx, p.bucket(), "", after, page)
		if err != nil {
			return unknown(err)
		}
		for _, it := range items {
			after = it.Key
			var r record
			if json.Unmarshal(it.Value, &r) == nil && r.Format == recordFormat && r.Changed.Before(old) {
				if err := l.o.Store.Delete(ctx, p.bucket(), it.Key, it.Version); err != nil && !errors.Is(err, store.ErrConflict) {
					return unknown(err)
				}
				continue
			}
			if n++; n >= maxScopes {
				return tooMany()
			}
		}
		if len(items) < page {
			return nil
		}
	}
}

// unknown is the error where the store does not say what lies over a session.
func unknown(err error) error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: "session", What: "it cannot be told what skills have laid over this session", Err: err, Hint: "see skill doctor"}
}

func damaged(err error) error {
	if err == nil {
		err = errors.New("it has an unknown format")
	}
	return &sdk.Error{Kind: sdk.Unavailable, Op: "session", What: "the record of what skills have laid over this session is damaged, so no call of it may run", Err: err,
		Hint: "use another task_id"}
}
