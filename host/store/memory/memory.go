// Package memory keeps state in the memory of one process, for tests and for
// hosts that are to leave nothing behind. It knows nothing of what the keys
// mean, and nothing outlives Close.
package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// A Store is a store.Store without a file behind it.
type Store struct {
	mu      sync.Mutex
	buckets map[string]map[string]item
	version int64 // the last one given
	closed  bool
}

type item struct {
	value   []byte
	version int64
}

// Open returns an empty Store.
func Open() *Store { return &Store{buckets: map[string]map[string]item{}} }

// enter locks s for op unless op cannot be done at all. Whoever gets nil has
// to unlock.
func (s *Store) enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &sdk.Error{Kind: sdk.Canceled, Op: op, What: "the caller went away", Err: err}
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "the store is closed"}
	}
	return nil
}

// Get is store.Store's.
func (s *Store) Get(ctx context.Context, bucket, key string) ([]byte, int64, error) {
	if err := store.Check("memory.Get", bucket, key, nil); err != nil {
		return nil, 0, err
	}
	if err := s.enter(ctx, "memory.Get"); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	it, ok := s.buckets[bucket][key]
	if !ok {
		return nil, 0, fmt.Errorf("memory.Get: %w", store.ErrAbsent)
	}
	return slices.Clone(it.value), it.version, nil
}

// Put is store.Store's.
func (s *Store) Put(ctx context.Context, bucket, key string, value []byte, old int64) (int64, error) {
	if err := store.Check("memory.Put", bucket, key, value); err != nil {
		return 0, err
	}
	if err := s.enter(ctx, "memory.Put"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if old != store.Any && s.buckets[bucket][key].version != old {
		return 0, fmt.Errorf("memory.Put: %w", store.ErrConflict)
	}
	if s.buckets[bucket] == nil {
		s.buckets[bucket] = map[string]item{}
	}
	s.version++
	s.buckets[bucket][key] = item{append([]byte{}, value...), s.version}
	return s.version, nil
}

// Delete is store.Store's.
func (s *Store) Delete(ctx context.Context, bucket, key string, old int64) error {
	if err := store.Check("memory.Delete", bucket, key, nil); err != nil {
		return err
	}
	if err := s.enter(ctx, "memory.Delete"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	it, ok := s.buckets[bucket][key]
	if old != store.Any && (!ok || it.version != old) {
		return fmt.Errorf("memory.Delete: %w", store.ErrConflict)
	}
	delete(s.buckets[bucket], key)
	return nil
}

// List is store.Store's.
func (s *Store) List(ctx context.Context, bucket, prefix, after string, n int) ([]store.Item, error) {
	if err := s.enter(ctx, "memory.List"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var items []store.Item
	for _, key := range slices.Sorted(maps.Keys(s.buckets[bucket])) {
		if len(items) >= n {
			break
		}
		if strings.HasPrefix(key, prefix) && key > after {
			it := s.buckets[bucket][key]
			items = append(items, store.Item{Key: key, Value: slices.Clone(it.value), Version: it.version})
		}
	}
	return items, nil
}

// Close forgets everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.buckets = true, nil
	return nil
}
