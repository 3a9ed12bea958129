package main

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Under load more garbage may gather, within a bound that does not grow with
// what lives; when it is over the memory is given back, once.
func TestCollectorFollowsTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set []int
		freed := 0
		c := newCollector(func(percent int) { set = append(set, percent) }, func() { freed++ })
		defer c.stop()
		expect := func(what string, want []int, times int) {
			t.Helper()
			synctest.Wait()
			c.mu.Lock() // set and free are called under it
			defer c.mu.Unlock()
			if !slices.Equal(set, want) || freed != times {
				t.Errorf("%s: percents %d, want %d; freed %d times, want %d", what, set, want, freed, times)
			}
			set, freed = nil, 0
		}
		expect("start", []int{calmPercent}, 0)
		time.Sleep(quiet + time.Millisecond)
		expect("after the start", nil, 1)
		for range 10 {
			time.Sleep(soon)
			c.collected(1 << 20)
		}
		time.Sleep(time.Hour)
		expect("no load", nil, 0)
		for _, live := range []uint64{1 << 20, 1 << 20, 2 << 20, 8 << 20, 1 << 30, 1 << 20} {
			time.Sleep(soon - time.Millisecond)
			c.collected(live)
		}
		time.Sleep(quiet - time.Millisecond)
		expect("load", []int{800, 400, 800}, 0)
		time.Sleep(time.Hour)
		expect("after the load", []int{calmPercent}, 1)
	})
}

// The runtime's own collections are noticed, one after the other, until stop.
func TestCollectorSeesCollections(t *testing.T) {
	c := newCollector(func(int) {}, func() {})
	seen := func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.last
	}
	c.watch()
	for range 3 {
		for before := seen(); !seen().After(before); time.Sleep(time.Millisecond) {
			runtime.GC()
		}
	}
	if live() == 0 {
		t.Error("nothing lives")
	}
	c.stop()
	if c.collected(0) {
		t.Error("it goes on")
	}
}
