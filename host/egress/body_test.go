package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

func TestNetBodyTooLarge(t *testing.T) {
	w := newWorld(t)
	const size = 1000
	// Handlers of refused requests may outlive them.
	var received atomic.Int64
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		received.Store(n)
		answer := make([]byte, size)
		if r.URL.Path == "/more" {
			answer = append(answer, 0)
		}
		if r.URL.RawQuery == "chunked" {
			rw.(http.Flusher).Flush()
		}
		rw.Write(answer)
	})
	c := w.broker().Client(w.grant("api.example.com"), nil, size)
	for _, q := range []string{"", "?chunked"} {
		if _, body, err := w.get(c, "https://api.example.com/"+q); err != nil || len(body) != size {
			t.Errorf("%q: %d bytes, %v", q, len(body), err)
		}
		_, body, err := w.get(c, "https://api.example.com/more"+q)
		refused(t, err, sdk.Limit, "response body", "1000 bytes")
		if len(body) > size {
			t.Errorf("%d bytes came through", len(body))
		}
	}
	if _, _, err := w.do(c, "POST", "https://api.example.com/", strings.Repeat("x", size), nil); err != nil || received.Load() != size {
		t.Error(received.Load(), err)
	}
	_, _, err := w.do(c, "POST", "https://api.example.com/", strings.Repeat("x", size+1), nil)
	refused(t, err, sdk.Limit, "request body")
	// A body that does not say how long it is.
	_, err = c.Post("https://api.example.com/", "text/plain", io.MultiReader(bytes.NewReader(make([]byte, size+1))))
	refused(t, err, sdk.Limit, "request body")

	none := w.broker().Client(w.grant("api.example.com"), nil, 0)
	_, _, err = w.get(none, "https://api.example.com/")
	refused(t, err, sdk.Limit)
	if resp, err := none.Head("https://api.example.com/"); err != nil || resp.ContentLength != size {
		t.Error("HEAD has no body to bound:", err)
	}
}

func TestNetGzipBomb(t *testing.T) {
	w := newWorld(t)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 10<<20))
	z.Close()
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		rw.Write(bomb.Bytes())
	})
	_, body, err := w.get(w.client(w.grant("api.example.com")), "https://api.example.com/")
	refused(t, err, sdk.Limit, "response body")
	if bomb.Len() > 1<<20 || len(body) > 1<<20 {
		t.Error("bomb of", bomb.Len(), "bytes, read", len(body))
	}
}

func TestNetHeaderTooLarge(t *testing.T) {
	w := newWorld(t)
	big := func(rw http.ResponseWriter, r *http.Request) {
		for range 20 {
			rw.Header().Add("X-Big", strings.Repeat("x", maxResponseHeader/16))
		}
	}
	w.serve(public+":80", true, big)
	w.serve(public+":443", false, big)
	c := w.client(w.grant("api.example.com", "http://api.example.com"))
	_, _, err := w.get(c, "http://api.example.com/")
	refused(t, err, sdk.Limit, "response headers")
	// Over HTTP/2 the connection breaks, and does not say of what.
	if _, _, err := w.get(c, "https://api.example.com/"); err == nil {
		t.Error("accepted over HTTP/2")
	}
}

func TestNetSlowBodyDeadline(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		rw.Write([]byte("first"))
		rw.(http.Flusher).Flush()
		<-r.Context().Done() // never the second
	})
	for name, v := range map[string]struct {
		cause error
		kind  sdk.Kind
	}{
		"deadline": {context.DeadlineExceeded, sdk.Limit},
		"canceled": {nil, sdk.Canceled},
		"cause":    {&sdk.Error{Kind: sdk.Limit, What: "out of budget"}, sdk.Limit},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			req, err := http.NewRequestWithContext(ctx, "GET", "https://api.example.com/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := w.client(w.grant("api.example.com")).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			cancel(v.cause)
			_, err = io.ReadAll(resp.Body)
			refused(t, err, v.kind)
		})
	}
}

// The deadline ends each phase: the lookup, the connection, the handshake, the
// wait for headers.
func TestDeadlineInEveryPhase(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, phase := range []string{"lookup", "connect", "handshake", "headers"} {
		t.Run(phase, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			over := func() { cancel(context.DeadlineExceeded) }
			w := newWorld(t)
			opts := Options{Resolver: w, Dial: w.dial, RootCAs: w.roots, Interfaces: func() ([]netip.Addr, error) { return nil, nil }}
			ended := make(chan error, 1)
			switch phase {
			case "lookup":
				opts.Resolver = stuck(func(ctx context.Context) error { over(); <-ctx.Done(); return ctx.Err() })
			case "connect":
				opts.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					over()
					<-ctx.Done()
					ended <- ctx.Err()
					return nil, ctx.Err()
				}
			case "handshake":
				w.place(public+":443", silent.Addr().String())
				opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					c, err := w.dial(ctx, network, address)
					defer time.AfterFunc(time.Millisecond, over)
					return c, err
				}
			case "headers":
				w.serve(public+":443", false, func(_ http.ResponseWriter, r *http.Request) { over(); <-r.Context().Done() })
			}
			req, err := http.NewRequestWithContext(ctx, "GET", "https://api.example.com/", nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = New(opts).Client(w.grant("api.example.com"), nil, 1<<10).Do(req)
			refused(t, err, sdk.Limit, "the time is over")
			if phase == "connect" && <-ended == nil {
				t.Error("the dial goes on after the call")
			}
		})
	}
}

type stuck func(context.Context) error

func (f stuck) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	return nil, f(ctx)
}

func TestTLSIsVerified(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	w.names["wrong.example.com"] = [][]string{{public}}
	_, _, err := w.get(w.client(w.grant("*.example.com")), "https://wrong.example.com/")
	refused(t, err, sdk.Unavailable, "certificate")
	w.roots, _ = authorityFor(t, "unrelated")
	_, _, err = w.get(w.client(w.grant("*.example.com")), "https://api.example.com/")
	refused(t, err, sdk.Unavailable, "certificate")
}

func TestAddressesAreTriedInTurn(t *testing.T) {
	w := newWorld(t)
	w.names["api.example.com"] = [][]string{{"8.8.8.8", "8.8.4.4", "2606:4700::1111", public}}
	w.serve(public+":443", false, hello)
	if _, _, err := w.get(w.client(w.grant("api.example.com")), "https://api.example.com/"); err != nil {
		t.Fatal(err)
	}
	want := []string{"[2606:4700::1111]:443", "8.8.8.8:443", "8.8.4.4:443", public + ":443"}
	if d := w.dials(); !slices.Equal(d, want) {
		t.Errorf("dialled %q, want %q", d, want)
	}

	w = newWorld(t)
	many := []string{}
	for i := range 40 {
		many = append(many, netip.AddrFrom4([4]byte{8, 8, 8, byte(i)}).String())
	}
	w.names["api.example.com"] = [][]string{many}
	_, _, err := w.get(w.client(w.grant("api.example.com")), "https://api.example.com/")
	refused(t, err, sdk.Unavailable, "connection refused")
	if d := w.dials(); len(d) != maxAddresses {
		t.Errorf("%d addresses tried, want %d", len(d), maxAddresses)
	}
}

// A slow address does not hold up the next one, and the connections that lose
// are closed.
func TestRaceClosesTheLosers(t *testing.T) {
	slow := make(chan struct{})
	loser, winner := net.Pipe()
	closed := make(chan struct{})
	b := New(Options{Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
		if address == "8.8.8.8:443" {
			<-slow
			return closeNote{loser, closed}, nil // although it was canceled
		}
		defer close(slow)
		return winner, nil
	}})
	c, err := b.race(t.Context(), []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("8.8.4.4")}, 443)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c == winner { // either may win, and the other one is closed
		<-closed
	} else if _, err := winner.Write(nil); err != io.ErrClosedPipe {
		t.Error("the loser is open:", err)
	}
}

type closeNote struct {
	net.Conn
	closed chan struct{}
}

func (c closeNote) Close() error {
	close(c.closed)
	return c.Conn.Close()
}

func TestOwnAddressesUnknown(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	b := New(Options{Resolver: w, Dial: w.dial, RootCAs: w.roots, Interfaces: func() ([]netip.Addr, error) { return nil, errors.New("no netlink") }})
	_, _, err := w.get(b.Client(w.grant("api.example.com"), nil, 1<<10), "https://api.example.com/")
	refused(t, err, sdk.Unavailable)
	if len(w.dials()) != 0 {
		t.Error("dialled", w.dials())
	}
}

func TestMachineDefaults(t *testing.T) {
	b := New(Options{})
	own, err := b.opts.Interfaces()
	if err != nil || !slices.Contains(own, netip.MustParseAddr("127.0.0.1")) {
		t.Skip("no loopback interface to see:", own, err)
	}
	if c := classify(own[0], own); c == (class{}) {
		t.Error(own[0], "is not forbidden")
	}
}

func TestClasses(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("2606:4700::9%eth0")}
	for a, rule := range map[string]string{
		"127.0.0.1": "net_loopback", "127.255.255.254": "net_loopback", "::1": "net_loopback", "::ffff:127.0.0.1": "net_loopback",
		"0.0.0.0": "net_unspecified", "0.1.2.3": "net_unspecified", "::": "net_unspecified",
		"169.254.169.254": "net_metadata_ip", "169.254.170.2": "net_metadata_ip", "100.100.100.200": "net_metadata_ip", "168.63.129.16": "net_metadata_ip", "192.0.0.192": "net_metadata_ip", "fd00:ec2::254": "net_metadata_ip", "fd20:ce::254": "net_metadata_ip", "::ffff:169.254.169.254": "net_metadata_ip",
		"169.254.1.1": "net_link_local", "fe80::1": "net_link_local", "fe80::1%eth0": "net_link_local", "2606:4700::1111%eth0": "net_link_local",
		"10.0.0.1": "net_private", "172.16.0.1": "net_private", "172.31.255.255": "net_private", "192.168.0.1": "net_private", "fc00::1": "net_private", "fdff::1": "net_private", "fec0::1": "net_private",
		"100.64.0.1": "net_shared", "100.127.255.255": "net_shared",
		"224.0.0.1": "net_multicast", "239.1.1.1": "net_multicast", "255.255.255.255": "net_multicast", "ff02::1": "net_multicast",
		"192.0.0.1": "net_reserved", "192.0.2.1": "net_reserved", "192.88.99.1": "net_reserved", "198.18.0.1": "net_reserved", "198.19.255.255": "net_reserved", "198.51.100.1": "net_reserved", "203.0.113.1": "net_reserved", "240.0.0.1": "net_reserved",
		"64:ff9b:1::1": "net_reserved", "100::1": "net_reserved", "2001::1": "net_reserved", "2001:1ff::1": "net_reserved", "2001:db8::1": "net_reserved", "3fff::1": "net_reserved", "5f00::1": "net_reserved", "4000::1": "net_reserved", "::8.8.8.8": "net_reserved", "1::1": "net_reserved",
		"64:ff9b::7f00:1": "net_nat64", "64:ff9b::a9fe:a9fe": "net_nat64", "64:ff9b::808:404": "net_nat64", "2002:7f00:1::": "net_6to4", "2002:a00:1::1": "net_6to4", "::ffff:0:127.0.0.1": "net_siit", "::127.0.0.1": "net_compat_v6", "2606:4700::5efe:10.0.0.1": "net_isatap", "2606:4700::200:5efe:10.0.0.1": "net_isatap",
		"8.8.4.4": "net_own_interface", "2606:4700::9": "net_own_interface",
		"8.8.8.8": "", "1.1.1.1": "", "172.15.0.1": "", "172.32.0.1": "", "100.63.0.1": "", "100.128.0.1": "", "2606:4700::1111": "", "2001:200::1": "", "64:ff9b::808:808": "", "2002:808:808::": "",
	} {
		if c := classify(netip.MustParseAddr(a), own); c.rule != rule {
			t.Errorf("%s is %q, want %q", a, c.rule, rule)
		}
	}
}

// Every block's first and last address is inside, and its neighbours are what
// the other blocks say: no IPv4 address slips between by a wrong bit.
func TestClassEdges(t *testing.T) {
	for _, b := range blocks {
		for _, p := range b.prefixes {
			if classify(p.Addr(), nil) == (class{}) {
				t.Errorf("%s: the first address is free", p)
			}
			last := p.Addr().As16()
			for i := range 128 {
				if bit := 127 - i; i < p.Addr().BitLen()-p.Bits() {
					last[bit/8] |= 1 << (7 - bit%8)
				}
			}
			if a := netip.AddrFrom16(last).Unmap(); !p.Contains(a) || classify(a, nil) == (class{}) {
				t.Errorf("%s: the last address %s is free", p, a)
			}
		}
	}
}
