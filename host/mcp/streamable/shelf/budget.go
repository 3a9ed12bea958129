package shelf

import "sync"

// A Budget bounds the events that are kept.
type Budget struct {
	Each   int   // bytes of each shelf
	All    int64 // bytes of all shelves; beyond it a shelf has a sixteenth of Each, and then nothing
	Caller int64 // bytes of all shelves of one caller; 0: callers are not told apart

	mu   sync.Mutex
	kept int64
	by   map[string]int64
}

// readers is how many times as much there may be as is kept, while there are
// readers who take it.
const readers = 2

// Kept is how many bytes of events there are.
func (b *Budget) Kept() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}

// add counts n more bytes of a caller's.
func (b *Budget) add(caller string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept += int64(n)
	if b.Caller == 0 {
		return
	}
	if b.by == nil {
		b.by = map[string]int64{}
	}
	if b.by[caller] += int64(n); b.by[caller] == 0 {
		delete(b.by, caller)
	}
}

// over reports whether there is more than that many times what may be kept, of
// all callers or of one.
func (b *Budget) over(caller string, times int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept > times*b.All || b.Caller > 0 && b.by[caller] > times*b.Caller
}
