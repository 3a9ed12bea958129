package timer

import "time"

// A Clock tells the time. Tests bring one of their own.
type Clock interface {
	// Now is what the machine takes for the time. It may jump.
	Now() time.Time

	// Elapsed only grows, and no faster than time goes by.
	Elapsed() time.Duration

	// After returns a channel that gets a value once d has gone by, by Elapsed.
	After(d time.Duration) <-chan time.Time
}

// machine is the Clock of the machine, since a moment.
type machine struct{ began time.Time }

func (m machine) Now() time.Time { return time.Now().Round(0) } // without what makes differences monotonic

func (m machine) Elapsed() time.Duration { return time.Since(m.began) }

func (m machine) After(d time.Duration) <-chan time.Time { return time.After(d) }
