package bearer

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const bad = "401 invalid_token"

// plain is a token with any header and no good signature.
func plain(header, payload, signature string) string {
	e := base64.RawURLEncoding.EncodeToString
	return e([]byte(header)) + "." + e([]byte(payload)) + "." + e([]byte(signature))
}

// Tokens that are signed well, or pretend to be, and what they say.
func TestTokens(t *testing.T) {
	c := &clock{}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t, public("r", rsaKey()), public("e", ecKey()), public("d", edwards), public("short", short),
		jose.JSONWebKey{Key: rsaOther().Public(), KeyID: "enc", Use: "enc"}, jose.JSONWebKey{Key: rsaOther().Public(), KeyID: "ps", Algorithm: "PS256"},
		jose.JSONWebKey{Key: []byte("a secret that was published by mistake"), KeyID: "oct"})
	d := open(t, Options{Issuers: []string{a.URL}, Now: c.now})
	rs, es := seal{alg: "RS256", key: rsaKey(), kid: "r"}, seal{alg: "ES256", key: ecKey(), kid: "e"}
	ok := good(a, c)
	ann := "200 oauth:" + a.URL + "|ann"
	pub := must(x509.MarshalPKIXPublicKey(rsaKey().Public()))
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})
	payload := string(must(json.Marshal(ok)))
	head := func(k jose.HeaderKey, v any) seal { return seal{"RS256", rsaKey(), "r", map[jose.HeaderKey]any{k: v}} }
	tests := []struct{ name, token, want string }{
		{"good", es.claims(ok), ann + " [read write]"},
		{"good_rs256", rs.claims(ok), ann},
		{"good_ps256", seal{alg: "PS256", key: rsaOther(), kid: "ps"}.claims(ok), ann},
		{"good_eddsa", seal{alg: "EdDSA", key: edwards, kid: "d"}.claims(ok), ann},
		{"good_no_kid", seal{alg: "ES256", key: ecKey()}.claims(ok), ann},
		{"good_typ_jwt", head("typ", "JWT").claims(ok), ann},
		{"good_typ_long", head("typ", "application/AT+JWT").claims(ok), ann},
		{"good_audiences", es.claims(with(ok, "aud", []string{"https://other.example", here})), ann},
		{"good_scp_list", es.claims(with(with(ok, "scope", nil), "scp", []string{"b", "a", "b"})), ann + " [a b]"},
		{"good_scp_text", es.claims(with(with(ok, "scope", nil), "scp", "b a")), ann + " [a b]"},
		{"good_scope_list", es.claims(with(ok, "scope", []string{"x"})), ann + " [x]"},
		{"good_scope_before_scp", es.claims(with(ok, "scp", "admin")), ann + " [read write]"},
		{"good_no_scope", es.claims(with(ok, "scope", nil)), ann + " []"},
		{"good_expired_a_moment_ago", es.claims(with(ok, "exp", c.unix(-20*time.Second))), ann},
		{"good_valid_in_a_moment", es.claims(with(ok, "nbf", c.unix(20*time.Second))), ann},
		{"good_subject_with_bar", es.claims(with(ok, "sub", "auth0|123")), "200 oauth:" + a.URL + "|auth0|123"},
		{"subject_is_escaped", es.claims(with(ok, "sub", "a b\n*%\u00e9\"")), "200 oauth:" + a.URL + `|a%20b%0A%2A%25%C3%A9%22`},

		{"aud_other", es.claims(with(ok, "aud", "https://tools.example.com/other")), bad},
		{"aud_prefix", es.claims(with(ok, "aud", here+"/x")), bad},
		{"aud_parent", es.claims(with(ok, "aud", "https://tools.example.com")), bad},
		{"aud_case", es.claims(with(ok, "aud", "https://TOOLS.example.com/mcp")), bad},
		{"aud_none", es.claims(with(ok, "aud", nil)), bad},
		{"aud_empty_list", es.claims(with(ok, "aud", []string{})), bad},
		{"aud_empty_text", es.claims(with(ok, "aud", "")), bad},
		{"aud_number", es.claims(with(ok, "aud", 1)), bad},
		{"iss_other", es.claims(with(ok, "iss", "https://evil.example")), bad},
		{"iss_slash", es.claims(with(ok, "iss", a.URL+"/")), bad},
		{"iss_none", es.claims(with(ok, "iss", nil)), bad},
		{"iss_list", es.claims(with(ok, "iss", []string{a.URL})), bad},
		{"exp_past", es.claims(with(ok, "exp", c.unix(-time.Minute))), bad},
		{"exp_none", es.claims(with(ok, "exp", nil)), bad},
		{"exp_text", es.claims(with(ok, "exp", "never")), bad},
		{"exp_overflow", es.token([]byte(strings.Replace(payload, `"exp":`, `"exp":1e300,"x":`, 1))), bad},
		{"nbf_future", es.claims(with(ok, "nbf", c.unix(time.Minute))), bad},
		{"iat_future", es.claims(with(ok, "iat", c.unix(time.Hour/2))), bad},
		{"sub_none", es.claims(with(ok, "sub", nil)), bad},
		{"sub_empty", es.claims(with(ok, "sub", "")), bad},
		{"sub_long", es.claims(with(ok, "sub", strings.Repeat("a", 256))), bad},
		{"sub_number", es.claims(with(ok, "sub", 7)), bad},
		{"sub_broken_utf8", es.token([]byte(strings.Replace(payload, `"ann"`, "\"ann\xff\"", 1))), bad},
		{"sub_twice", es.token([]byte(strings.Replace(payload, `"sub":`, `"sub":"root","sub":`, 1))), bad},
		{"sub_in_other_case", es.token([]byte(strings.Replace(payload, `"sub":`, `"Sub":`, 1))), bad},
		{"scope_number", es.claims(with(ok, "scope", 7)), bad},
		{"scope_list_of_numbers", es.claims(with(ok, "scope", []int{7})), bad},
		{"scope_smuggled_in_list", es.claims(with(ok, "scope", []string{"read write admin"})), bad},
		{"scope_newline", es.claims(with(ok, "scope", "read\nwrite")), bad},
		{"scope_too_many", es.claims(with(ok, "scope", many(maxRights+1))), bad},
		{"bound_to_a_key", es.claims(with(ok, "cnf", map[string]string{"jkt": "x"})), bad},
		{"claims_no_object", es.token([]byte(`["iss"]`)), bad},
		{"claims_no_json", es.token([]byte(`hello`)), bad},
		{"claims_deep", es.token([]byte(strings.Repeat("[", 5000))), bad},

		{"typ_logout", head("typ", "logout+jwt").claims(ok), bad},
		{"typ_dpop", head("typ", "dpop+jwt").claims(ok), bad},
		{"typ_number", head("typ", 7).claims(ok), bad},
		{"crit_unknown", head("crit", []string{"x"}).claims(ok), bad},
		{"alg_none", plain(`{"alg":"none","typ":"at+jwt"}`, payload, ""), bad},
		{"alg_None", plain(`{"alg":"None"}`, payload, ""), bad},
		{"alg_empty", plain(`{"alg":""}`, payload, ""), bad},
		{"alg_absent", plain(`{}`, payload, "x"), bad},
		{"alg_hs256_with_public_key_pem", seal{alg: "HS256", key: asPEM, kid: "r"}.claims(ok), bad},
		{"alg_hs256_with_public_key_der", seal{alg: "HS256", key: pub, kid: "r"}.claims(ok), bad},
		{"alg_hs256_with_modulus", seal{alg: "HS256", key: rsaKey().N.Bytes(), kid: "r"}.claims(ok), bad},
		{"alg_hs256_with_published_secret", seal{alg: "HS256", key: []byte("a secret that was published by mistake"), kid: "oct"}.claims(ok), bad},
		{"alg_not_the_keys", seal{alg: "RS256", key: rsaOther(), kid: "ps"}.claims(ok), bad},
		{"key_for_encryption", seal{alg: "RS256", key: rsaOther(), kid: "enc"}.claims(ok), bad},
		{"key_too_short", seal{alg: "RS256", key: short, kid: "short"}.claims(ok), bad},
		{"kid_of_another_kind", seal{alg: "ES256", key: ecKey(), kid: "r"}.claims(ok), bad},
		{"kid_unknown", seal{alg: "ES256", key: ecKey(), kid: "nobody"}.claims(ok), bad},
		{"kid_path", seal{alg: "ES256", key: ecKey(), kid: "../../etc/passwd"}.claims(ok), bad},
		{"kid_number", plain(`{"alg":"ES256","kid":7}`, payload, "x"), bad},
		{"stranger_no_kid", seal{alg: "RS256", key: rsaOther()}.claims(ok), bad},
		{"stranger_known_kid", seal{alg: "RS256", key: rsaOther(), kid: "r"}.claims(ok), bad},
		{"stranger_own_key_in_header", seal{"RS256", rsaOther(), "", map[jose.HeaderKey]any{"jwk": jose.JSONWebKey{Key: rsaOther().Public()}}}.claims(ok), bad},
		{"stranger_own_key_address", seal{"RS256", rsaOther(), "", map[jose.HeaderKey]any{"jku": "https://evil.example/keys"}}.claims(ok), bad},
		{"encrypted", "e30.e30.e30.e30.e30", bad},
		{"unsigned_two_parts", "e30.e30", bad},
		{"detached", strings.Join([]string{strings.Split(es.claims(ok), ".")[0], "", strings.Split(es.claims(ok), ".")[2]}, "."), bad},
		{"no_token_form", "hunter2", bad},
		{"dots", "..", bad},
	}
	for _, tt := range tests {
		for range 2 { // the second time from memory, if it is remembered
			expect(t, tt.name, d, tt.token, tt.want)
		}
	}
	if n := a.fetches.Load(); n != 1 {
		t.Errorf("%d fetches of the keys: unknown names of keys must not make more, so soon", n)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" s" + strings.Repeat("a", i%7) + string(rune('a'+i%26)) + strings.Repeat("b", i/26))
	}
	return b.String()
}

// No byte of a token can be another, and none be missing, whatever was
// remembered before.
func TestFlippedBytes(t *testing.T) {
	c := &clock{}
	a := newAuthority(t, public("e", ecKey()))
	d := open(t, Options{Issuers: []string{a.URL}, Now: c.now})
	token := seal{alg: "ES256", key: ecKey(), kid: "e"}.claims(good(a, c))
	for i := range len(token) {
		flipped := []byte(token)
		flipped[i] ^= 1
		if got := outcome(t, d, request(string(flipped))); !strings.HasPrefix(got, "4") {
			t.Fatalf("byte %d: %s", i, got)
		}
		if got := outcome(t, d, request(token[:i]+token[i+1:])); !strings.HasPrefix(got, "4") {
			t.Fatalf("without byte %d: %s", i, got)
		}
		if i == len(token)/2 {
			expect(t, "whole", d, token, "200")
		}
	}
	expect(t, "twice", d, token+"."+token, bad)
	expect(t, "with more", d, token+"A", bad)
}

// Two subjects, of whatever issuers, never have one name.
func TestCallersDiffer(t *testing.T) {
	seen := map[string]string{}
	issuers := []string{"https://a.example", "https://a.example/", "https://a.example/b", "http://127.0.0.1:1", "https://127.0.0.1:1", "https://a.example/oauth:"}
	subjects := []string{"b", "/b", "|b", "b|", "a.example|b", "%62", "b%", "b*", "b%2A", "B", " b", "b ", "é", "e\u0301", "\x00", "local:bob", "token:x"}
	for _, iss := range issuers {
		i, err := newIssuer(iss, nil, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range subjects {
			name, err := i.caller(s)
			if err != nil {
				t.Fatalf("%q of %q: %v", s, iss, err)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("%q is %q of %q and %s", name, s, iss, other)
			}
			seen[name] = s + " of " + iss
			if !strings.HasPrefix(name, "oauth:") || strings.ContainsAny(name, "*\x00\n\" ") {
				t.Errorf("%q cannot be written in a policy", name)
			}
		}
	}
}
