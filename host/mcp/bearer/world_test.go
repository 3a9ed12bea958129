package bearer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const here = "https://tools.example.com/mcp"

// keys that take long to make, made once.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	rsaOther = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A clock that tests turn.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time             { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) turn(by time.Duration)      { c.ahead.Add(int64(by)) }
func (c *clock) unix(d time.Duration) int64 { return c.now().Add(d).Unix() }

// An authority publishes keys as issuers do, and what a test makes of them.
type authority struct {
	*httptest.Server
	mu      sync.Mutex
	keys    []jose.JSONWebKey
	answer  func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
	fetches atomic.Int32                                      // of the keys
}

func newAuthority(t *testing.T, keys ...jose.JSONWebKey) *authority {
	a := &authority{keys: keys}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		keys, answer := a.keys, a.answer
		a.mu.Unlock()
		if r.URL.Path == "/keys" {
			a.fetches.Add(1)
		}
		switch {
		case answer != nil && answer(w, r):
		case r.URL.Path == "/.well-known/oauth-authorization-server":
			json.NewEncoder(w).Encode(map[string]string{"issuer": a.URL, "jwks_uri": a.URL + "/keys"})
		case r.URL.Path == "/keys":
			json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: keys})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *authority) set(keys []jose.JSONWebKey, answer func(http.ResponseWriter, *http.Request) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys, a.answer = keys, answer
}

func down(w http.ResponseWriter, r *http.Request) bool {
	w.WriteHeader(http.StatusBadGateway)
	return true
}

// public is how key is published under a name.
func public(kid string, key crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: kid, Use: "sig"}
}

// good are the claims of a token that is accepted.
func good(a *authority, c *clock) map[string]any {
	return map[string]any{"iss": a.URL, "sub": "ann", "aud": here, "exp": c.unix(time.Hour), "iat": c.unix(0), "scope": "write read", "client_id": "app"}
}

func with(claims map[string]any, key string, v any) map[string]any {
	claims = maps.Clone(claims)
	claims[key] = v
	if v == nil {
		delete(claims, key)
	}
	return claims
}

// A seal is how a token is signed.
type seal struct {
	alg  jose.SignatureAlgorithm
	key  any
	kid  string
	head map[jose.HeaderKey]any
}

func (s seal) token(payload []byte) string {
	o := (&jose.SignerOptions{}).WithType("at+jwt")
	if s.kid != "" {
		o.WithHeader("kid", s.kid)
	}
	for k, v := range s.head {
		o.WithHeader(k, v)
	}
	signed := must(must(jose.NewSigner(jose.SigningKey{Algorithm: s.alg, Key: s.key}, o)).Sign(payload))
	return must(signed.CompactSerialize())
}

func (s seal) claims(claims map[string]any) string { return s.token(must(json.Marshal(claims))) }

func open(t *testing.T, o Options) *Door {
	t.Helper()
	if o.Resource == "" {
		o.Resource = here
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func request(token string) *http.Request {
	r := httptest.NewRequest("POST", here, strings.NewReader("{}"))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// outcome is how d answers: "200 caller [rights]", or the status and the error
// of the challenge.
func outcome(t *testing.T, d *Door, r *http.Request) string {
	t.Helper()
	id, err := d.Authenticate(r)
	if err == nil {
		return fmt.Sprintf("200 %s [%s]", id.Caller, id.Rights)
	}
	var no *Refusal
	if !errors.As(err, &no) || id != (Identity{}) {
		t.Fatalf("%+v, %v", id, err)
	}
	if strings.ContainsAny(no.Challenge, "\r\n") || no.Status != http.StatusServiceUnavailable && !strings.HasPrefix(no.Challenge, `Bearer realm="skill"`) {
		t.Errorf("challenge %q", no.Challenge)
	}
	_, rest, _ := strings.Cut(no.Challenge, ` error="`)
	code, _, _ := strings.Cut(rest, `"`)
	return strings.TrimSpace(fmt.Sprintf("%d %s", no.Status, code))
}

// expect fails unless d answers token like want, of which it may be the start.
func expect(t *testing.T, name string, d *Door, token, want string) {
	t.Helper()
	if got := outcome(t, d, request(token)); got != want && !strings.HasPrefix(got, want+" ") {
		t.Errorf("%s: %s, want %s", name, got, want)
	}
}
