// Package memory is a store that forgets: for tests, and for hosts that must
// leave nothing behind. It is not shared between processes.
package memory

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/skillhost/skill/host/store"
)

// A Store is a store.Store in memory.
type Store struct {
	mu      sync.Mutex
	buckets map[string]map[string]item
	version int64
	closed  bool
}

type item struct {
	value   []byte
	version int64
}

var _ store.Store = (*Store)(nil)

// New returns an empty Store.
func New() *Store { return &Store{buckets: map[string]map[string]item{}} }

// lock locks s, unless it is closed or ctx is done.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return store.Closed()
	}
	return nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, bucket, key string) ([]byte, int64, error) {
	if err := store.Check(bucket, key, nil); err != nil {
		return nil, 0, err
	}
	if err := s.lock(ctx); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	i, ok := s.buckets[bucket][key]
	if !ok {
		return nil, 0, store.ErrAbsent
	}
	return bytes.Clone(i.value), i.version, nil
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, bucket, key string, value []byte, old int64) (int64, error) {
	if err := store.Check(bucket, key, value); err != nil {
		return 0, err
	}
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if old != store.Any && s.buckets[bucket][key].version != old {
		return 0, store.ErrConflict
	}
	if s.buckets[bucket] == nil {
		s.buckets[bucket] = map[string]item{}
	}
	s.version++
	s.buckets[bucket][key] = item{append([]byte{}, value...), s.version}
	return s.version, nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, bucket, key string, old int64) error {
	if err := store.Check(bucket, key, nil); err != nil {
		return err
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	i, ok := s.buckets[bucket][key]
	if old != store.Any && (!ok || i.version != old) {
		return store.ErrConflict
	}
	delete(s.buckets[bucket], key)
	return nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, bucket, prefix, after string, n int) ([]store.Item, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var keys []string
	for k := range s.buckets[bucket] {
		if strings.HasPrefix(k, prefix) && k > after {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var items []store.Item
	for _, k := range keys[:min(max(n, 0), len(keys))] {
		i := s.buckets[bucket][k]
		items = append(items, store.Item{Key: k, Value: bytes.Clone(i.value), Version: i.version})
	}
	return items, nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
