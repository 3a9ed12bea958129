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
	"sync"
	"time"

	"golang.org/x/time/rate"

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
	h.writeJSON(v, no.status, b)
}

// writeJSON writes a whole answer.
func (h *Handler) writeJSON(v *visit, status int, b *wire.Buffer) {
	out := v.w.Header()
	out["Content-Type"] = jsonType
	out["Content-Length"] = []string{strconv.Itoa(len(b.B))}
	out["Cache-Control"] = noStore
	if status == 0 {
		status = http.StatusOK
	}
	h.hurry(v)
	v.w.WriteHeader(status)
	v.w.Write(b.B) // a client that is gone needs no answer
	b.Free()
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
	o        *Options
	mu       sync.Mutex
	limiters map[string]*rate.Limiter // by caller
}

// maxLimiters bounds the callers whose rates are remembered.
const maxLimiters = 10000

func (g *gate) init(o *Options) { g.o, g.limiters = o, map[string]*rate.Limiter{} }

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
	if g.o.Authenticate != nil {
		caller, rights, err := g.o.Authenticate(v.r)
		if err != nil {
			return g.stranger(err)
		}
		v.scope.Caller, v.scope.Rights = caller, rights
	}
	return g.charge(v, 1)
}

// charge counts n messages against the caller's rate.
func (g *gate) charge(v *visit, n int) *refusal {
	if g.o.Rate <= 0 || n == 0 {
		return nil
	}
	turn := g.limiter(v).ReserveN(time.Now(), n)
	if !turn.OK() {
		return &refusal{status: http.StatusTooManyRequests, what: "limit", why: "the batch has more messages than may come at once"}
	}
	wait := turn.Delay()
	if wait == 0 {
		return nil
	}
	turn.Cancel()
	return &refusal{status: http.StatusTooManyRequests, what: "limit", why: "too many requests", retry: wait}
}

func (g *gate) stranger(err error) *refusal {
	var no *Refusal
	if !errors.As(err, &no) {
		g.o.Logger.Error("cannot find out who is behind a request", "err", err)
		return &refusal{status: http.StatusInternalServerError, code: wire.CodeInternal, what: "internal error"}
	}
	what := map[int]string{http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden", http.StatusBadRequest: "invalid request"}[no.Status]
	if what == "" {
		what = "unavailable"
	}
	return &refusal{status: no.Status, what: what, why: no.Error(), challenge: no.Challenge, retry: no.Retry}
}

// limiter returns that of the caller. Callers for whom there is no room share one.
func (g *gate) limiter(v *visit) *rate.Limiter {
	key := v.scope.Caller
	if g.o.Authenticate == nil { // all have the same name
		key = head.Name(v.r.RemoteAddr)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.limiters[key]
	if l == nil && len(g.limiters) >= maxLimiters {
		for k, l := range g.limiters {
			if l.Tokens() >= float64(l.Burst()) { // as good as new
				delete(g.limiters, k)
			}
		}
		if len(g.limiters) >= maxLimiters {
			key = crowd
			l = g.limiters[key]
		}
	}
	if l == nil {
		l = rate.NewLimiter(rate.Limit(g.o.Rate), g.o.Burst)
		g.limiters[key] = l
	}
	return l
}

// crowd is the name of those who share a limiter, and nobody's own.
const crowd = ""
