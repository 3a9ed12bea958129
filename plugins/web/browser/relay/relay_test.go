package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// gate is a cage's proxy: it serves who has the credentials, refuses one host,
// and says of others what it was asked.
func gate(t *testing.T) (address string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := credentials(r); !ok || user != "call" || password != "secret" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if strings.HasPrefix(r.Host, "evil.test") {
			w.Header().Set("X-Proxy-Error", "net_not_granted")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "skill: it is not granted\n")
			return
		}
		if r.Method == http.MethodConnect {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
			_, _ = io.Copy(conn, io.LimitReader(conn, 4)) // an echo
			return
		}
		fmt.Fprintf(w, "%s %s", r.Method, r.URL)
	}))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "http://", "http://call:secret@", 1)
}

func credentials(r *http.Request) (user, password string, ok bool) {
	as := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	return as.BasicAuth()
}

// browse returns a client behind a relay to upstream, which has no credentials.
func browse(t *testing.T, upstream string, over func()) (*Relay, *http.Client) {
	t.Helper()
	r, err := New(over)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if err := r.Begin(upstream); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(r.Address())
	if err != nil || u.User != nil {
		t.Fatalf("%v %v", u, err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}
	return r, &http.Client{Transport: transport, Timeout: time.Minute}
}

func TestRelay(t *testing.T) {
	r, c := browse(t, gate(t), func() { t.Error("it is not too much") })
	resp, err := c.Get("http://good.test/page?q=1")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "GET http://good.test/page?q=1" || err != nil {
		t.Errorf("%q %v", body, err)
	}
	for range 3 { // a page may try as often as it likes
		if resp, err := c.Get("http://evil.test/"); err == nil {
			resp.Body.Close()
			t.Error("a refusal is a page")
		}
		if resp, err := c.Get("https://evil.test/"); err == nil {
			resp.Body.Close()
			t.Error("a refused tunnel is one")
		}
	}
	want := []Block{{"evil.test", "it is not granted"}, {"evil.test:443", "it is not granted"}}
	if got := r.Blocks(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v", got)
	}
}

func TestTunnel(t *testing.T) {
	r, _ := browse(t, gate(t), func() {})
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.Address(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	fmt.Fprint(conn, "ping")
	if got, err := io.ReadAll(in); string(got) != "ping" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	r.Close()
	if _, err := net.Dial("tcp", strings.TrimPrefix(r.Address(), "http://")); err == nil {
		t.Error("it listens when it is closed")
	}
}

// TestTooMuch: what a page is sent is bounded, however it is packed.
func TestTooMuch(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range 2 * MaxTraffic >> 20 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	over := make(chan struct{})
	_, c := browse(t, s.URL, func() { close(over) })
	resp, err := c.Get("http://good.test/")
	if err == nil {
		var n int64
		n, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if n > MaxTraffic {
			t.Errorf("%d bytes", n)
		}
	}
	if err == nil {
		t.Error("all of it came")
	}
	<-over
}

func TestNoWayOut(t *testing.T) {
	r, err := New(func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Begin(""); sdk.KindOf(err) != sdk.Unavailable {
		t.Error(err)
	}
}
