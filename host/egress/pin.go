package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// A pin is what a name resolved to for one call.
type pin struct {
	addrs []netip.Addr
	until time.Time
}

// A hop is where one request may connect to: decided before, and not again.
type hop struct {
	ctx     context.Context // the request's: a transport dials on after it is done
	address string          // "host:port" as a transport spells it
	host    string          // what the certificate must name
	port    uint16
	addrs   []netip.Addr // the survivors
	special bool         // some survivor needs a permission of its own

	needs []capability.Access // what was asked about the target and its addresses
}

type hopKey struct{}

// lookup returns the addresses of n, asking the resolver once per call.
func (t *trip) lookup(ctx context.Context, n capability.Net) ([]netip.Addr, error) {
	if n.IP.IsValid() {
		return []netip.Addr{n.IP}, nil
	}
	now := time.Now()
	t.mu.Lock()
	p := t.pins[n.Host]
	t.mu.Unlock()
	if now.Before(p.until) {
		return p.addrs, nil
	}
	addrs, err := t.broker.opts.Resolver.LookupNetIP(ctx, "ip", n.Host)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ended(ctx, n)
		}
		// The error of a resolver names the machine's name servers.
		why := "the lookup failed"
		var d *net.DNSError
		if errors.As(err, &d) && d.IsNotFound {
			why = "no such host"
		}
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "egress", What: n.String() + ": " + why}
	}
	p = pin{addrs: slices.Clone(addrs), until: now.Add(pinTTL)}
	for i := range p.addrs {
		p.addrs[i] = p.addrs[i].Unmap()
	}
	t.mu.Lock()
	t.pins[n.Host] = p
	t.mu.Unlock()
	return p.addrs, nil
}

// ownAddresses returns the host's own addresses, asking as often as for a name.
func (t *trip) ownAddresses() ([]netip.Addr, error) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.own.until) {
		return t.own.addrs, nil
	}
	addrs, err := t.broker.opts.Interfaces()
	if err != nil {
		return nil, err
	}
	t.own = pin{addrs: addrs, until: now.Add(pinTTL)}
	return addrs, nil
}

// pin resolves n and drops the addresses that it may not lead to. Each
// address of a forbidden class is checked on its own, so that it is recorded
// whether it is used or refused.
func (t *trip) pin(ctx context.Context, n capability.Net, redirected bool) (*hop, error) {
	addrs, err := t.lookup(ctx, n)
	if err != nil {
		return nil, err
	}
	own, err := t.ownAddresses()
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "egress", What: n.String() + ": the host's own addresses are not known", Err: err}
	}
	h := &hop{ctx: ctx, host: n.Host, port: n.Port, address: net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port)))}
	if !n.IP.IsValid() {
		h.needs = append(h.needs, access(n))
	}
	var refused error
	for _, a := range addrs {
		c := classify(a, own)
		if err := t.admit(n, a, c, redirected); err != nil {
			refused = err
			continue
		}
		if n.IP.IsValid() || c != (class{}) {
			h.needs = append(h.needs, access(literal(n, a)))
		}
		h.special = h.special || c != (class{})
		h.addrs = append(h.addrs, a)
	}
	switch {
	case len(h.addrs) > maxAddresses:
		h.addrs = h.addrs[:maxAddresses]
	case len(h.addrs) == 0 && refused != nil:
		return nil, refused
	case len(h.addrs) == 0:
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "egress", What: n.String() + ": the name has no address"}
	}
	return h, nil
}

// admit checks the address a itself, which n names or leads to. A public one
// behind a granted name passes unless a layer denies it. One of a forbidden
// class c has to be granted like a literal, and each layer that speaks of the
// network has to name it, for which an entry for everything does not do. So
// "*" means the internet, not the machine's neighbours, and adding a layer
// never opens anything.
func (t *trip) admit(n capability.Net, a netip.Addr, c class, redirected bool) error {
	err := t.grant.CheckAddress(access(n), a)
	if v4, _ := embedded(a); err == nil && v4.IsValid() {
		err = t.grant.CheckAddress(access(n), v4)
	}
	if err != nil {
		return refusal(err, n, a, class{"net_denied_address", "a denied address"}, redirected)
	}
	if c == (class{}) && !n.IP.IsValid() {
		return nil
	}
	l := literal(n, a)
	acc := access(l)
	g := t.grant
	if c != (class{}) && !named(g, acc) {
		// Where "*" covers a no layer refuses it, but the refusal goes the same
		// way, so that it is recorded.
		g = g.WithLive(func(capability.Access) error { return unnamed(acc, l) })
	}
	return refusal(g.Check(acc), n, a, c, redirected)
}

// literal returns n with the address a in place of the host.
func literal(n capability.Net, a netip.Addr) capability.Net {
	n.Host, n.IP = a.String(), a
	return n
}

// refusal says of err, which a grant gave, what n is and why it matters.
func refusal(err error, n capability.Net, a netip.Addr, c class, redirected bool) error {
	var cause *sdk.Error
	if !errors.As(err, &cause) {
		return err // nil, in most cases
	}
	e := *cause
	e.Op, e.What = "egress", "network.connect "+n.String()
	if redirected {
		e.What += ", the target of a redirect"
	}
	if c != (class{}) {
		rule := c.rule
		if redirected && rule != "net_denied_address" {
			rule = "net_redirect_to_private"
		}
		e.What += fmt.Sprintf(": %s is %s (rule %s)", a, c.text, rule)
	}
	return &e
}

// named reports whether each layer of g that speaks of the network has an
// entry that names acc's address, alone or in a prefix that is not as good as
// everything.
func named(g capability.Grant, acc capability.Access) bool {
	for _, l := range g.Layers() {
		if !speaks(l) {
			continue
		}
		if !slices.ContainsFunc(l.Allow, func(c capability.Capability) bool { return c.Covers(acc) && c.Danger() == "" }) {
			return false
		}
	}
	return true
}

// speaks reports whether l says anything about the network.
func speaks(l capability.Layer) bool {
	return l.Closed || slices.Contains(l.Speaks, capability.Topic{Kind: capability.Network, Verb: capability.Connect})
}

func unnamed(acc capability.Access, n capability.Net) error {
	entry := authority(n)
	if n.Scheme != "" {
		entry = n.Scheme + "://" + entry
	}
	d := &sdk.Denial{Capability: "network.connect", Resource: acc.Target, Layer: "host", Allow: fmt.Sprintf("network = [%q]", entry)}
	return &sdk.Error{Kind: sdk.Denied, What: d.Capability + " " + d.Resource, Denial: d,
		Hint: "an entry for all hosts does not cover it; to allow it, every layer has to list it: " + d.Allow}
}

// dialHop connects to one of the addresses that the request was pinned to.
func (b *Broker) dialHop(ctx context.Context, _, address string) (net.Conn, error) {
	h, _ := ctx.Value(hopKey{}).(*hop)
	if h == nil || h.address != address {
		return nil, &sdk.Error{Kind: sdk.Internal, Op: "egress", What: "a connection that nobody decided on"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	return b.race(ctx, h.addrs, h.port)
}

func (b *Broker) dialHopTLS(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := b.dialHop(ctx, network, address)
	if err != nil {
		return nil, err
	}
	h := ctx.Value(hopKey{}).(*hop)
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	protocols := []string{"h2", "http/1.1"}
	if h.special {
		protocols = protocols[1:]
	}
	tc := tls.Client(conn, &tls.Config{ServerName: h.host, RootCAs: b.opts.RootCAs, NextProtos: protocols, MinVersion: tls.VersionTLS12})
	if err := tc.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return tc, nil
}

// race connects to the addresses, starting the next one when an attempt fails
// or is slow, and returns the first connection (a small RFC 8305). It returns
// when every attempt has ended.
func (b *Broker) race(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type attempt struct {
		conn net.Conn
		err  error
	}
	done := make(chan attempt)
	queue, running := interleave(addrs), 0
	tick := time.NewTicker(connectStagger)
	defer tick.Stop()
	start := func() {
		if len(queue) == 0 || ctx.Err() != nil {
			return
		}
		address := netip.AddrPortFrom(queue[0], port).String()
		queue = queue[1:]
		running++
		go func() {
			ctx, cancel := context.WithTimeout(ctx, connectTimeout)
			defer cancel()
			conn, err := b.opts.Dial(ctx, "tcp", address)
			done <- attempt{conn, err}
		}()
	}
	var won net.Conn
	last := context.Cause(ctx)
	for start(); running > 0; {
		select {
		case a := <-done:
			running--
			switch {
			case a.err != nil:
				if won == nil {
					last = a.err
					start()
				}
			case won == nil:
				won = a.conn
				cancel()
			default:
				a.conn.Close()
			}
		case <-tick.C:
			start()
		}
	}
	if won != nil {
		return won, nil
	}
	if last == nil {
		last = errors.New("no address to connect to")
	}
	return nil, last
}

// interleave orders addrs IPv6, IPv4, IPv6 …, so that one broken family costs
// one attempt.
func interleave(addrs []netip.Addr) []netip.Addr {
	var six, four, out []netip.Addr
	for _, a := range addrs {
		if a.Is4() {
			four = append(four, a)
		} else {
			six = append(six, a)
		}
	}
	for len(six)+len(four) > 0 {
		if len(six) > 0 {
			out, six = append(out, six[0]), six[1:]
		}
		if len(four) > 0 {
			out, four = append(out, four[0]), four[1:]
		}
	}
	return out
}
