package store

import (
	"github.com/skillhost/skill/sdk"
)

// Check refuses keys and values that no backend takes. Backends call it first,
// so that all have the same bounds.
func Check(bucket, key string, value []byte) error {
	switch {
	case bucket == "" || key == "":
		return &sdk.Error{Kind: sdk.Invalid, Op: "store", What: "a bucket or key is empty"}
	case len(bucket) > MaxKey || len(key) > MaxKey:
		return &sdk.Error{Kind: sdk.Limit, Op: "store", What: "a bucket or key is over 1 KiB"}
	case len(value) > MaxValue:
		return &sdk.Error{Kind: sdk.Limit, Op: "store", What: "a value is over 16 MiB"}
	}
	return nil
}

// Closed is the error of a Store after Close.
func Closed() error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: "store", What: "the store is closed"}
}
