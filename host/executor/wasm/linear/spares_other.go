//go:build !linux

package linear

// Spares keeps nothing on this platform: linear memory is in the heap of Go.
type Spares struct{}

func (*Spares) take(limit uint64) block { return &slice{limit: limit} }
func (*Spares) give(block)              {}

// Close does nothing.
func (*Spares) Close() error { return nil }
