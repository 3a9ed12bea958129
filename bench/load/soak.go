package load

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Soak says how long a server is kept busy. It ends when both counts are
// reached, or when the time is over.
type Soak struct {
	Calls, Sessions int64 // sessions are opened, used once and deleted
	For             time.Duration
	Every           time.Duration // between samples
	Rest            time.Duration // before the first and the last: what is put aside for the next call is given back
	Debug           string        // the address of the server's goroutine profile, or empty
}

// A Sample is a server at one moment.
type Sample struct {
	At              time.Duration // since the start
	Calls, Sessions int64         // until now
	RSS             int64         // bytes
	Descriptors     int64
	Threads         int64
	Goroutines      int64 // 0 where it is not known
}

// Run warms the server up with a part of the work, and then does all of it.
// calls is the target of the calls, with a session of its own for each that
// is opened and deleted; it is HTTP and modern. The samples given out first
// and last are of a server that has nothing to do.
func (k Soak) Run(t Target, sample func(Sample)) (first, last Sample, err error) {
	w, err := startWeb(t)
	if err != nil {
		return first, last, err
	}
	defer func() { err = w.p.stop(err) }()
	r := &soaking{k: k, w: w, begin: time.Now()}
	warm, done := context.WithTimeout(context.Background(), k.For/4)
	defer done()
	if err := r.work(warm, max(k.Calls/20, 1), max(k.Sessions/20, 1), func(Sample) {}); err != nil {
		return first, last, err
	}
	if first, err = r.rest(); err != nil {
		return first, last, err
	}
	sample(first)
	all, done := context.WithTimeout(context.Background(), k.For-time.Since(r.begin))
	defer done()
	if err := r.work(all, k.Calls, k.Sessions, sample); err != nil {
		return first, last, err
	}
	if last, err = r.rest(); err != nil {
		return first, last, err
	}
	sample(last)
	return first, last, nil
}

// soaking is a server under load.
type soaking struct {
	k               Soak
	w               *web
	begin           time.Time
	calls, sessions atomic.Int64
}

func (r *soaking) rest() (Sample, error) {
	time.Sleep(r.k.Rest)
	return r.sample()
}

func (r *soaking) sample() (s Sample, err error) {
	pid := r.w.p.pid
	s = Sample{At: time.Since(r.begin), Calls: r.calls.Load(), Sessions: r.sessions.Load(), Descriptors: Descriptors(pid)}
	if s.RSS, err = Memory(pid, "VmRSS"); err != nil {
		return s, err
	}
	if s.Threads, err = Threads(pid); err != nil {
		return s, err
	}
	if r.k.Debug != "" {
		s.Goroutines, err = goroutines(r.k.Debug)
	}
	return s, err
}

// goroutines asks a Go program's own profile.
func goroutines(addr string) (int64, error) {
	resp, err := http.Get("http://" + addr + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	l, err := bufio.NewReader(resp.Body).ReadString('\n') // goroutine profile: total 12
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(l[strings.LastIndexByte(l, ' ')+1:len(l)-1], 10, 64)
}

// work makes so many calls and sessions, until ctx ends.
func (r *soaking) work(ctx context.Context, calls, sessions int64, sample func(Sample)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	errs := make([]error, Outstanding)
	toCall, toOpen := calls+r.calls.Load(), sessions+r.sessions.Load()
	for g := range errs {
		all.Go(func() {
			if g%4 == 0 { // sessions cost more than a call
				errs[g] = r.open(ctx, toOpen)
			} else {
				errs[g] = r.call(ctx, toCall)
			}
			if errs[g] != nil {
				stop()
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	tick := time.NewTicker(r.k.Every)
	defer tick.Stop()
	var failed error
	for {
		select {
		case <-tick.C:
			s, err := r.sample()
			if err != nil {
				failed = cmp.Or(failed, err)
				stop()
				continue
			}
			sample(s)
		case <-ended:
			return cmp.Or(append(errs, failed)...) // one is enough: the others are alike
		}
	}
}

func (r *soaking) call(ctx context.Context, until int64) error {
	c, err := dial(r.w.addr)
	if err != nil {
		return err
	}
	defer c.c.Close()
	s, err := r.w.t.open(c, r.w.addr)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		id := r.calls.Add(1)
		if id > until {
			r.calls.Add(-1)
			return nil
		}
		if err := s.call(c, int(id)); err != nil {
			return err
		}
	}
	return nil
}

func (r *soaking) open(ctx context.Context, until int64) error {
	t := r.w.t
	t.Modern, t.Session = false, true
	for ctx.Err() == nil {
		if n := r.sessions.Add(1); n > until {
			r.sessions.Add(-1)
			return nil
		}
		if err := r.life(t); err != nil {
			return err
		}
	}
	return nil
}

// life is that of a session: opened, heard, used and deleted, on connections
// of its own.
func (r *soaking) life(t Target) error {
	c, err := dial(r.w.addr)
	if err != nil {
		return err
	}
	defer c.c.Close()
	s, err := t.open(c, r.w.addr)
	if err != nil {
		return err
	}
	stream, err := dial(r.w.addr)
	if err != nil {
		return err
	}
	defer stream.c.Close()
	if err := s.hear(stream); err != nil {
		return err
	}
	if err := s.call(c, 1); err != nil {
		return err
	}
	if err := s.close(c); err != nil {
		return fmt.Errorf("session %s: %w", s.id, err)
	}
	return nil
}
