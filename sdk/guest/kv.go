package guest

import (
	"errors"
	"fmt"
)

// KV is what a skill keeps between calls: keys with versions, in a scope. A
// skill sees only its own keys.
type KV struct {
	c     *Call
	scope string
}

// In returns the keys of another scope: "workspace" (what KV is by default),
// "caller" or "session".
func (kv KV) In(scope string) KV { kv.scope = scope; return kv }

// AnyVersion as the old version of a Put or Delete means: whatever it is.
const AnyVersion int64 = -1

// ErrConflict says that a key has changed since its version was read. The
// reader reads again and decides anew.
var ErrConflict = errors.New("the key has changed meanwhile")

type kvRequest struct {
	Key     string `json:"key"`
	Scope   string `json:"scope,omitempty"`
	Version *int64 `json:"version,omitempty"` // that the key must have
}

type kvReply struct {
	Found    bool  `json:"found"`
	Conflict bool  `json:"conflict"`
	Version  int64 `json:"version"`
}

// Get returns the value of key and its version, or nil and 0 if it is absent.
func (kv KV) Get(key string) (value []byte, version int64, err error) {
	var reply kvReply
	blobs, err := kv.c.do("kv.get", kvRequest{Key: key, Scope: kv.scope}, &reply)
	if err != nil || !reply.Found {
		return nil, 0, err
	}
	if len(blobs) != 1 {
		return nil, 0, fmt.Errorf("kv.get: reply with %d blobs", len(blobs))
	}
	return blobs[0], reply.Version, nil
}

// Put writes value if the version of key is still old, where 0 means absent,
// and returns the new version. If it is another, the error is ErrConflict.
func (kv KV) Put(key string, value []byte, old int64) (version int64, err error) {
	return kv.write("kv.put", key, old, value)
}

// Delete removes key if its version is still old. If it is another, the error
// is ErrConflict.
func (kv KV) Delete(key string, old int64) error {
	_, err := kv.write("kv.delete", key, old)
	return err
}

func (kv KV) write(op, key string, old int64, blobs ...[]byte) (int64, error) {
	r := kvRequest{Key: key, Scope: kv.scope}
	if old != AnyVersion {
		r.Version = &old
	}
	var reply kvReply
	if _, err := kv.c.do(op, r, &reply, blobs...); err != nil {
		return 0, err
	}
	if reply.Conflict {
		return 0, ErrConflict
	}
	return reply.Version, nil
}

// An Item is one key of a List.
type Item struct {
	Key     string `json:"key"`
	Version int64  `json:"version"`
	Size    int64  `json:"size"` // of the value, bytes
}

// List returns up to limit keys that start with prefix and sort after after,
// in byte order. With limit 0 the host chooses how many.
func (kv KV) List(prefix, after string, limit int) ([]Item, error) {
	var reply struct {
		Items []Item `json:"items"`
	}
	_, err := kv.c.do("kv.list", struct {
		Scope  string `json:"scope,omitempty"`
		Prefix string `json:"prefix,omitempty"`
		After  string `json:"after,omitempty"`
		Limit  int    `json:"limit,omitempty"`
	}{kv.scope, prefix, after, limit}, &reply)
	return reply.Items, err
}
