package web

import (
	"context"
	"sync"
	"time"

	"github.com/skillhost/skill/sdk"
)

// stuck sees to work that does not end in time. Nothing stops a goroutine that
// parses what somebody has written to be hard to parse, so the process ends
// when its other calls have; the host starts another one.
type stuck struct {
	exit func()

	mu    sync.Mutex
	calls int
	yes   bool
}

// enter counts a call in, and the function that it returns counts it out.
func (s *stuck) enter() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.calls--; s.yes && s.calls == 0 {
			time.AfterFunc(farewell, s.end)
		}
	}
}

// farewell is for the result of the last call, which has to be sent.
const farewell = time.Second

// end ends the process, unless another call has begun.
func (s *stuck) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == 0 {
		s.exit()
	}
}

// run runs f. If ctx ends first, f goes on, and nobody hears of it.
func run[T any](ctx context.Context, s *stuck, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := f()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.yes = true
	s.mu.Unlock()
	var none T
	return none, &sdk.Error{Kind: sdk.Limit, What: "to make text of the page takes too long"}
}
