package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// issue makes a certificate of its own for localhost, with that number.
func issue(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// opened is a Pair whose files are looked at each time.
func opened(t *testing.T, failed func(error)) (p *Pair, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	c, k := issue(t, 1)
	write(t, cert, c)
	write(t, key, k)
	p, err := Open(Source{cert, key, os.ReadFile, failed})
	if err != nil {
		t.Fatal(err)
	}
	p.every = 0
	return p, cert, key
}

func serial(t *testing.T, p *Pair) int64 {
	t.Helper()
	c := p.current()
	x, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return x.SerialNumber.Int64()
}

// A certificate that was replaced is the one from then on; in between, when only
// one of both files is new, it is the old one, and that is said once.
func TestReplaced(t *testing.T) {
	var told []error
	p, cert, key := opened(t, func(err error) { told = append(told, err) })
	c, k := issue(t, 2)
	write(t, cert, c)
	for range 3 {
		if n := serial(t, p); n != 1 {
			t.Errorf("half replaced: %d", n)
		}
	}
	if len(told) != 1 || sdk.KindOf(told[0]) != sdk.Invalid || !strings.Contains(told[0].Error(), cert) || !strings.Contains(told[0].Error(), key) {
		t.Errorf("told %v", told)
	}
	write(t, key, k)
	if n := serial(t, p); n != 2 {
		t.Errorf("replaced: %d", n)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if n := serial(t, p); n != 2 || len(told) != 2 {
		t.Errorf("removed: %d, told %v", n, told)
	}
}

// A file that keeps its size and, by and large, its time is read again even so;
// one that has not changed for long is not.
func TestLooks(t *testing.T) {
	p, cert, key := opened(t, func(err error) { t.Error(err) })
	read := 0
	p.s.ReadKey = func(name string) ([]byte, error) { read++; return os.ReadFile(name) }
	serial(t, p)
	if read != 1 {
		t.Errorf("what may be written still: read %d times", read)
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{cert, key} {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	serial(t, p)
	read = 0
	for range 5 {
		serial(t, p)
	}
	if read != 0 {
		t.Errorf("what has not changed: read %d times", read)
	}
	p.every = time.Hour
	c, k := issue(t, 2)
	write(t, cert, c)
	write(t, key, k)
	if n := serial(t, p); n != 1 || read != 0 {
		t.Errorf("before its time: %d, read %d times", n, read)
	}
	p.looked = time.Now().Add(-2 * time.Hour)
	if n := serial(t, p); n != 2 {
		t.Errorf("in its time: %d", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		write(t, name, b)
		return name
	}
	c, k := issue(t, 1)
	_, other := issue(t, 2)
	cert, key := file("cert.pem", c), file("key.pem", k)
	exposed := &sdk.Error{Kind: sdk.Denied, What: "others can read it"}
	for name, s := range map[string]Source{
		"no_cert":     {Cert: filepath.Join(dir, "none"), Key: key},
		"no_key":      {Cert: cert, Key: filepath.Join(dir, "none")},
		"cert_folder": {Cert: dir, Key: key},
		"other_key":   {Cert: cert, Key: file("other.pem", other)},
		"not_pem":     {Cert: file("text", []byte("hello")), Key: key},
		"swapped":     {Cert: key, Key: cert},
	} {
		s.ReadKey = os.ReadFile
		if p, err := Open(s); err == nil || p != nil {
			t.Errorf("%s: %v %v", name, p, err)
		} else if strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: says too much: %v", name, err)
		}
	}
	if _, err := Open(Source{Cert: cert, Key: key, ReadKey: func(string) ([]byte, error) { return nil, exposed }}); !errors.Is(err, exposed) {
		t.Errorf("a key that is no secret: %v", err)
	}
}

// A client that speaks no TLS later than 1.1 is not served.
func TestVersions(t *testing.T) {
	p, cert, _ := opened(t, func(err error) { t.Error(err) })
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		here, there := net.Pipe()
		server := make(chan error, 1)
		go func() {
			c := tls.Server(there, p.Config())
			server <- c.Handshake()
			there.Close()
		}()
		c := tls.Client(here, &tls.Config{ServerName: "localhost", RootCAs: roots, MinVersion: version, MaxVersion: version, NextProtos: []string{"h2", "http/1.1"}})
		err := c.Handshake()
		if (err == nil) != want || want && c.ConnectionState().NegotiatedProtocol != "http/1.1" {
			t.Errorf("version %x: %v, %+v", version, err, c.ConnectionState().NegotiatedProtocol)
		}
		here.Close()
		if err := <-server; (err == nil) != want {
			t.Errorf("version %x: the server says %v", version, err)
		}
	}
}
