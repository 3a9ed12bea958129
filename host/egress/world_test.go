package egress

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// A world is a small internet on loopback: a resolver that the test writes,
// and servers that stand at public-looking addresses.
type world struct {
	t     *testing.T
	roots *x509.CertPool
	leaf  tls.Certificate
	own   []netip.Addr

	mu      sync.Mutex
	names   map[string][][]string // answers, one lookup after the other; the last one stays
	lookups []string
	places  map[string]string // "address:port" as dialled → loopback listener
	dialled []string
	record  []string // "allow TARGET" or "deny TARGET"
	denials []error
}

const public, second = "93.184.216.34", "198.41.0.4"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, names: map[string][][]string{}, places: map[string]string{}}
	w.roots, w.leaf = authorityFor(t, "api.example.com", "other.example.com", "localhost", "rebind.example.com")
	for _, n := range []string{"api.example.com", "rebind.example.com"} {
		w.names[n] = [][]string{{public}}
	}
	w.names["other.example.com"] = [][]string{{second}}
	w.names["localhost"] = [][]string{{"127.0.0.1"}}
	return w
}

func authorityFor(t *testing.T, names ...string) (*x509.CertPool, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(caDER)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool, tls.Certificate{Certificate: [][]byte{leafDER, caDER}, PrivateKey: key}
}

// serve puts a server at address:port, with TLS unless plain.
func (w *world) serve(address string, plain bool, h http.HandlerFunc) *httptest.Server {
	w.t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of refused handshakes
	if plain {
		s.Start()
	} else {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{w.leaf}}
		s.EnableHTTP2 = true
		s.StartTLS()
	}
	w.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	w.place(address, s.Listener.Addr().String())
	return s
}

func (w *world) place(address, listener string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places[address] = listener
}

func (w *world) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups = append(w.lookups, host)
	answers := w.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "192.168.7.7:53", IsNotFound: true}
	}
	var out []netip.Addr
	for _, s := range answers[0] {
		out = append(out, netip.MustParseAddr(s))
	}
	if len(answers) > 1 {
		w.names[host] = answers[1:]
	}
	return out, nil
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	to := w.places[address]
	w.mu.Unlock()
	if to == "" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

func (w *world) broker() *Broker {
	return New(Options{Resolver: w, Dial: w.dial, RootCAs: w.roots, Interfaces: func() ([]netip.Addr, error) { return w.own, nil }})
}

// grant returns a grant of one manifest layer whose network list is entries;
// "secret:NAME" grants a secret.
func (w *world) grant(entries ...string) capability.Grant {
	w.t.Helper()
	l := capability.Layer{Name: "manifest", Closed: true, Table: "[capabilities]", Pos: capability.Pos{File: "skill.toml", Line: 1}, Allow: set(w.t, entries...)}
	return w.stack(l)
}

func (w *world) stack(layers ...capability.Layer) capability.Grant {
	return capability.NewGrant(layers, func(a capability.Access, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		verdict := "allow "
		if err != nil {
			verdict = "deny "
			w.denials = append(w.denials, err)
		}
		w.record = append(w.record, verdict+a.Target)
	})
}

func set(t testing.TB, entries ...string) capability.Set {
	t.Helper()
	var s capability.Set
	for _, e := range entries {
		kind := capability.Network
		if name, ok := strings.CutPrefix(e, "secret:"); ok {
			kind, e = capability.Secrets, name
		}
		c, err := capability.Parse(kind, e, capability.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, c)
	}
	return s
}

func (w *world) client(g capability.Grant, s ...Secret) *http.Client {
	return w.broker().Client(g, func() Secrets { return s }, 1<<20)
}

// get fetches url and returns the status, the body and the error of either.
func (w *world) get(c *http.Client, url string) (int, string, error) {
	return w.do(c, "GET", url, "", nil)
}

func (w *world) do(c *http.Client, method, url, body string, header http.Header) (int, string, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		w.t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialled)
}

func (w *world) records() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.record)
}

// refused fails unless err is an *sdk.Error of the kind whose text has all parts.
func refused(t *testing.T, err error, kind sdk.Kind, parts ...string) {
	t.Helper()
	var e *sdk.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("got error %v of kind %q, want kind %q", err, sdk.KindOf(err), kind)
	}
	for _, p := range parts {
		if !strings.Contains(e.Error(), p) {
			t.Errorf("error %q does not say %q", e.Error(), p)
		}
	}
}

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s %s", r.Method, r.Host) }

func redirect(to string, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	}
}
