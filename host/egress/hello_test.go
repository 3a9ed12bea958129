package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// Nothing that is cut short is taken for a hello, and nothing is read past one.
func TestReadHello(t *testing.T) {
	good := clientHello(t, "api.example.com", nil)
	for n := range good {
		if _, name, err := readHello(bytes.NewReader(good[:n])); err == nil {
			t.Fatalf("%d of %d bytes make a hello for %q", n, len(good), name)
		}
	}
	r := bytes.NewReader(append(good[:len(good):len(good)], "rest"...))
	raw, name, err := readHello(r)
	if err != nil || name != "api.example.com" || !bytes.Equal(raw, good) || r.Len() != 4 {
		t.Errorf("%q, %v, %d bytes, %d left", name, err, len(raw), r.Len())
	}
	for i := range good { // a length that lies by one, and everything else
		for _, by := range []byte{1, 255, 128} {
			bad := bytes.Clone(good)
			bad[i] += by
			agree(t, bad)
		}
	}
}

// agree fails if the standard library reads another name out of data than
// readHello does.
func agree(t *testing.T, data []byte) {
	t.Helper()
	raw, name, err := readHello(bytes.NewReader(data))
	if !bytes.HasPrefix(data, raw) {
		t.Fatalf("%x is not what came", raw)
	}
	if err != nil {
		return
	}
	tls.Server(&script{r: bytes.NewReader(data)}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		if h.ServerName != name {
			t.Errorf("%q for us, %q for crypto/tls, in %x", name, h.ServerName, data)
		}
		return nil, errors.New("seen")
	}}).HandshakeContext(context.Background())
}

// A script is a connection whose other side says what r has.
type script struct {
	net.Conn
	r io.Reader
}

func (s *script) Read(b []byte) (int, error)  { return s.r.Read(b) }
func (s *script) Write(b []byte) (int, error) { return len(b), nil }
func (s *script) Close() error                { return nil }

func FuzzHello(f *testing.F) {
	small := func(c *tls.Config) { c.MaxVersion, c.CurvePreferences = tls.VersionTLS12, []tls.CurveID{tls.X25519} }
	good := clientHello(f, "api.example.com", small)
	for _, seed := range [][]byte{good, records(good, 70), clientHello(f, "1.2.3.4", small), []byte("GET / HTTP/1.1\r\n\r\n"), {0x80, 0x2e, 1, 0, 2}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) { agree(t, data) })
}

// Whatever a request to the proxy looks like, its target is one that a grant
// can judge, in its one form, and has nothing of the rest of the request.
func FuzzProxyRequest(f *testing.F) {
	for _, line := range []string{
		"GET http://api.example.com/ HTTP/1.1", "CONNECT api.example.com:443 HTTP/1.1", "CONNECT [::1]:443 HTTP/1.1", "CONNECT 0x7f.1:443 HTTP/1.1",
		"GET http://api.example.com:80@other.example.com/ HTTP/1.1", "CONNECT api.example.com:443/x HTTP/1.1", "GET http://[::ffff:127.0.0.1]:8080/ HTTP/1.0",
		"POST http://１２７.0.0.1/ HTTP/1.1", "CONNECT api.example.com.:65535 HTTP/1.1", "PRI * HTTP/2.0", "GET http://xn--bcher-kva.example/ HTTP/1.1",
	} {
		f.Add([]byte(line + "\r\nHost: other.example.com\r\n\r\n"))
	}
	all := capability.NewGrant([]capability.Layer{{Name: "manifest", Closed: true, Allow: set(f, "*", "http://*")}}, nil)
	p := &pass{trip: New(Options{}).trip(all)}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return
		}
		var n capability.Net
		if r.Method == http.MethodConnect {
			n, err = tunnelTarget(r)
			n.Scheme = "https"
		} else {
			n, err = p.plainTarget(r)
		}
		if err != nil {
			if ruleOf(err) == "" {
				t.Errorf("no rule: %v", err)
			}
			return
		}
		var e *sdk.Error
		if err := all.Check(access(n)); errors.As(err, &e) && e.Denial.Layer == "host" { // no layer: it is malformed
			t.Errorf("%q leads to %s: %v", data, n.String(), err)
		}
		spelled := n.Host
		if n.IP.Is6() {
			spelled = "[" + n.Host + "]"
		}
		if host, ip, err := capability.ParseHost(spelled); err != nil || host != n.Host || ip != n.IP {
			t.Errorf("%q leads to %q, which reads as %q, %v, %v", data, n.Host, host, ip, err)
		}
		if a, err := netip.ParseAddr(n.Host); (err == nil) != n.IP.IsValid() || err == nil && a != n.IP {
			t.Errorf("%q is and is not an address", n.Host)
		}
		if n.Port == 0 || strings.ContainsAny(n.Host, "/\\@?#%: \r\n\t\x00") && !n.IP.Is6() {
			t.Errorf("%q leads to %q:%d", data, n.Host, n.Port)
		}
		if name := n.Host; !n.IP.IsValid() && judgeName(n, name+".x") == nil {
			t.Errorf("%q is taken for %q", name+".x", name)
		}
	})
}
