//go:build race

package native

// raced: the race detector's shadow counts as memory, of which it is too much.
const raced = true
