// Package egress is the one way out to the network. Every request, and every
// hop of a redirect, is judged by the grant of its call; its host's name is
// resolved once, forbidden addresses are dropped, and one of the addresses
// that are left is dialled, never the name again. Secrets are added on the way
// out and taken out of the answers on the way in.
//
// It does not know which tool asks, where grants and secrets come from, or
// where accesses are recorded: each one is a capability.Grant.Check, which
// tells whoever made the grant.
package egress

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/skillhost/skill/host/capability"
)

// Bounds of one request that no manifest raises.
const (
	maxRedirects      = 10              // hops after the first request
	maxRequestHeader  = 64 << 10        // bytes of names and values together
	maxResponseHeader = 256 << 10       // bytes
	maxAddresses      = 8               // of one name that are tried
	connectTimeout    = 5 * time.Second // of one address
	connectStagger    = 250 * time.Millisecond
	handshakeTimeout  = 10 * time.Second // TLS
	idleTimeout       = 10 * time.Second // of a connection kept for the call's next request
	pinTTL            = time.Minute      // how long a call keeps what a name resolved to
	connsPerHost      = 32               // of one call
)

// A Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options say what a Broker reaches the network with. The zero Options are
// those of the machine.
type Options struct {
	// Resolver is asked for names in the form of capability.ParseHost. The
	// default is the system's, without its search domains: the name that was
	// judged is the name that is looked up.
	Resolver Resolver

	// Dial connects to network "tcp" and an address literal with its port.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Interfaces lists the host's own addresses. If it fails nothing is dialled.
	Interfaces func() ([]netip.Addr, error)

	// RootCAs are what servers' certificates are verified against, always;
	// nil means the system's.
	RootCAs *x509.CertPool
}

// A Broker makes the Clients of calls. It keeps no connection and no answer of
// a resolver itself, so that nothing passes from one call to another.
type Broker struct{ opts Options }

// New returns a Broker. Proxies named by environment variables are ignored.
func New(o Options) *Broker {
	if o.Resolver == nil {
		o.Resolver = absolute{net.DefaultResolver}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Interfaces == nil {
		o.Interfaces = interfaces
	}
	return &Broker{opts: o}
}

// Client returns the HTTP client of one call. Everything it is asked for goes
// through g.Check; bodies are bounded by body, in bytes each way and after
// decompression; secrets, if not nil, returns those bound to the call's skill
// as they are now, and is asked for every request and hop, perhaps by several
// at once. Connections are kept between requests of this client and shared
// with no other one.
//
// It follows up to 10 redirects as RFC 9110 has it; set CheckRedirect of a
// copy to follow none. Its errors hold an *sdk.Error: Denied for what is not
// granted, Invalid for requests that no grant could allow, Limit for sizes,
// redirects and the deadline, Canceled and Unavailable for the rest. Neither
// it nor what is recorded names paths, queries or secret values. Around it
// *http.Client puts a *url.Error, which does name the URL.
func (b *Broker) Client(g capability.Grant, secrets func() Secrets, body int64) *http.Client {
	if secrets == nil {
		secrets = func() Secrets { return nil }
	}
	t := b.trip(g)
	t.secrets, t.body = secrets, max(body, 0)
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}
}

// trip returns a trip that can be asked for ways and knows no secrets.
func (b *Broker) trip(g capability.Grant) *trip {
	return &trip{broker: b, grant: g, pins: map[string]pin{}, open: b.transport(true), special: b.transport(false)}
}

// transport returns a transport that connects only to what the request's hop
// was pinned to. One that keeps connections must be used for addresses only
// that need no permission of their own: a kept connection is not asked again.
func (b *Broker) transport(keep bool) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            b.dialHop,
		DialTLSContext:         b.dialHopTLS,
		ForceAttemptHTTP2:      keep,
		DisableKeepAlives:      !keep,
		MaxIdleConnsPerHost:    8,
		MaxConnsPerHost:        connsPerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}

// absolute asks for names as they are, without the system's search domains:
// "api.example.com" must not become "api.example.com.cluster.local".
type absolute struct{ *net.Resolver }

func (r absolute) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if strings.Contains(host, ".") {
		host += "."
	}
	return r.Resolver.LookupNetIP(ctx, network, host)
}

func interfaces() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			addrs = append(addrs, p.Addr())
		}
	}
	return addrs, nil
}
