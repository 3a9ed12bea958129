package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// usageBucket holds, by bucket, how much each space takes up. It is not itself
// the bucket of any space.
const usageBucket = "kv.usage"

// recountCost is what a guest pays, of Budget, for making the host count all
// its keys, which reads every value.
const recountCost = 200

// A usage is how much a space takes up, or a change of it.
type usage struct {
	Keys  int64 `json:"keys"`
	Bytes int64 `json:"bytes"` // of keys and values
}

func (u usage) plus(v usage) usage  { return usage{u.Keys + v.Keys, u.Bytes + v.Bytes} }
func (u usage) minus(v usage) usage { return usage{u.Keys - v.Keys, u.Bytes - v.Bytes} }

// growth is the part of a change that needs room.
func (u usage) growth() usage { return usage{max(u.Keys, 0), max(u.Bytes, 0)} }

func (u usage) over() bool { return u.Keys > quotaKeys || u.Bytes > quotaBytes }

// lock lets one writer of this process at a time change s, so that only other
// processes can come between. Unrelated spaces share a lock at times.
func (t *Table) lock(ctx context.Context, s space) (unlock func(), err error) {
	h := fnv.New32a()
	h.Write([]byte(s.bucket))
	l := t.locks[h.Sum32()%uint32(len(t.locks))]
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}

// reserve adds change to what s takes up, and fails with kind Limit if it
// grows over the quota. The count is kept beside the keys and not together
// with them, so that it can be too high after a crash: before anything is
// refused it is made again from the keys themselves.
func (j *job) reserve(ctx context.Context, s space, change usage) error {
	if change == (usage{}) {
		return nil
	}
	grows := change.growth() != (usage{})
	for range maxConflicts {
		next, version, known, err := j.usage(ctx, s)
		if err != nil {
			return err
		}
		if next = next.plus(change); !known || grows && next.over() {
			if next, err = j.count(ctx, s); err != nil {
				return err
			}
			if grows { // what shrinks has happened already
				next = next.plus(change)
			}
		}
		if grows && next.over() {
			return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the skill's state would take up %d keys and %d bytes", next.Keys, next.Bytes),
				Hint: fmt.Sprintf("at most %d keys and %d bytes", quotaKeys, quotaBytes)}
		}
		value, err := json.Marshal(next.growth()) // never less than nothing
		if err != nil {
			return err
		}
		_, err = j.table.deps.Store.Put(ctx, usageBucket, s.bucket, value, version)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return storeError(ctx, err)
		}
	}
	return busy()
}

// usage returns what s takes up as far as it was kept count of, which is known
// unless the record is damaged.
func (j *job) usage(ctx context.Context, s space) (u usage, version int64, known bool, err error) {
	value, version, err := j.table.deps.Store.Get(ctx, usageBucket, s.bucket)
	if errors.Is(err, store.ErrAbsent) {
		return usage{}, 0, true, nil
	}
	if err != nil {
		return usage{}, 0, false, storeError(ctx, err)
	}
	known = json.Unmarshal(value, &u) == nil
	return u, version, known, nil
}

// count adds up the keys of s, and charges the call for it.
func (j *job) count(ctx context.Context, s space) (usage, error) {
	if err := j.charge(recountCost); err != nil {
		return usage{}, err
	}
	var u usage
	err := j.walk(ctx, s, "", "", func(it store.Item) bool {
		u = u.plus(usage{Keys: 1, Bytes: int64(len(it.Key) + len(it.Value))})
		return true
	})
	return u, err
}
