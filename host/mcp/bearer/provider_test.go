package bearer

import (
	"bufio"
	"crypto"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A provider is the OpenID provider of npm's oidc-provider, in a process of
// its own. It is certified, and its tokens are as RFC 9068 wants them.
type provider struct {
	issuer string
	stop   func()
}

// leftOut ends a test that needs something this machine does not have: loudly,
// and in CI as a failure.
func leftOut(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("LEFT OUT: ", why)
}

// startProvider starts one that signs with key; port 0 is any.
func startProvider(t *testing.T, port, alg, kid string, key crypto.Signer) *provider {
	t.Helper()
	dir := filepath.Join("testdata", "provider")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "oidc-provider")); err != nil {
		leftOut(t, "the OpenID provider from npm is not installed (cd host/mcp/bearer/testdata/provider && npm ci)")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		leftOut(t, "there is no Node.js")
	}
	set := must(json.Marshal(map[string]any{"port": json.Number(port), "alg": alg, "ttl": 3600, "scopes": []string{"tools.read", "tools.write"},
		"keys": []jose.JSONWebKey{{Key: key, KeyID: kid, Algorithm: alg, Use: "sig"}}}))
	cmd := exec.Command(node, "provider.mjs")
	cmd.Dir = dir
	in, out := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &provider{stop: func() {
		in.Close()
		cmd.Wait()
	}}
	kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	fmt.Fprintf(in, "%s\n", set)
	lines := bufio.NewScanner(out)
	for lines.Scan() && p.issuer == "" {
		if strings.HasPrefix(lines.Text(), "http://127.0.0.1:") {
			p.issuer = lines.Text()
			break
		}
	}
	kill.Stop()
	t.Cleanup(p.stop)
	if p.issuer == "" {
		p.stop()
		t.Fatalf("the provider did not start: %s", &said)
	}
	return p
}

func (p *provider) port() string { return p.issuer[strings.LastIndexByte(p.issuer, ':')+1:] }

// token asks the provider for one, as a program with its own account does.
func (p *provider) token(t *testing.T, resource, scope string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"robot"}, "client_secret": {"a-secret-of-the-test"}, "resource": {resource}}
	if scope != "" {
		form.Set("scope", scope)
	}
	a, err := http.PostForm(p.issuer+"/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var got struct {
		Token string `json:"access_token"`
		Error string `json:"error_description"`
	}
	if err := json.NewDecoder(a.Body).Decode(&got); err != nil || got.Token == "" {
		t.Fatalf("%s: %v %s", a.Status, err, got.Error)
	}
	return got.Token
}

// TestRealProvider has a real provider sign all tokens; the clock is the
// resource server's to be wrong about.
func TestRealProvider(t *testing.T) {
	for alg, key := range map[string]crypto.Signer{"RS256": rsaKey(), "ES256": ecKey()} {
		t.Run(alg, func(t *testing.T) {
			t.Parallel()
			c := &clock{}
			p := startProvider(t, "0", alg, "one", key)
			stranger := startProvider(t, "0", alg, "one", key) // it has the same key even
			d := open(t, Options{Issuers: []string{p.issuer}, Now: c.now})
			picky := open(t, Options{Issuers: []string{p.issuer}, Required: []string{"tools.write"}, Now: c.now})
			robot := "200 oauth:" + p.issuer + "|robot"

			token := p.token(t, here, "tools.write tools.read")
			expect(t, "good", d, token, robot+" [tools.read tools.write]")
			expect(t, "no scope", d, p.token(t, here, ""), robot+" []")
			expect(t, "scope", picky, token, robot)
			expect(t, "missing scope", picky, p.token(t, here, "tools.read"), "403 insufficient_scope")
			expect(t, "wrong audience", d, p.token(t, "https://other.example/mcp", "tools.read"), bad)
			expect(t, "other issuer", d, stranger.token(t, here, "tools.read"), bad)
			r := request("")
			r.URL.RawQuery = url.Values{"access_token": {token}}.Encode()
			if got := outcome(t, d, r); got != "400 invalid_request" {
				t.Errorf("in the address: %s", got)
			}
			forge(t, d, p, token, key)

			c.turn(-time.Hour)
			expect(t, "not yet valid", open(t, Options{Issuers: []string{p.issuer}, Now: c.now}), token, bad)
			c.turn(3 * time.Hour)
			expect(t, "expired", d, token, bad)
		})
	}
}

// forge changes a token that a real provider signed.
func forge(t *testing.T, d *Door, p *provider, token string, key crypto.Signer) {
	t.Helper()
	parts := strings.Split(token, ".")
	claims := must(jose.ParseSigned(token, algorithms)).UnsafePayloadWithoutVerification()
	expect(t, "alg none", d, plain(`{"alg":"none","typ":"at+jwt"}`, string(claims), ""), bad)
	expect(t, "alg none, its signature", d, plain(`{"alg":"none"}`, string(claims), "")+parts[2], bad)
	published := must(json.Marshal(public("one", key)))
	expect(t, "alg HS256 with the public key", d, seal{alg: "HS256", key: published, kid: "one"}.token(claims), bad)
	expect(t, "unknown kid", d, seal{alg: "RS256", key: rsaOther(), kid: "two"}.token(claims), bad)
	expect(t, "stranger's key", d, seal{alg: "RS256", key: rsaOther(), kid: "one"}.token(claims), bad)
	for i := 0; i < len(token); i += 7 {
		flipped := []byte(token)
		flipped[i] ^= 1
		if got := outcome(t, d, request(string(flipped))); !strings.HasPrefix(got, "4") {
			t.Fatalf("byte %d: %s", i, got)
		}
	}
}

// TestRealRotation has the provider come back with another key, and go away.
func TestRealRotation(t *testing.T) {
	t.Parallel()
	c := &clock{}
	p := startProvider(t, "0", "RS256", "one", rsaKey())
	d := open(t, Options{Issuers: []string{p.issuer}, Now: c.now})
	first := p.token(t, here, "tools.read")
	expect(t, "first key", d, first, "200")
	p.stop()
	expect(t, "down, its keys are known", d, first, "200")
	p = startProvider(t, p.port(), "ES256", "two", ecKey())
	c.turn(pauseKeys)
	second := p.token(t, here, "tools.read")
	expect(t, "second key", d, second, "200")
	expect(t, "the first is withdrawn", d, first, bad)
	p.stop()
	c.turn(keysFresh)
	expect(t, "down", d, second, "200")
	expect(t, "down, and never asked before", open(t, Options{Issuers: []string{p.issuer}, Now: c.now}), second, "503")
}
