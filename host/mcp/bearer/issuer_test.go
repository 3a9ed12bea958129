package bearer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/skillhost/skill/sdk"
)

func TestNewRefuses(t *testing.T) {
	_, hash := NewToken()
	token := Token{Name: "ci", Hash: hash}
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"nobody", Options{Resource: here}, "nobody could come in"},
		{"issuer_http", Options{Resource: here, Issuers: []string{"http://id.example.com"}}, "want https"},
		{"issuer_http_private", Options{Resource: here, Issuers: []string{"http://10.0.0.1"}}, "want https"},
		{"issuer_http_like_loopback", Options{Resource: here, Issuers: []string{"http://127.0.0.1.evil.example"}}, "want https"},
		{"issuer_http_localhost_suffix", Options{Resource: here, Issuers: []string{"http://localhost.evil.example"}}, "want https"},
		{"issuer_file", Options{Resource: here, Issuers: []string{"file:///etc/passwd"}}, "no absolute address"},
		{"issuer_bare", Options{Resource: here, Issuers: []string{"id.example.com"}}, "no absolute address"},
		{"issuer_user", Options{Resource: here, Issuers: []string{"https://a:b@id.example.com"}}, "more than scheme"},
		{"issuer_query", Options{Resource: here, Issuers: []string{"https://id.example.com?a"}}, "more than scheme"},
		{"issuer_empty_query", Options{Resource: here, Issuers: []string{"https://id.example.com?"}}, "more than scheme"},
		{"issuer_fragment", Options{Resource: here, Issuers: []string{"https://id.example.com#"}}, "more than scheme"},
		{"issuer_bar", Options{Resource: here, Issuers: []string{"https://id.example.com/a|b"}}, "a character"},
		{"issuer_twice", Options{Resource: here, Issuers: []string{"https://a.example", "https://a.example"}}, "twice"},
		{"resource_none", Options{Issuers: []string{"https://a.example"}}, "no absolute address"},
		{"resource_http", Options{Resource: "http://tools.example.com/mcp", Issuers: []string{"https://a.example"}}, "want https"},
		{"resource_query", Options{Resource: here + "?task_id=1", Issuers: []string{"https://a.example"}}, "more than scheme"},
		{"audience_empty", Options{Resource: here, Audiences: []string{""}, Issuers: []string{"https://a.example"}}, "an audience"},
		{"required_blank", Options{Required: []string{"a b"}, Tokens: []Token{token}}, "bad right"},
		{"token_twice", Options{Tokens: []Token{token, token}}, "twice"},
		{"token_one_hash_two_names", Options{Tokens: []Token{token, {Name: "other", Hash: hash}}}, "twice"},
	}
	for _, tt := range tests {
		if _, err := New(tt.o); sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	for _, iss := range []string{"https://id.example.com", "https://id.example.com/realms/a/", "http://127.0.0.1:8080", "http://[::1]:1/x", "http://localhost:8080"} {
		if _, err := New(Options{Resource: here, Issuers: []string{iss}}); err != nil {
			t.Errorf("%s: %v", iss, err)
		}
	}
}

// A new key is found when the first token comes that it signed; one that was
// withdrawn is not trusted any more, nor are tokens that it signed before.
func TestRotation(t *testing.T) {
	c := &clock{}
	a := newAuthority(t, public("old", rsaKey()))
	d := open(t, Options{Issuers: []string{a.URL}, Now: c.now})
	before := seal{alg: "RS256", key: rsaKey(), kid: "old"}.claims(good(a, c))
	after := seal{alg: "ES256", key: ecKey(), kid: "new"}.claims(good(a, c))
	expect(t, "before", d, before, "200")
	expect(t, "not there yet", d, after, bad)
	a.set([]jose.JSONWebKey{public("old", rsaKey()), public("new", ecKey())}, nil)
	expect(t, "too soon to look again", d, after, bad)
	c.turn(pauseKeys)
	expect(t, "found", d, after, "200")
	expect(t, "both", d, before, "200")
	a.set([]jose.JSONWebKey{public("new", ecKey())}, nil)
	expect(t, "not asked again yet", d, before, "200")
	c.turn(keysFresh)
	expect(t, "withdrawn, though remembered", d, before, bad)
	expect(t, "stays", d, after, "200")
	if n := a.fetches.Load(); n != 3 {
		t.Errorf("%d fetches, want 3", n)
	}
}

// A token that names no key is tried with new keys as well.
func TestRotationWithoutNames(t *testing.T) {
	c := &clock{}
	a := newAuthority(t, public("", rsaKey()))
	d := open(t, Options{Issuers: []string{a.URL}, Now: c.now})
	after := seal{alg: "RS256", key: rsaOther()}.claims(good(a, c))
	expect(t, "before", d, after, bad)
	a.set([]jose.JSONWebKey{public("", rsaOther())}, nil)
	c.turn(pauseKeys)
	expect(t, "after", d, after, "200")
}

// An issuer that is down makes its tokens uncheckable, not wrong and not right.
func TestIssuerDown(t *testing.T) {
	c := &clock{}
	a := newAuthority(t, public("e", ecKey()))
	secret, hash := NewToken()
	d := open(t, Options{Issuers: []string{a.URL}, Tokens: []Token{{Name: "ci", Hash: hash}}, Now: c.now})
	token := func() string { return seal{alg: "ES256", key: ecKey(), kid: "e"}.claims(good(a, c)) }
	a.set(a.keys, down)
	expect(t, "never seen", d, token(), "503")
	expect(t, "others come in", d, secret, "200 token:ci []")
	a.set(a.keys, nil)
	expect(t, "too soon to ask again", d, token(), "503")
	c.turn(pauseFailed)
	expect(t, "up", d, token(), "200")
	a.set(a.keys, down)
	expect(t, "keys are fresh", d, token(), "200")
	expect(t, "unknown key", d, seal{alg: "ES256", key: ecKey(), kid: "x"}.claims(good(a, c)), bad)
	c.turn(pauseKeys)
	expect(t, "unknown key, perhaps new", d, seal{alg: "ES256", key: ecKey(), kid: "x"}.claims(good(a, c)), "503")
	c.turn(keysFresh)
	expect(t, "keys are old but known", d, token(), "200")
	c.turn(keysStale)
	expect(t, "keys are too old", d, token(), "503")

	_, err := d.Authenticate(request(token()))
	var no *Refusal
	if !errors.As(err, &no) || no.Challenge != "" || no.Retry < time.Second || no.Cause == nil || sdk.KindOf(err) != sdk.Unavailable || strings.Contains(err.Error(), a.URL) {
		t.Errorf("%+v", no)
	}
	c.turn(pauseFailed)
	gone, cancel := context.WithCancel(t.Context())
	a.set(a.keys, func(http.ResponseWriter, *http.Request) bool { cancel(); return false })
	if _, err := d.Authenticate(request(token()).WithContext(gone)); err != nil {
		t.Errorf("the answer was there: %v", err)
	}
	expect(t, "who asked hung up, others have the keys", d, token(), "200")
}

// What an issuer publishes is read with care.
func TestHostileIssuer(t *testing.T) {
	doc := func(issuer, keys string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			json.NewEncoder(w).Encode(map[string]string{"issuer": issuer, "jwks_uri": keys})
		}
	}
	text := func(s string) func(http.ResponseWriter) { return func(w http.ResponseWriter) { fmt.Fprint(w, s) } }
	elsewhere := newAuthority(t, public("e", ecKey()))
	tests := []struct {
		name string
		doc  func(http.ResponseWriter) // nil: as it should be
		keys func(http.ResponseWriter)
	}{
		{"another_issuer", doc("https://evil.example", elsewhere.URL+"/keys"), nil},
		{"keys_over_http", doc("", "http://192.0.2.1/keys"), nil},
		{"keys_of_a_file", doc("", "file:///etc/passwd"), nil},
		{"keys_nowhere", doc("", ""), nil},
		{"no_json", text("<html>"), nil},
		{"huge", text(`{"x":"` + strings.Repeat("a", maxAnswer) + `"}`), nil},
		{"redirect", func(w http.ResponseWriter) { w.Header().Set("Location", elsewhere.URL); w.WriteHeader(302) }, nil},
		{"keys_redirect", nil, func(w http.ResponseWriter) { w.Header().Set("Location", elsewhere.URL+"/keys"); w.WriteHeader(307) }},
		{"keys_none", nil, text(`{"keys":[]}`)},
		{"keys_no_json", nil, text(`keys`)},
		{"keys_null", nil, text(`{"keys":[null, 1, {}, {"kty":"oct","k":"AAAA"}, {"kty":"new"}]}`)},
		{"keys_huge", nil, text(strings.Repeat(" ", maxAnswer+1))},
	}
	for _, tt := range tests {
		c := &clock{}
		a := newAuthority(t, public("e", ecKey()))
		a.set(a.keys, func(w http.ResponseWriter, r *http.Request) bool {
			say := tt.doc
			if r.URL.Path == "/keys" {
				say = tt.keys
			}
			if say != nil {
				rec := httptest.NewRecorder()
				say(rec)
				for k, v := range rec.Header() {
					w.Header()[k] = v
				}
				w.WriteHeader(rec.Code)
				fmt.Fprint(w, strings.Replace(rec.Body.String(), `"issuer":""`, `"issuer":"`+a.URL+`"`, 1))
			}
			return say != nil
		})
		d := open(t, Options{Issuers: []string{a.URL}, Now: c.now})
		expect(t, tt.name, d, seal{alg: "ES256", key: ecKey(), kid: "e"}.claims(good(a, c)), "503")
	}
}

// An issuer is discovered at any of the places where issuers publish.
func TestDiscovery(t *testing.T) {
	for _, path := range []string{"/.well-known/oauth-authorization-server/realms/a", "/realms/a/.well-known/openid-configuration", "/.well-known/openid-configuration/realms/a"} {
		c := &clock{}
		a := newAuthority(t, public("e", ecKey()))
		a.set(a.keys, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				json.NewEncoder(w).Encode(map[string]string{"issuer": a.URL + "/realms/a", "jwks_uri": a.URL + "/keys"})
			}
			return r.URL.Path == path
		})
		d := open(t, Options{Issuers: []string{a.URL + "/realms/a"}, Now: c.now})
		expect(t, path, d, seal{alg: "ES256", key: ecKey(), kid: "e"}.claims(with(good(a, c), "iss", a.URL+"/realms/a")), "200 oauth:"+a.URL+"/realms/a|ann")
	}
}

// An issuer over https has to prove who it is.
func TestHTTPS(t *testing.T) {
	c := &clock{}
	var tls *httptest.Server
	tls = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public("e", ecKey())}})
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"issuer": tls.URL, "jwks_uri": tls.URL + "/keys"})
	}))
	defer tls.Close()
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	token := seal{alg: "ES256", key: ecKey(), kid: "e"}.claims(with(good(&authority{Server: tls}, c), "iss", tls.URL))
	expect(t, "trusted", open(t, Options{Issuers: []string{tls.URL}, Client: tls.Client(), Now: c.now}), token, "200 oauth:"+strings.TrimPrefix(tls.URL, "https://")+"|ann")
	expect(t, "not trusted", open(t, Options{Issuers: []string{tls.URL}, Now: c.now}), token, "503")
}

// Each issuer's tokens are signed by its own keys, though another is trusted too.
func TestTwoIssuers(t *testing.T) {
	c := &clock{}
	a, b := newAuthority(t, public("k", ecKey())), newAuthority(t, public("k", rsaKey()))
	d := open(t, Options{Issuers: []string{a.URL, b.URL}, Now: c.now})
	byA, byB := seal{alg: "ES256", key: ecKey(), kid: "k"}, seal{alg: "RS256", key: rsaKey(), kid: "k"}
	expect(t, "a", d, byA.claims(good(a, c)), "200 oauth:"+a.URL+"|ann")
	expect(t, "b", d, byB.claims(good(b, c)), "200 oauth:"+b.URL+"|ann")
	expect(t, "b as a", d, byB.claims(good(a, c)), bad)
	expect(t, "a as b", d, byA.claims(good(b, c)), bad)
}

// Many at once ask the issuer once, and none waits for longer than it wants.
func TestManyAtOnce(t *testing.T) {
	c := &clock{}
	a := newAuthority(t, public("e", ecKey()))
	slow := make(chan struct{})
	a.set(a.keys, func(http.ResponseWriter, *http.Request) bool { <-slow; return false })
	d := open(t, Options{Issuers: []string{a.URL}, Now: c.now})
	token := seal{alg: "ES256", key: ecKey(), kid: "e"}.claims(good(a, c))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if got := outcome(t, d, request(token)); !strings.HasPrefix(got, "200") {
				t.Error(got)
			}
		})
	}
	for len(d.issuers[a.URL].turn) == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := d.Authenticate(request(token).WithContext(ctx)); sdk.KindOf(err) != sdk.Canceled {
		t.Errorf("waiting: %v", err)
	}
	close(slow)
	all.Wait()
	if n := a.fetches.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

// Nothing is remembered for longer than its token lives, nor without bound.
func TestMemory(t *testing.T) {
	c := &clock{}
	a := newAuthority(t, public("e", ecKey()))
	d := open(t, Options{Issuers: []string{a.URL}, Now: c.now})
	token := seal{alg: "ES256", key: ecKey(), kid: "e"}.claims(with(good(a, c), "exp", c.unix(time.Minute)))
	expect(t, "new", d, token, "200")
	if len(d.checked.known) != 1 {
		t.Fatalf("%d remembered", len(d.checked.known))
	}
	c.turn(2 * time.Minute)
	expect(t, "expired", d, token, bad)

	var m memory
	for i := range 3 * maxChecked {
		life := time.Hour
		if i%2 == 0 {
			life = -time.Hour
		}
		m.put([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, checked{identity: Identity{Expires: c.now().Add(life)}}, c.now())
		if len(m.known) > maxChecked {
			t.Fatalf("%d remembered", len(m.known))
		}
	}
}
