package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/bearer"
)

// A pki is a certificate that signed itself, in the files of a server.
type pki struct {
	t         *testing.T
	cert, key string // files
	roots     *x509.CertPool
}

func newPKI(t *testing.T) *pki {
	t.Helper()
	dir := t.TempDir()
	p := &pki{t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), x509.NewCertPool()}
	p.issue(1)
	return p
}

// issue puts a new certificate, with that number, in the place of the old one.
func (p *pki) issue(serial int64) {
	p.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "skill"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		p.t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p.roots.AppendCertsFromPEM(text)
	for name, b := range map[string][]byte{p.cert: text, p.key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})} {
		if err := os.WriteFile(name+"~", b, 0o600); err != nil {
			p.t.Fatal(err)
		}
		if err := os.Rename(name+"~", name); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pki) args() []string { return []string{"--tls-cert", p.cert, "--tls-key", p.key} }

// client makes a new connection for each request.
func (p *pki) client(version uint16) *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: p.roots, MaxVersion: version}}}
}

// TestServeTLS: a client comes in over TLS, with a token and without, a
// certificate that is replaced is the server's from then on, and who does not
// speak TLS as it is today does not come in.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	p, h := newPKI(t), newHouse(t)
	_, address := h.serveHTTP(nil, append([]string{"--http=127.0.0.1:0"}, p.args()...)...)
	if !strings.HasPrefix(address, "https://127.0.0.1:") {
		t.Fatalf("it calls itself %s", address)
	}
	cs, err := gosdk.NewClient(&gosdk.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(),
		&gosdk.StreamableClientTransport{Endpoint: address, HTTPClient: p.client(0), DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := cs.CallTool(t.Context(), &gosdk.CallToolParams{Name: "TaskManager", Arguments: map[string]any{"action": "create", "text": "over TLS"}})
	if err != nil || r.IsError {
		t.Fatalf("%+v %v", r, err)
	}
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	health := strings.TrimSuffix(address, "/mcp") + "/healthz"
	serial := func() int64 {
		t.Helper()
		res, err := p.client(tls.VersionTLS12).Get(health)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.TLS == nil || res.TLS.Version != tls.VersionTLS12 || res.ProtoMajor != 1 || res.StatusCode != 200 {
			t.Fatalf("%+v", res)
		}
		return res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if n := serial(); n != 1 {
		t.Errorf("certificate %d", n)
	}
	p.issue(2)
	until(t, "new certificate", func() bool { return serial() == 2 })
	if res, err := p.client(tls.VersionTLS11).Get(health); err == nil {
		res.Body.Close()
		t.Error("TLS 1.1 is spoken")
	}
	res, err := http.Get("http" + strings.TrimPrefix(health, "https"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %d", res.StatusCode)
	}
	h.verify(0)
}

// TestTLSToken: the settings of a file will do, and tokens are asked for as ever.
func TestTLSToken(t *testing.T) {
	t.Parallel()
	p, h := newPKI(t), newHouse(t)
	token, hash := bearer.NewToken()
	h.write("config.toml", "[http]\ntls_cert = '"+p.cert+"'\ntls_key = '"+p.key+"'\n[[http.tokens]]\nname = \"ann\"\nhash = \""+hash+"\"\n")
	_, address := h.serveHTTP(nil, "--http=127.0.0.1:0")
	for head, want := range map[string]int{"": 401, "Bearer " + token: 200} {
		r, err := http.NewRequest("POST", address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if head != "" {
			r.Header.Set("Authorization", head)
		}
		res, err := p.client(0).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != want {
			t.Errorf("%q: %d %s %v", head, res.StatusCode, body, err)
		}
	}
}

// key_readable: a server whose key others can read does not start, nor does one
// that has only half of what TLS needs.
func TestTLSRefuses(t *testing.T) {
	t.Parallel()
	p, other, h := newPKI(t), newPKI(t), newHouse(t)
	refuse := func(status int, want string, args ...string) {
		t.Helper()
		cmd := exec.Command(built.skill, append([]string{"serve", "--http=127.0.0.1:0"}, args...)...)
		cmd.Dir, cmd.Env = h.work, h.env()
		var errs bytes.Buffer
		cmd.Stderr = &errs
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != status || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: %v, want status %d and %q\n%s", args, err, status, want, &errs)
		}
	}
	refuse(2, "http.tls_key", "--tls-cert", p.cert)
	refuse(2, "http.tls_cert", "--tls-key", p.key)
	refuse(2, "no such file", "--tls-cert", p.cert, "--tls-key", p.key+"x")
	refuse(2, "its own key", "--tls-cert", p.cert, "--tls-key", other.key)
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(p.key, 0o644); err != nil {
		t.Fatal(err)
	}
	refuse(3, "others can read", p.args()...)
}

// token_on_the_wire: whoever lets tokens travel in clear is told so.
func TestTokensInClear(t *testing.T) {
	t.Parallel()
	p, h := newPKI(t), newHouse(t)
	_, hash := bearer.NewToken()
	for _, c := range []struct {
		args []string
		want bool
	}{{[]string{"--http=0.0.0.0:0"}, true}, {[]string{"--http=127.0.0.1:0"}, false}, {append([]string{"--http=0.0.0.0:0"}, p.args()...), false}} {
		cmd := exec.Command(built.skill, append([]string{"serve"}, c.args...)...)
		cmd.Dir, cmd.Env = h.work, append(h.env(), "SKILL_HTTP_TOKENS=ann "+hash)
		errs := new(lines)
		cmd.Stderr = errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // all that was said is there then
		t.Cleanup(kill)
		served := "serving MCP at "
		until(t, "server", func() bool {
			return strings.Contains(errs.String(), served) && strings.Contains(errs.String(), "\n}\n")
		})
		address, _, _ := strings.Cut(errs.String()[strings.Index(errs.String(), served)+len(served):], "/mcp")
		until(t, "answer", func() bool { // a warning comes before it
			res, err := p.client(0).Get(address + "/healthz")
			if err != nil {
				return false
			}
			res.Body.Close()
			return res.StatusCode == 200
		})
		if c.want {
			until(t, "warning", func() bool { return strings.Contains(errs.String(), "without TLS") })
		}
		kill()
		if !c.want && strings.Contains(errs.String(), "without TLS") {
			t.Errorf("%v: %s", c.args, errs)
		}
	}
}
