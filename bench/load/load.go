// Package load drives MCP servers over stdio and streamable HTTP and measures
// them from outside. It knows nothing of how a server is built.
package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Target is a server and the call that is made to it.
type Target struct {
	Name string
	Args []string // the command; "{addr}" is replaced by the address an HTTP server is to listen on
	Env  []string // beside the environment's own
	Tool string
	Call string // the arguments, JSON
	Want string // what an answer has to contain

	Pause   time.Duration // before each of the calls that are made one at a time
	HTTP    bool          // else stdio
	Modern  bool          // revision 2026-07-28, else the handshake of 2025-11-25
	Session bool          // of HTTP that is not modern: keep a session, else none
}

// Figures are what one round measured.
type Figures struct {
	Start    time.Duration // from exec to the first tools/list answer
	StartRSS int64         // bytes, after the first tools/list
	IdleRSS  int64         // bytes, IdleAfter later, before the first call
	LoadRSS  int64         // bytes, the most there was
	Single   Rate          // one call at a time
	Full     Rate          // Outstanding calls at a time
}

// A Rate is how fast calls were answered.
type Rate struct {
	P50, P99 time.Duration
	Calls    float64       // per second
	CPU      time.Duration // of the server, per call; 0 where it is not known
}

// Outstanding is how many calls are under way at a time for Full.
const Outstanding = 32

// IdleAfter is how long a server is left alone before its idle memory is read:
// it may have work to do in the background.
const IdleAfter = 3 * time.Second

// A server is one under measurement.
type server interface {
	list() ([]byte, error)               // the answer to tools/list, after a handshake where there is one
	single(id int) error                 // one call
	full(n int) ([]time.Duration, error) // n calls, Outstanding at a time
	process() *process
}

// A process is a server's.
type process struct {
	pid  int
	end  func() error // asks it to end, and waits
	said *said
}

// stop ends a server that was used until err, which may be nil, and returns
// what there is to report.
func (p *process) stop(err error) error { return p.said.of(cmp.Or(err, p.end())) }

func (t Target) start() (server, error) {
	if t.HTTP {
		return startWeb(t)
	}
	return startPipe(t)
}

// Measure starts t, measures it, and stops it.
func Measure(t Target, single, full int) (f Figures, err error) {
	begin := time.Now()
	s, err := t.start()
	if err != nil {
		return f, err
	}
	defer func() { err = s.process().stop(err) }()
	if _, err := s.list(); err != nil {
		return f, err
	}
	f.Start = time.Since(begin)
	if f.StartRSS, err = Memory(s.process().pid, "VmRSS"); err != nil {
		return f, err
	}
	time.Sleep(IdleAfter)
	if f.IdleRSS, err = Memory(s.process().pid, "VmRSS"); err != nil {
		return f, err
	}
	for range min(200, single) { // warm
		time.Sleep(t.Pause)
		if err := s.single(1); err != nil {
			return f, err
		}
	}
	if f.Single, err = measure(s.process().pid, single, func() ([]time.Duration, error) {
		took := make([]time.Duration, single)
		for i := range took {
			time.Sleep(t.Pause)
			at := time.Now()
			if err := s.single(i); err != nil {
				return nil, err
			}
			took[i] = time.Since(at)
		}
		return took, nil
	}); err != nil {
		return f, err
	}
	if f.Full, err = measure(s.process().pid, full, func() ([]time.Duration, error) { return s.full(full) }); err != nil {
		return f, err
	}
	f.LoadRSS, err = Memory(s.process().pid, "VmHWM")
	return f, err
}

// measure times n calls.
func measure(pid, n int, calls func() ([]time.Duration, error)) (r Rate, err error) {
	before, begin := CPU(pid), time.Now()
	took, err := calls()
	if err != nil {
		return r, err
	}
	r.Calls = float64(n) / time.Since(begin).Seconds()
	r.CPU = (CPU(pid) - before) / time.Duration(n)
	slices.Sort(took)
	r.P50, r.P99 = took[len(took)/2], took[len(took)*99/100]
	return r, nil
}

// Listing starts t, asks for its tools n times and stops it. It returns how
// long the median answer took, how many tools were in it and how many bytes.
func Listing(t Target, n int) (p50 time.Duration, tools, size int, err error) {
	s, err := t.start()
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = s.process().stop(err) }()
	took := make([]time.Duration, n)
	if _, err := s.list(); err != nil { // the handshake is not measured
		return 0, 0, 0, err
	}
	for i := range took {
		begin := time.Now()
		b, err := s.list()
		took[i] = time.Since(begin)
		if err != nil {
			return 0, 0, 0, err
		}
		if strings.Contains(string(b), `"nextCursor":"`) {
			return 0, 0, 0, fmt.Errorf("%s: the list has a second page", t.Name)
		}
		tools, size = strings.Count(string(b), `"inputSchema":`), len(b)
	}
	slices.Sort(took)
	return took[n/2], tools, size, nil
}
