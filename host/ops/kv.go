package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// Bounds of a skill's state. The quotas hold per skill and scope.
const (
	maxKey       = 512      // bytes of a key
	maxValue     = 1 << 20  // bytes of a value
	quotaKeys    = 1000     // keys
	quotaBytes   = 16 << 20 // bytes of keys and values together
	listDefault  = 100      // keys of a list that does not say how many
	listBytes    = 4 << 20  // of values in one list
	listPage     = 16       // keys asked of the store at once: at most 16 MiB
	maxConflicts = 32       // before a busy key is given up
)

type kvMessage struct {
	header
	Key     string `json:"key"`
	Scope   string `json:"scope"`
	Version *int64 `json:"version"`
}

// A space is where a skill keeps its keys: nobody else's ends there.
type space struct{ bucket string }

// space returns the place of this skill's keys for the scope a request names.
// Its parts are hashed with their lengths, so that no choice of names, not
// even with separators in them, leads to another skill's or caller's place.
func (j *job) space(scope string) (space, error) {
	parts := []string{"workspace", j.Skill, j.Scope.Caller, j.Scope.Workspace}
	switch scope {
	case "", "workspace":
	case "caller":
		parts = []string{"caller", j.Skill, j.Scope.Caller}
	case "session":
		if j.Scope.Session == "" {
			return space{}, invalid(`scope "session"`, "this call has no session")
		}
		parts = []string{"session", j.Skill, j.Scope.Caller, j.Scope.Session}
	default:
		return space{}, invalid(fmt.Sprintf("scope %.64q", scope), `want "session", "workspace" or "caller"`)
	}
	if j.Skill == "" || j.Scope.Caller == "" { // nobody's keys would be everybody's
		return space{}, &sdk.Error{Kind: sdk.Internal, What: "state without an owner"}
	}
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return space{"kv/" + parts[0] + "/" + hex.EncodeToString(h.Sum(nil))}, nil
}

// begin reads a request and finds its place.
func (m *kvMessage) begin(j *job, f sdk.Frame, blobs int) (space, error) {
	if err := decode(f, m, blobs); err != nil {
		return space{}, err
	}
	if m.Key == "" || len(m.Key) > maxKey {
		return space{}, invalid(fmt.Sprintf("key of %d bytes", len(m.Key)), fmt.Sprintf("want 1 to %d", maxKey))
	}
	if m.Version != nil && *m.Version < 0 {
		return space{}, invalid("version", "want 0 for a key that must be absent, or a version that kv.get gave")
	}
	return j.space(m.Scope)
}

func kvGet(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m kvMessage
	s, err := m.begin(j, f, 0)
	if err != nil {
		return nil, err
	}
	if m.Version != nil {
		return nil, invalid("version", "kv.get takes none")
	}
	value, version, err := j.table.deps.Store.Get(ctx, s.bucket, m.Key)
	if errors.Is(err, store.ErrAbsent) {
		return reply(struct {
			Found bool `json:"found"`
		}{})
	}
	if err != nil {
		return nil, storeError(ctx, err)
	}
	return reply(struct {
		Found   bool  `json:"found"`
		Version int64 `json:"version"`
	}{true, version}, value)
}

// conflict is the reply to a write that named another version than the key's,
// which is 0 if it is absent.
func conflict(version int64) ([]byte, error) {
	return reply(struct {
		Conflict bool  `json:"conflict"`
		Version  int64 `json:"version"`
	}{true, version})
}

func kvPut(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m kvMessage
	s, err := m.begin(j, f, 1)
	if err != nil {
		return nil, err
	}
	if len(f.Blobs) != 1 {
		return nil, invalid("no value", "the value is blob 0, which may be empty")
	}
	value := f.Blobs[0]
	if len(value) > maxValue {
		return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("a value of %d bytes", len(value)), Hint: fmt.Sprintf("at most %d", maxValue)}
	}
	unlock, err := j.table.lock(ctx, s)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for range maxConflicts {
		old, version, err := j.current(ctx, s, m.Key)
		if err != nil {
			return nil, err
		}
		if m.Version != nil && *m.Version != version {
			return conflict(version)
		}
		after := usage{Keys: 1, Bytes: int64(len(m.Key) + len(value))}
		grown := after.minus(old)
		// What grows is reserved before, what shrinks is given back after: a
		// crash in between counts too much, which the next recount puts right.
		if err := j.reserve(ctx, s, grown.growth()); err != nil {
			return nil, err
		}
		version, err = j.table.deps.Store.Put(ctx, s.bucket, m.Key, value, version)
		if errors.Is(err, store.ErrConflict) { // another process
			if err := j.reserve(ctx, s, usage{}.minus(grown.growth())); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, storeError(ctx, err)
		}
		if err := j.reserve(ctx, s, grown.minus(grown.growth())); err != nil {
			return nil, err
		}
		return reply(struct {
			Version int64 `json:"version"`
		}{version})
	}
	return nil, busy()
}

func kvDelete(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m kvMessage
	s, err := m.begin(j, f, 0)
	if err != nil {
		return nil, err
	}
	unlock, err := j.table.lock(ctx, s)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for range maxConflicts {
		old, version, err := j.current(ctx, s, m.Key)
		if err != nil {
			return nil, err
		}
		if m.Version != nil && *m.Version != version {
			return conflict(version)
		}
		if version != 0 {
			err = j.table.deps.Store.Delete(ctx, s.bucket, m.Key, version)
		}
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, storeError(ctx, err)
		}
		if err := j.reserve(ctx, s, usage{}.minus(old)); err != nil {
			return nil, err
		}
		return reply(struct {
			Deleted bool `json:"deleted"`
		}{version != 0})
	}
	return nil, busy()
}

// current returns what a key takes up and its version, both zero if it is absent.
func (j *job) current(ctx context.Context, s space, key string) (usage, int64, error) {
	value, version, err := j.table.deps.Store.Get(ctx, s.bucket, key)
	if errors.Is(err, store.ErrAbsent) {
		return usage{}, 0, nil
	}
	if err != nil {
		return usage{}, 0, storeError(ctx, err)
	}
	return usage{Keys: 1, Bytes: int64(len(key) + len(value))}, version, nil
}

type kvItem struct {
	Key     string `json:"key"`
	Version int64  `json:"version"`
	Size    int    `json:"size"`
	Blob    *int   `json:"blob,omitempty"`
}

func kvList(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		Prefix string `json:"prefix"`
		After  string `json:"after"`
		Scope  string `json:"scope"`
		Limit  *int   `json:"limit"`
		Values bool   `json:"values"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	s, err := j.space(m.Scope)
	if err != nil {
		return nil, err
	}
	limit := listDefault
	if m.Limit != nil {
		limit = *m.Limit
	}
	if limit < 1 || limit > quotaKeys {
		return nil, invalid("limit", fmt.Sprintf("want 1 to %d", quotaKeys))
	}
	if len(m.Prefix) > maxKey || len(m.After) > maxKey {
		return nil, invalid("prefix or after", fmt.Sprintf("want at most %d bytes", maxKey))
	}
	out := struct {
		Items []kvItem `json:"items"`
		More  bool     `json:"more"`
	}{Items: []kvItem{}}
	var blobs [][]byte
	room := listBytes
	if !m.Values {
		room = math.MaxInt
	}
	err = j.walk(ctx, s, m.Prefix, m.After, func(it store.Item) bool {
		if len(out.Items) == limit || len(out.Items) > 0 && len(it.Value) > room {
			out.More = true
			return false
		}
		item := kvItem{Key: it.Key, Version: it.Version, Size: len(it.Value)}
		if m.Values {
			n := len(blobs)
			item.Blob, blobs = &n, append(blobs, it.Value)
			room -= len(it.Value)
		}
		out.Items = append(out.Items, item)
		return true
	})
	if err != nil {
		return nil, err
	}
	return reply(out, blobs...)
}

// walk calls yield for the keys of s in order, until it returns false.
func (j *job) walk(ctx context.Context, s space, prefix, after string, yield func(store.Item) bool) error {
	for {
		items, err := j.table.deps.Store.List(ctx, s.bucket, prefix, after, listPage)
		if err != nil {
			return storeError(ctx, err)
		}
		for _, it := range items {
			if !yield(it) {
				return nil
			}
			after = it.Key
		}
		if len(items) < listPage {
			return nil
		}
	}
}

func busy() error {
	return &sdk.Error{Kind: sdk.Unavailable, What: "the key is being written by others all the time", Hint: "try again"}
}

// storeError hides what the store says, such as the path of its file. The
// hints of a store name the kind of failure and no paths.
func storeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	told := &sdk.Error{Kind: sdk.Unavailable, What: "the store does not answer"}
	var e *sdk.Error
	switch {
	case errors.As(err, &e):
		told.Hint = e.Hint
	case errors.Is(err, context.DeadlineExceeded):
		told.Hint = "it takes too long"
	case errors.Is(err, fs.ErrPermission):
		told.Hint = "the host may not use its file"
	}
	return told
}
