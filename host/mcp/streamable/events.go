package streamable

import (
	"net/http"
	"strconv"
	"time"

	"github.com/skillhost/skill/host/mcp/streamable/shelf"
	"github.com/skillhost/skill/host/mcp/wire"
)

// never is a prime that does not come.
const never = time.Duration(-1)

// retryTime is what a client is told to wait before it comes back.
const retryTime = 500 * time.Millisecond

// A reader is a connection that a stream is written to, and how.
type reader struct {
	*shelf.Reader
	settings
}

func newReader(s settings) *reader { return &reader{shelf.NewReader(), s} }

// settings say how a connection is written to.
type settings struct {
	ids    bool          // the events have ids
	prime  time.Duration // until the stream begins without an event; 0: at once; never
	primes bool          // it begins with an event that says nothing, and how to come back
	poll   time.Duration // until the client is sent away to come back later; 0: never
	modern bool          // an error that comes alone has a status of its own
	hello  string        // before all events
	begun  bool
}

// serve writes a stream to r, the client of a request, until the stream is over
// or the client is gone.
func (h *Handler) serve(v *visit, t *shelf.Stream, r *reader) {
	defer t.Detach(r.Reader)
	begin, beat, away := after(r.prime), after(h.o.Limits.KeepAlive), after(r.poll)
	defer begin.Stop()
	defer beat.Stop()
	defer away.Stop()
	if r.prime == 0 && !h.begin(v, t, r) {
		return
	}
	for {
		p := t.Take(r.Reader)
		if !h.portion(v, t, r, &p) || p.Over {
			return
		}
		if len(p.Events) > 0 {
			beat.Reset(h.o.Limits.KeepAlive)
		}
		select {
		case <-r.Bell:
		case <-begin.C:
			if !r.begun && !h.begin(v, t, r) {
				return
			}
		case <-beat.C:
			beat.Reset(h.o.Limits.KeepAlive)
			if r.begun && h.write(v, []byte(":\n\n")) != nil {
				return
			}
		case <-away.C:
			if !r.begun {
				h.begin(v, t, r)
			}
			return
		case <-v.r.Context().Done():
			return
		}
	}
}

func after(d time.Duration) *time.Timer {
	if d <= 0 {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTimer(d)
}

// portion writes what has come. It reports whether the client has taken it.
func (h *Handler) portion(v *visit, t *shelf.Stream, r *reader, p *shelf.Portion) bool {
	if p.Whole && !r.begun {
		b := wire.NewBuffer()
		b.B = append(b.B, p.Events[0].Text...)
		code := http.StatusOK
		if r.modern {
			code = status(p.Fault)
		}
		if h.writeJSON(v, code, b) != nil {
			return false // it is kept, as whatever else a client did not get
		}
		t.Wrote(r.Reader, p.Events[0].N, true)
		return true
	}
	if !r.begun && (len(p.Events) > 0 || p.Over) && !h.begin(v, t, r) {
		return false
	}
	if len(p.Events) == 0 {
		return true
	}
	var out []byte
	for i, e := range p.Events {
		id := ""
		if r.ids {
			id = t.ID(e.N)
		}
		out = appendEvent(out, id, e.Text)
		if len(out) < 64<<10 && i+1 < len(p.Events) {
			continue
		}
		if h.write(v, out) != nil {
			return false
		}
		t.Wrote(r.Reader, e.N, false)
		out = out[:0]
	}
	return true
}

// begin writes the head of a stream of events.
func (h *Handler) begin(v *visit, t *shelf.Stream, r *reader) bool {
	r.begun = true
	beginEvents(v)
	hello := r.hello
	if r.primes {
		hello += "event: prime\nid: " + t.ID(r.At) + "\nretry: " + strconv.FormatInt(retryTime.Milliseconds(), 10) + "\ndata: \n\n"
	}
	if hello == "" {
		hello = ":\n\n" // some proxies hold the head back until something follows
	}
	return h.write(v, []byte(hello)) == nil
}

func beginEvents(v *visit) {
	head := v.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store, no-transform")
	head.Set("X-Accel-Buffering", "no")
	v.w.WriteHeader(http.StatusOK)
}

// writeEvent writes one event at once, and frees it.
func (h *Handler) writeEvent(v *visit, b *wire.Buffer) {
	err := h.write(v, appendEvent(nil, "", b.B)) // a client that is gone hears nothing
	b.Told(err == nil)
	b.Free()
}

func appendEvent(out []byte, id string, text []byte) []byte {
	out = append(out, "event: message\n"...)
	if id != "" {
		out = append(append(append(out, "id: "...), id...), '\n')
	}
	out = append(append(out, "data: "...), text...) // one line, as package wire promises
	return append(out, "\n\n"...)
}

// write writes to a client and waits until it has taken it, within bounds.
func (h *Handler) write(v *visit, b []byte) error {
	h.hurry(v)
	if _, err := v.w.Write(b); err != nil {
		return err
	}
	return v.conn.Flush()
}
