// Package jsonvalue compares JSON texts by what they mean. It knows nothing of
// schemas.
package jsonvalue

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Equal reports whether a and b are the same JSON value, whatever the order
// of members and the spelling of numbers. Nothing and null are the same.
func Equal(a, b json.RawMessage) bool {
	x, okX := decode(a)
	y, okY := decode(b)
	return okX && okY && same(x, y)
}

func decode(b json.RawMessage) (v any, ok bool) {
	if len(b) == 0 {
		return nil, true
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, same)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		x, errX := a.Float64()
		y, errY := b.Float64()
		return errX == nil && errY == nil && x == y
	}
	return a == b
}
