// Package store keeps the host's state: keys with versions, in buckets. It
// knows nothing of what the keys mean. See storetest for the promises that all
// backends keep.
package store

import (
	"context"
	"errors"
	"io"
)

// A Store is a map from bucket and key to a value, shared by all processes of
// a user. It is safe for concurrent use.
type Store interface {
	// Get returns the value and its version, which is at least 1. An absent
	// key gives ErrAbsent.
	Get(ctx context.Context, bucket, key string) (value []byte, version int64, err error)

	// Put writes value if the key's version is still old, where 0 means
	// absent and Any means whatever it is, and returns the new version. A
	// different version gives ErrConflict. Versions of a key never repeat,
	// not even after Delete.
	Put(ctx context.Context, bucket, key string, value []byte, old int64) (version int64, err error)

	// Delete removes the key if its version is still old (or Any). An absent
	// key is no error if old is Any, and ErrConflict otherwise.
	Delete(ctx context.Context, bucket, key string, old int64) error

	// List returns up to n keys of bucket that start with prefix and sort
	// after after, in byte order, with their values.
	List(ctx context.Context, bucket, prefix, after string, n int) ([]Item, error)

	io.Closer
}

// An Item is one key of a List.
type Item struct {
	Key     string
	Value   []byte
	Version int64
}

// Any as the old version means: whatever it is.
const Any int64 = -1

// The errors of a Store that its callers act on.
var (
	ErrAbsent   = errors.New("no such key")
	ErrConflict = errors.New("the key has changed meanwhile")
)

// Bounds of keys and values, in bytes.
const (
	MaxKey   = 1 << 10
	MaxValue = 16 << 20
)
