package store

import (
	"fmt"

	"github.com/skillhost/skill/sdk"
)

// Check returns an error if a backend must refuse the arguments of op: kind
// sdk.Invalid for an empty bucket or key, sdk.Limit for what is over the
// bounds. All backends ask it, so that they agree.
func Check(op, bucket, key string, value []byte) error {
	switch {
	case bucket == "" || key == "":
		return &sdk.Error{Kind: sdk.Invalid, Op: op, What: "an empty bucket or key"}
	case len(bucket) > MaxKey || len(key) > MaxKey:
		return &sdk.Error{Kind: sdk.Limit, Op: op, What: fmt.Sprintf("a key of %d bytes in a bucket name of %d", len(key), len(bucket)),
			Hint: fmt.Sprintf("at most %d each", MaxKey)}
	case len(value) > MaxValue:
		return &sdk.Error{Kind: sdk.Limit, Op: op, What: fmt.Sprintf("a value of %d bytes", len(value)), Hint: fmt.Sprintf("at most %d", MaxValue)}
	}
	return nil
}
