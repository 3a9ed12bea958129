package bound

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates bound how often each of many may come. Those for whom there is no room
// share one limit. The zero Rates bounds nobody.
type Rates struct {
	Rate  float64 // a second; 0: any
	Burst int     // of them at once

	mu    sync.Mutex
	by    map[string]*rate.Limiter
	swept time.Time
}

const (
	maxRates   = 10000       // that are remembered
	sweepEvery = time.Second // how often it is looked who may be forgotten
)

// crowd is the name of those who share a limit, and nobody's own.
const crowd = ""

// Take counts n more of who, unless that is too many: then wait is how long to
// wait, or 0 if so many may never come at once.
func (r *Rates) Take(who string, n int) (wait time.Duration, ok bool) {
	if r.Rate <= 0 || n == 0 {
		return 0, true
	}
	turn := r.limiter(who).ReserveN(time.Now(), n)
	if !turn.OK() {
		return 0, false
	}
	if wait = turn.Delay(); wait > 0 {
		turn.Cancel()
	}
	return wait, wait == 0
}

// Spent is how long who has to wait before one more may come. It counts none.
func (r *Rates) Spent(who string) time.Duration {
	if r.Rate <= 0 {
		return 0
	}
	r.mu.Lock()
	l := r.by[who]
	if l == nil && len(r.by) >= maxRates {
		l = r.by[crowd]
	}
	r.mu.Unlock()
	if l == nil {
		return 0
	}
	missing := 1 - l.Tokens()
	if missing <= 0 {
		return 0
	}
	return max(time.Millisecond, time.Duration(missing/r.Rate*float64(time.Second)))
}

// Len is how many are remembered.
func (r *Rates) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.by)
}

func (r *Rates) limiter(who string) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.by[who]
	if l == nil && len(r.by) >= maxRates {
		r.sweep()
		if len(r.by) >= maxRates {
			who = crowd
			l = r.by[crowd]
		}
	}
	if l == nil {
		if r.by == nil {
			r.by = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(r.Rate), r.Burst)
		r.by[who] = l
	}
	return l
}

// sweep forgets those whose limits are as good as new. The caller holds mu.
func (r *Rates) sweep() {
	now := time.Now()
	if now.Sub(r.swept) < sweepEvery {
		return
	}
	r.swept = now
	for who, l := range r.by {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(r.by, who)
		}
	}
}
