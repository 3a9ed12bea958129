package egress

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/capability"
)

// bounds are what an Exit holds its clients to.
type bounds struct {
	bytes  int64         // of one call in all, each way, unless Open says more
	flows  int           // requests and tunnels of one call at a time
	conns  int           // connections that are accepted at a time, of all calls
	watch  time.Duration // how often the grant is asked again about what goes on
	idle   time.Duration // how long a flow may go without a byte
	head   time.Duration // for a request's header, and the first bytes of a tunnel
	rest   time.Duration // for a request that is refused, and its answer
	reach  time.Duration // to find a name's addresses and connect
	linger time.Duration // of a connection between two requests
}

// exitBounds are the bounds of Serve. A clone of a large repository has to
// pass, so they are not those of one HTTP body.
var exitBounds = bounds{bytes: 1 << 30, flows: 64, conns: 256, watch: 2 * time.Second, idle: 10 * time.Minute,
	head: 10 * time.Second, rest: 30 * time.Second, reach: 30 * time.Second, linger: time.Minute}

// An Exit is the way out of programs that speak to the network themselves: an
// HTTP proxy that knows which call each request belongs to. The zero Exit is
// of no use; Broker.Serve makes them.
type Exit struct {
	broker  *Broker
	bounds  bounds
	address string
	server  *http.Server
	served  chan struct{}  // closed when nothing is accepted any more
	conns   sync.WaitGroup // connections, and what is done for them
	close   sync.Once

	mu     sync.Mutex
	passes map[[sha256.Size]byte]*pass // by the hash of the token; nil once closed
}

// Serve accepts connections from l, which it closes in the end, and serves
// them as an HTTP/1 proxy: requests for http:// URLs in absolute form, and
// CONNECT. It serves only who has the credentials that Open made.
//
// A request is judged as one of Client is: with its method, by the grant of
// its call, its host's name resolved once. A CONNECT has no method. It is
// judged as https, and nothing goes through it before a TLS ClientHello that
// names the host of the CONNECT (an address may go without a name); but where
// an entry of the grant says tcp:// and every layer lets raw bytes pass, they
// pass. What goes on inside of a tunnel is not seen: a network entry with
// methods therefore allows no CONNECT.
//
// What is refused is answered with 403, the name of the rule in the header
// X-Proxy-Error and the reason as text; 407 without valid credentials; 429 or
// 503 for a call's own bounds; 502 for what cannot be reached. A tunnel that
// breaks a rule later is cut.
func (b *Broker) Serve(l net.Listener) *Exit { return b.serve(l, exitBounds) }

func (b *Broker) serve(l net.Listener, limits bounds) *Exit {
	x := &Exit{broker: b, bounds: limits, address: l.Addr().String(), served: make(chan struct{}), passes: map[[sha256.Size]byte]*pass{}}
	x.server = &http.Server{
		Handler:           http.HandlerFunc(x.handle),
		ReadHeaderTimeout: limits.head,
		ReadTimeout:       limits.rest, // a flow lifts both
		WriteTimeout:      limits.rest,
		IdleTimeout:       limits.linger,
		MaxHeaderBytes:    maxRequestHeader,
		// "OPTIONS *" needs credentials like everything else.
		DisableGeneralOptionsHandler: true,
		ConnContext:                  func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				x.conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				x.conns.Done()
			}
		},
	}
	go func() {
		defer close(x.served)
		// It fails when l is closed, as it is with the cage behind it.
		_ = x.server.Serve(newTurnstile(l, limits.conns))
	}()
	return x
}

// connKey is where a request's context has the connection it came on.
type connKey struct{}

// Open returns the URL of the proxy for one call, with the credentials that
// stand for its grant, and a function that ends the call: it takes the
// credentials back, cuts what goes on, and returns when nothing of the call is
// left and nothing more will be asked of g.
//
// All that the call sends, and all that it is sent, is bounded by 1 GiB each,
// headers and TLS included, or by bodyLimit, the bound of a body in Client, if
// that is more: a git clone is a few large bodies.
//
// No CONNECT goes to the hosts of bound, those that a secret is bound to: the
// host could not add the secret, and what is reached there is to be reached
// with it. A closed Exit gives the URL "", which means no network.
func (x *Exit) Open(call string, g capability.Grant, bodyLimit int64, bound capability.Set) (proxyURL string, done func()) {
	token := rand.Text()
	key := sha256.Sum256([]byte(token))
	p := newPass(x, call, g, max(bodyLimit, x.bounds.bytes), bound)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.passes == nil {
		return "", func() {}
	}
	x.passes[key] = p
	u := url.URL{Scheme: "http", User: url.UserPassword(call, token), Host: x.address}
	return u.String(), func() {
		x.mu.Lock()
		delete(x.passes, key)
		x.mu.Unlock()
		p.end()
	}
}

// Close ends every call, closes the listener and returns when no connection
// is left. It can be called more than once.
func (x *Exit) Close() error {
	x.close.Do(func() {
		x.mu.Lock()
		passes := x.passes
		x.passes = nil
		x.mu.Unlock()
		x.server.Close()
		for _, p := range passes {
			p.end()
		}
		<-x.served
		x.conns.Wait()
	})
	return nil
}

// pass returns the pass that r has the credentials of, or nil. A token is
// looked up by its hash, so that how long that takes tells nothing about it.
func (x *Exit) pass(r *http.Request) *pass {
	list := r.Header["Proxy-Authorization"]
	if len(list) != 1 {
		return nil
	}
	scheme, encoded, _ := strings.Cut(list[0], " ")
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil || !strings.EqualFold(scheme, "Basic") {
		return nil
	}
	colon := strings.LastIndexByte(string(plain), ':') // a token has none
	if colon < 0 {
		return nil
	}
	x.mu.Lock()
	p := x.passes[sha256.Sum256(plain[colon+1:])]
	x.mu.Unlock()
	if p == nil || subtle.ConstantTimeCompare(plain[:colon], []byte(p.call)) != 1 {
		return nil
	}
	return p
}

// handle serves one request or tunnel.
func (x *Exit) handle(w http.ResponseWriter, r *http.Request) {
	x.conns.Add(1) // a hijacked connection is no longer counted by the server
	defer x.conns.Done()
	if r.ProtoMajor != 1 {
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusHTTPVersionNotSupported, "net_http2", "this proxy speaks HTTP/1.1 only")
		return
	}
	p := x.pass(r)
	if p == nil {
		w.Header().Set("Proxy-Authenticate", `Basic realm="skill"`)
		refuse(w, http.StatusProxyAuthRequired, "net_credentials", "the credentials of a running call are needed: use the whole proxy URL, with user and password")
		return
	}
	child, _ := r.Context().Value(connKey{}).(net.Conn)
	f, err := p.begin(r.Context(), child)
	if err != nil {
		fail(w, err)
		return
	}
	defer p.leave(f)
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // from here on the flow is watched;
	_ = c.SetWriteDeadline(time.Time{})
	defer func() { _ = c.SetReadDeadline(time.Now().Add(x.bounds.rest)) }() // the rest of a body that nobody wants
	if r.Method == http.MethodConnect {
		p.connect(w, r, f)
		return
	}
	p.forward(w, r, f)
}
