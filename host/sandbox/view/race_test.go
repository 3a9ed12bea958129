//go:build race

package view

// The race detector has nothing to find in a pure function, and takes ten times
// as long: it sees a part of the world.
const sparse = 7
