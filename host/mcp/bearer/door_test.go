package bearer

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

func TestHeaders(t *testing.T) {
	secret, hash := NewToken()
	d := open(t, Options{Tokens: []Token{{Name: "ci", Hash: hash, Rights: []string{"b", "a", "b"}}}})
	other, _ := NewToken()
	tests := []struct {
		name   string
		query  string
		values []string
		want   string
	}{
		{"good", "", []string{"Bearer " + secret}, "200 token:ci [a b]"},
		{"good_case", "", []string{"bEARER  " + secret}, "200 token:ci"},
		{"good_query", "?task_id=1&x=access_token", []string{"Bearer " + secret}, "200 token:ci"},
		{"absent", "", nil, "401"},
		{"basic", "", []string{"Basic Ym9iOmJvYg=="}, "401"},
		{"dpop", "", []string{"DPoP " + secret}, "401"},
		{"scheme_glued", "", []string{"Bearer" + secret}, "401"},
		{"empty", "", []string{""}, "401"},
		{"two", "", []string{"Bearer " + secret, "Bearer " + secret}, "400 invalid_request"},
		{"two_other_first", "", []string{"Basic x", "Bearer " + secret}, "400 invalid_request"},
		{"two_in_one", "", []string{"Bearer " + secret + ", Bearer " + secret}, "400 invalid_request"},
		{"no_token", "", []string{"Bearer"}, "400 invalid_request"},
		{"blank_token", "", []string{"Bearer   "}, "400 invalid_request"},
		{"only_padding", "", []string{"Bearer ==="}, "400 invalid_request"},
		{"trailing_blank", "", []string{"Bearer " + secret + " "}, "400 invalid_request"},
		{"tab", "", []string{"Bearer\t" + secret}, "401"},
		{"quoted", "", []string{`Bearer "` + secret + `"`}, "400 invalid_request"},
		{"null_byte", "", []string{"Bearer " + secret + "\x00"}, "400 invalid_request"},
		{"not_ascii", "", []string{"Bearer \u00e9" + secret}, "400 invalid_request"},
		{"padding_inside", "", []string{"Bearer a=b"}, "400 invalid_request"},
		{"huge", "", []string{"Bearer " + strings.Repeat("a", maxToken+1)}, "400 invalid_request"},
		{"largest", "", []string{"Bearer " + strings.Repeat("a", maxToken)}, bad},
		{"garbage", "", []string{"Bearer garbage"}, bad},
		{"jwt_without_issuer", "", []string{"Bearer e30.e30.e30"}, bad},
		{"other_token", "", []string{"Bearer " + other}, bad},
		{"padded", "", []string{"Bearer " + secret + "="}, bad},
		{"the_hash", "", []string{"Bearer " + strings.TrimPrefix(hash, "sha256:")}, bad},
		{"in_query", "?access_token=" + secret, nil, "400 invalid_request"},
		{"in_query_too", "?a=b&access_token=" + secret, []string{"Bearer " + secret}, "400 invalid_request"},
		{"in_query_escaped", "?%61ccess_token=" + secret, nil, "400 invalid_request"},
		{"in_query_case", "?Access_Token=" + secret, nil, "400 invalid_request"},
		{"in_query_semicolon", "?a;access_token=x", nil, "400 invalid_request"},
		{"in_query_no_value", "?access_token", nil, "400 invalid_request"},
		{"in_query_broken", "?%zz=1&access_token=x", nil, "400 invalid_request"},
	}
	for _, tt := range tests {
		r := httptest.NewRequest("POST", here, nil)
		r.URL.RawQuery = strings.TrimPrefix(tt.query, "?")
		r.Header["Authorization"] = tt.values
		if got := outcome(t, d, r); got != tt.want && !strings.HasPrefix(got, tt.want+" ") {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestChallenges(t *testing.T) {
	c := &clock{}
	a := newAuthority(t, public("e", ecKey()))
	d := open(t, Options{Issuers: []string{a.URL}, Required: []string{"skill:use", "read"}, Now: c.now})
	by := seal{alg: "ES256", key: ecKey(), kid: "e"}
	const where = `, resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`
	tests := []struct{ name, token, want string }{
		{"absent", "", `Bearer realm="skill", scope="read skill:use"` + where},
		{"bad", "x", `Bearer realm="skill", error="invalid_token", error_description="the token is not one that this server can read", scope="read skill:use"` + where},
		{"lacks", by.claims(good(a, c)), `Bearer realm="skill", error="insufficient_scope", error_description="the token lacks rights that are needed here", scope="read skill:use"` + where},
		{"malformed", "a b", `Bearer realm="skill", error="invalid_request", error_description="the Authorization header is not 'Bearer' and a token"` + where},
	}
	for _, tt := range tests {
		_, err := d.Authenticate(request(tt.token))
		var no *Refusal
		var e *sdk.Error
		if !errors.As(err, &no) || no.Challenge != tt.want || !errors.As(err, &e) || no.Error() != e.Error() {
			t.Errorf("%s: %+v\nwant %s", tt.name, no, tt.want)
		}
	}
	for _, near := range []string{"skill:use", "read", "skill:use reads", "readskill:use read", "skill:use READ"} {
		expect(t, near, d, by.claims(with(good(a, c), "scope", near)), "403 insufficient_scope")
	}
	expect(t, "enough", d, by.claims(with(good(a, c), "scope", "read x skill:use")), "200")
}

func TestNewToken(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token, hash := NewToken()
		if seen[token] || seen[hash] || !tokenForm.MatchString(token) || strings.Contains(hash, token) {
			t.Fatalf("%q %q", token, hash)
		}
		seen[token], seen[hash] = true, true
		if got, err := credential([]string{"Bearer " + token}); err != nil || got != token {
			t.Fatal(got, err)
		}
	}
	token, hash := NewToken()
	for name, tt := range map[string]struct {
		t    Token
		want string
	}{
		"good":        {Token{Name: "a.b_c@d-1", Hash: hash, Rights: []string{"x"}}, ""},
		"name_none":   {Token{Hash: hash}, "bad name"},
		"name_star":   {Token{Name: "*", Hash: hash}, "bad name"},
		"name_line":   {Token{Name: "a\nb", Hash: hash}, "bad name"},
		"name_long":   {Token{Name: strings.Repeat("a", 65), Hash: hash}, "bad name"},
		"hash_none":   {Token{Name: "a"}, "bad hash"},
		"hash_short":  {Token{Name: "a", Hash: hash[:40]}, "bad hash"},
		"hash_md5":    {Token{Name: "a", Hash: "md5:" + hash[7:]}, "bad hash"},
		"hash_bare":   {Token{Name: "a", Hash: hash[7:]}, "bad hash"},
		"hash_plain":  {Token{Name: "a", Hash: token}, "keep it out of files"},
		"right_blank": {Token{Name: "a", Hash: hash, Rights: []string{"a b"}}, "bad right"},
		"right_empty": {Token{Name: "a", Hash: hash, Rights: []string{""}}, "bad right"},
	} {
		err := tt.t.Check()
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || sdk.KindOf(err) != sdk.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("%s: the error has the token", name)
		}
	}
}

func TestMetadata(t *testing.T) {
	d := open(t, Options{Issuers: []string{"https://id.example.com"}, Name: "skill", Required: []string{"use"}, Offered: func() []string { return []string{"read", "write"} }})
	ask := func(d *Door, method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		d.Metadata().ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		w := ask(d, "GET", path)
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"resource": here, "authorization_servers": []any{"https://id.example.com"}, "scopes_supported": []any{"read", "use", "write"},
			"bearer_methods_supported": []any{"header"}, "resource_name": "skill"}
		if w.Code != 200 || !reflect.DeepEqual(got, want) || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v %v", path, w.Code, w.Header(), got)
		}
	}
	if w := ask(d, "OPTIONS", "/.well-known/oauth-protected-resource"); w.Code != 204 || w.Header().Get("Access-Control-Allow-Headers") != "*" {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	if w := ask(d, "POST", "/.well-known/oauth-protected-resource"); w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
	if w := ask(d, "GET", "/.well-known/oauth-protected-resource/other"); w.Code != 404 {
		t.Errorf("another resource: %d", w.Code)
	}
	deep := open(t, Options{Resource: "https://x.example/a/mcp", Issuers: []string{"https://id.example.com"}})
	if w := ask(deep, "GET", "/.well-known/oauth-protected-resource/a/mcp"); w.Code != 200 || strings.Contains(w.Body.String(), "scopes") {
		t.Errorf("behind a path: %d %s", w.Code, w.Body)
	}
	_, hash := NewToken()
	alone := open(t, Options{Tokens: []Token{{Name: "a", Hash: hash}}})
	if w := ask(alone, "GET", "/.well-known/oauth-protected-resource"); w.Code != http.StatusNotFound {
		t.Errorf("without an issuer: %d", w.Code)
	}
	_, err := alone.Authenticate(request(""))
	var no *Refusal
	if !errors.As(err, &no) || no.Challenge != `Bearer realm="skill"` {
		t.Errorf("without an issuer: %+v", no)
	}
}

// Whatever comes in a header or an address, the parser returns a token as
// RFC 6750 has it, or an error, and never a token from an address.
func FuzzCredential(f *testing.F) {
	for _, s := range []string{"Bearer abc", "bearer  a.b-c_d~e+f/g==", "Basic x", "Bearer", "Bearer a=b", "", "Bearer a, Bearer b", "Bearer \x00"} {
		f.Add(s, "", "access_token=x")
		f.Add(s, s, "%61ccess_token=x&a;b=%zz")
	}
	f.Fuzz(func(t *testing.T, one, two, query string) {
		token, err := credential([]string{one})
		if (err == nil) != (token != "") {
			t.Fatalf("%q: %q, %v", one, token, err)
		}
		if err == nil {
			if len(token) > maxToken || strings.Trim(token, "=") == "" || !strings.HasSuffix(one, token) || !strings.EqualFold(strings.TrimRight(strings.TrimSuffix(one, token), " "), "bearer") {
				t.Fatalf("%q: %q", one, token)
			}
			for _, c := range strings.TrimRight(token, "=") {
				if c > '~' || !isTokenByte(byte(c)) {
					t.Fatalf("%q: %q", one, token)
				}
			}
		}
		if _, err := credential([]string{one, two}); err != errSeveral {
			t.Fatalf("two headers: %v", err)
		}
		r := http.Request{Header: http.Header{}, URL: must(http.NewRequest("GET", here, nil)).URL}
		r.URL.RawQuery = query
		if r.URL.Query().Has("access_token") && !hasToken(query) {
			t.Fatalf("%q", query)
		}
	})
}
