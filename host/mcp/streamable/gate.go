package streamable

import (
	"errors"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/host/mcp/streamable/bound"
	"github.com/skillhost/skill/host/mcp/streamable/head"
	"github.com/skillhost/skill/host/mcp/wire"
)

// A Refusal is an error of Authenticate that says how to answer.
type Refusal struct {
	Status    int           // 400, 401, 403 or 503
	Challenge string        // the value of WWW-Authenticate, or ""
	Retry     time.Duration // for Retry-After; 0 for none
	Err       error         // for the caller to read
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns r.Err.
func (r *Refusal) Unwrap() error { return r.Err }

// A refusal answers a request that reached no conversation.
type refusal struct {
	status    int
	code      int64  // of JSON-RPC; 0: CodeServer
	what, why string // message and details
	id        raw    // of the request, if that is known
	data      raw    // instead of why
	retry     time.Duration
	challenge string
}

// bad refuses what is no request.
func bad(why string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: wire.CodeInvalidRequest, what: "invalid request", why: why}
}

// refuse writes no. The connection is closed unless the request was read.
func (h *Handler) refuse(v *visit, no *refusal) {
	out := v.w.Header()
	if no.retry > 0 {
		out.Set("Retry-After", strconv.Itoa(int(math.Ceil(no.retry.Seconds()))))
	}
	if no.challenge != "" {
		out.Set("WWW-Authenticate", no.challenge)
	}
	if no.code == 0 {
		no.code = wire.CodeServer
	}
	b := wire.NewAnswer(no.id)
	b.B = (&wire.Fault{Code: no.code, Message: no.what, Details: no.why, Data: no.data}).Append(b.B)
	b.B = append(b.B, '}')
	_ = h.writeJSON(v, no.status, b) // a client that is gone needs no answer
}

// writeJSON writes a whole answer, and waits until the client can have it.
func (h *Handler) writeJSON(v *visit, status int, b *wire.Buffer) (err error) {
	defer func() {
		b.Told(err == nil)
		b.Free()
	}()
	out := v.w.Header()
	out["Content-Type"] = jsonType
	out["Content-Length"] = []string{strconv.Itoa(len(b.B))}
	out["Cache-Control"] = noStore
	if status == 0 {
		status = http.StatusOK
	}
	h.hurry(v)
	v.w.WriteHeader(status)
	if _, err := v.w.Write(b.B); err != nil {
		return err
	}
	if err := v.conn.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
)

// hurry gives the client some time to take what is about to be written.
func (h *Handler) hurry(v *visit) {
	_ = v.conn.SetWriteDeadline(time.Now().Add(h.o.Limits.WriteTime)) // a connection without deadlines is a test's
}

// A gate checks what a request says of itself before anybody reads its body.
type gate struct {
	o         *Options
	callers   bound.Rates
	strangers bound.Rates // by address: of those whom Authenticate refuses
	friends   bound.Seen  // credentials of those whom it let in
}

func (g *gate) init(o *Options) {
	g.o = o
	for _, r := range []*bound.Rates{&g.callers, &g.strangers} {
		r.Rate, r.Burst = o.Rate, o.Burst
	}
}

// origin refuses a request that a page of another site told a browser to send.
func (g *gate) origin(v *visit) *refusal {
	r := v.r
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		// A page's GET has no Origin when it does not read the answer; the browser
		// still says where it comes from (W3C Fetch Metadata).
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "none", "same-origin":
			return nil
		}
	}
	if len(origins) == 1 && slices.ContainsFunc(g.o.Origins, func(o string) bool { return strings.EqualFold(o, origins[0]) }) {
		out := v.w.Header()
		out.Set("Access-Control-Allow-Origin", origins[0])
		out.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After")
		out.Add("Vary", "Origin")
		return nil
	}
	if len(origins) == 1 {
		if u, err := url.Parse(origins[0]); err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "http" || u.Scheme == "https") {
			return nil
		}
	}
	return &refusal{status: http.StatusForbidden, what: "forbidden", why: "this origin may not talk to this server; the operator can allow it"}
}

// isHost reports whether the name that the client used can be this server's. A
// server that only this machine reaches has no names but the machine's own,
// unless the operator says so: any other name is one that a page made resolve
// to here. Elsewhere all names will do until the operator lists them.
func (g *gate) isHost(r *http.Request) bool {
	name := head.Name(r.Host)
	if name == "" {
		return false
	}
	if head.Loopback(name) || slices.ContainsFunc(g.o.Hosts, func(h string) bool { return strings.EqualFold(h, name) || strings.EqualFold(h, r.Host) }) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	address := head.Name(local.String())
	return name == address || len(g.o.Hosts) == 0 && !head.Loopback(address)
}

// method refuses the methods that an address does not have, and answers what a
// browser asks before it lets a page talk.
func (g *gate) method(v *visit, methods string) *refusal {
	if v.r.Method == http.MethodOptions {
		out := v.w.Header()
		out.Set("Allow", methods+", OPTIONS")
		if out.Get("Access-Control-Allow-Origin") != "" {
			out.Set("Access-Control-Allow-Methods", methods)
			if asked := v.r.Header.Get("Access-Control-Request-Headers"); len(asked) < 2<<10 {
				out.Set("Access-Control-Allow-Headers", asked)
			}
			out.Set("Access-Control-Max-Age", "600")
		}
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	for m := range strings.SplitSeq(methods, ", ") {
		if v.r.Method == m {
			return nil
		}
	}
	v.w.Header().Set("Allow", methods)
	return &refusal{status: http.StatusMethodNotAllowed, what: "method not allowed", why: "want " + methods}
}

// caller finds out who is behind a request, and whether there are too many.
func (g *gate) caller(v *visit) *refusal {
	if g.o.Authenticate == nil {
		return g.charge(v, 1)
	}
	from, says := head.Client(v.r.RemoteAddr), strings.Join(v.r.Header["Authorization"], "\n")
	// From an address of many strangers nobody is looked at any more but who was
	// let in before: callers may share it with them. All callers share that of a
	// proxy on this machine.
	if wait := g.strangers.Spent(from); wait > 0 && !head.Loopback(from) && !g.friends.Has(says) {
		return tooMany("too many requests without a good token come from this address", wait)
	}
	caller, rights, err := g.o.Authenticate(v.r)
	if err != nil {
		return g.stranger(from, err)
	}
	g.friends.Add(says)
	v.scope.Caller, v.scope.Rights = caller, rights
	return g.charge(v, 1)
}

// charge counts n messages against the caller's rate.
func (g *gate) charge(v *visit, n int) *refusal {
	who := v.scope.Caller
	if g.o.Authenticate == nil { // all have the same name
		who = head.Client(v.r.RemoteAddr)
	}
	switch wait, ok := g.callers.Take(who, n); {
	case ok:
		return nil
	case wait == 0:
		return tooMany("the batch has more messages than may come at once", 0)
	default:
		return tooMany("too many requests", wait)
	}
}

// stranger refuses who is not let in, and counts that against its address.
func (g *gate) stranger(from string, err error) *refusal {
	var no *Refusal
	if !errors.As(err, &no) {
		g.o.Logger.Error("cannot find out who is behind a request", "err", err)
		return &refusal{status: http.StatusInternalServerError, code: wire.CodeInternal, what: "internal error"}
	}
	if wait, ok := g.strangers.Take(from, 1); !ok {
		return tooMany("too many requests without a good token come from this address", wait)
	}
	what := map[int]string{http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden", http.StatusBadRequest: "invalid request"}[no.Status]
	if what == "" {
		what = "unavailable"
	}
	return &refusal{status: no.Status, what: what, why: no.Error(), challenge: no.Challenge, retry: no.Retry}
}

func tooMany(why string, wait time.Duration) *refusal {
	return &refusal{status: http.StatusTooManyRequests, what: "limit", why: why, retry: wait}
}
