package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// A name whose addresses change stays what it was when the call first asked.
func TestExitRebinding(t *testing.T) {
	w := newWorld(t)
	w.names["rebind.example.com"] = [][]string{{public}, {"127.0.0.1"}}
	w.serve(public+":80", true, hello)
	w.serve("127.0.0.1:80", true, hello)
	c := w.cage()
	one := c.open("http://rebind.example.com", "rebind.example.com:80")
	for range 2 {
		if resp, _ := say(t, one, "GET http://rebind.example.com/ HTTP/1.1\r\nHost: x\r\n{auth}\r\n"); resp.StatusCode != 200 {
			t.Error(resp.Status)
		}
	}
	if _, status := tunnel(t, one, "rebind.example.com:80"); status != 200 {
		t.Error(status)
	}
	two := c.open("http://rebind.example.com") // resolves it anew
	if resp, _ := say(t, two, "GET http://rebind.example.com/ HTTP/1.1\r\nHost: x\r\n{auth}\r\n"); resp.Header.Get("X-Proxy-Error") != "net_loopback" {
		t.Error(resp.Status, resp.Header)
	}
	if l := w.lookups; !slices.Equal(l, []string{"rebind.example.com", "rebind.example.com"}) {
		t.Error("looked up", l)
	}
	for _, d := range w.dials() {
		if d != public+":80" {
			t.Error("dialled", d)
		}
	}
}

// quiet puts a server at public:22 that says "hi" and waits.
func (w *world) quiet() {
	w.raw(public+":22", func(conn net.Conn) { io.WriteString(conn, "hi"); io.Copy(io.Discard, conn) })
}

func hi(t *testing.T, conn net.Conn) {
	t.Helper()
	b := make([]byte, 2)
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != "hi" {
		t.Fatal(string(b), err)
	}
}

// The end of a call cuts its tunnels and requests, and no other call's.
func TestExitEndOfCall(t *testing.T) {
	w := newWorld(t)
	w.quiet()
	asked := make(chan bool, 1)
	w.serve(public+":80", true, func(rw http.ResponseWriter, r *http.Request) {
		rw.(http.Flusher).Flush()
		asked <- true
		<-r.Context().Done()
	})
	c := w.cage()
	u, done := c.exit.Open("one", c.grant("tcp://api.example.com:22", "http://api.example.com"), 0, nil)
	one := c.url(u, done)
	two := c.open("tcp://api.example.com:22")
	mine, _ := tunnel(t, one, "api.example.com:22")
	other, _ := tunnel(t, two, "api.example.com:22")
	hi(t, mine)
	hi(t, other)
	plain := dialProxy(t, one)
	io.WriteString(plain, "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n"+credentials(one)+"\r\n")
	<-asked
	began := time.Now()
	done()
	if took := time.Since(began); took > time.Second {
		t.Error("the end took", took)
	}
	isCut(t, mine)
	if b, err := io.ReadAll(plain); strings.HasSuffix(string(b), "0\r\n\r\n") {
		t.Errorf("half an answer looks whole: %q, %v", b, err)
	}
	other.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := other.Read(make([]byte, 1)); err == nil || !err.(net.Error).Timeout() {
		t.Error("another call's tunnel:", err)
	}
	n := len(w.records())
	time.Sleep(60 * time.Millisecond)
	if len(w.records()) != n {
		t.Error("a grant was asked after its call")
	}
}

// What the operator revokes is cut while it goes on.
func TestExitRevocation(t *testing.T) {
	w := newWorld(t)
	w.quiet()
	var mu sync.Mutex
	revoked := ""
	live := func(a capability.Access) error {
		mu.Lock()
		defer mu.Unlock()
		if revoked != "" && strings.Contains(a.Target, revoked) {
			return &sdk.Error{Kind: sdk.Denied, What: "revoked"}
		}
		return nil
	}
	w.names["localhost"] = [][]string{{"127.0.0.1"}}
	w.raw("127.0.0.1:22", func(conn net.Conn) { io.WriteString(conn, "hi"); io.Copy(io.Discard, conn) })
	started := make(chan bool, 1)
	w.serve(public+":80", true, func(rw http.ResponseWriter, r *http.Request) {
		rw.(http.Flusher).Flush()
		started <- true
		<-r.Context().Done()
	})
	c := w.cage()
	g := c.grant("tcp://api.example.com:22", "tcp://localhost:22", "tcp://127.0.0.1:22", "http://api.example.com").WithLive(live)
	proxy := c.url(c.exit.Open("call", g, 0, nil))
	byName, _ := tunnel(t, proxy, "api.example.com:22")
	byAddress, _ := tunnel(t, proxy, "localhost:22")
	hi(t, byName)
	hi(t, byAddress)
	plain := dialProxy(t, proxy)
	io.WriteString(plain, "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n"+credentials(proxy)+"\r\n")
	<-started
	for _, v := range []struct {
		target string
		conn   net.Conn
	}{{"tcp://127.0.0.1:22", byAddress}, {"tcp://api.example.com:22", byName}, {"GET http://api.example.com:80", plain}} {
		mu.Lock()
		revoked = v.target
		mu.Unlock()
		v.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(v.conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s is not cut", v.target)
		}
		if r := w.records(); r[len(r)-1] != "deny "+v.target {
			t.Errorf("recorded %q", r)
		}
	}
	mu.Lock()
	revoked = "api.example.com"
	mu.Unlock()
	resp, _ := say(t, proxy, "CONNECT api.example.com:22 HTTP/1.1\r\nHost: x\r\n{auth}\r\n")
	if resp.StatusCode != 403 {
		t.Error(resp.Status)
	}
}

// The world behind a dial that hangs is let go with the call.
func TestExitEndWhileConnecting(t *testing.T) {
	w := newWorld(t)
	dialling := make(chan bool, 1)
	b := New(Options{Resolver: w, Interfaces: func() ([]netip.Addr, error) { return nil, nil }, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dialling <- true
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cage{w, b.Serve(l)}
	defer c.exit.Close()
	u, done := c.exit.Open("x", c.grant("api.example.com"), 0, nil)
	proxy := c.url(u, done)
	conn := dialProxy(t, proxy)
	io.WriteString(conn, "CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n"+credentials(proxy)+"\r\n")
	<-dialling
	done()
	if b, _ := io.ReadAll(conn); strings.Contains(string(b), "200") {
		t.Errorf("%q", b)
	}
}
