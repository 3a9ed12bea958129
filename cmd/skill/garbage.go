package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Calls are short, and make little garbage each of which little lives. What a
// collection costs is paid by the calls that are under way: how long the slowest
// take is how often there is one.
const (
	calmPercent = 400                    // GOGC, which is 16 MiB of garbage where little lives
	busyGarbage = 32 << 20               // bytes that may gather under load
	leastLive   = 4 << 20                // what GOGC counts from where less lives
	soon        = 250 * time.Millisecond // two collections within that are load
	quiet       = 2 * time.Second        // without a collection the load is over
)

// A collector tunes the garbage collector to the load: under it some more may
// gather, and when it is over the memory is given back. Where much lives, it
// changes nothing; a limit that the operator has set (GOMEMLIMIT) holds as well.
type collector struct {
	set  func(percent int)
	free func()

	mu      sync.Mutex
	last    time.Time   // when there was a collection
	timer   *time.Timer // to when the load is over
	busy    bool
	over    bool
	percent int // as set
}

// startCollector tunes until stop. What the start of the program has left is
// given back as well.
func startCollector() (stop func()) {
	c := newCollector(func(percent int) { debug.SetGCPercent(percent) }, debug.FreeOSMemory)
	c.watch()
	return c.stop
}

func newCollector(set func(percent int), free func()) *collector {
	c := &collector{set: set, free: free}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use(calmPercent)
	c.timer = time.AfterFunc(quiet, c.calm)
	return c
}

// watch tells c of the next collection.
func (c *collector) watch() {
	type witness struct{ _ [64]byte }
	runtime.AddCleanup(new(witness), func(c *collector) {
		if c.collected(live()) {
			c.watch()
		}
	}, c)
}

// live returns how many bytes the last collection has found in use.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// collected takes note of a collection, after which so much is in use, and
// reports whether to go on.
func (c *collector) collected(live uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	now := time.Now()
	c.busy = c.busy || now.Sub(c.last) < soon
	c.last = now
	if c.busy {
		c.use(max(calmPercent, int(busyGarbage*100/max(live, leastLive))))
		c.timer.Reset(quiet)
	}
	return true
}

// calm gives memory back, if the load is over.
func (c *collector) calm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	if left := quiet - time.Since(c.last); left > 0 {
		c.timer.Reset(left)
		return
	}
	c.busy = false
	c.use(calmPercent)
	c.free()
	c.last = time.Time{} // this one does not count
}

func (c *collector) use(percent int) {
	if c.percent != percent { // it stops the world
		c.percent = percent
		c.set(percent)
	}
}

func (c *collector) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.timer.Stop()
}
