package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

var (
	hashA = "sha256:" + strings.Repeat("0a", 32)
	hashB = "sha256:" + strings.Repeat("0b", 32)
)

// Each setting as a variable and in the file: TestEverySetting.
var (
	goodHTTP = map[string][2]string{
		"http.addr": {"[::]:0", `"[::]:0"`}, "http.public_url": {"https://a.example/mcp", `"https://a.example/mcp"`},
		"http.issuer": {" https://a.example  http://127.0.0.1:1/x", `["https://a.example", "http://127.0.0.1:1/x"]`}, "http.audience": {"api://x y", `["api://x", "y"]`},
		"http.required_scopes": {"a:b c", `["a:b", "c"]`}, "http.tokens": {"ci " + hashA + " b a ; me " + hashB, `[{name = "ci", hash = "` + hashA + `", rights = ["b", "a"]}, {name = "me", hash = "` + hashB + `"}]`},
		"http.allowed_origins": {"https://a.example http://localhost:5173", `["https://a.example", "http://localhost:5173"]`}, "http.allowed_hosts": {"a.example:80 [::1]", `["a.example:80", "[::1]"]`},
		"http.insecure_no_auth": {"true", "true"}, "http.max_body": {"1MiB", `"1MiB"`}, "http.max_sessions": {"5", "5"}, "http.session_ttl": {"1d", `"1d"`}, "http.rate": {"0.5", "0.5"}, "http.burst": {"7", "7"},
		"http.share": {"0.5", "0.5"}, "http.tls_cert": {"/c.pem", `"/c.pem"`}, "http.tls_key": {"/k.pem", `"/k.pem"`},
	}
	badHTTP = map[string][2]string{
		"http.addr": {"3000", `"localhost"`}, "http.public_url": {"http://a.example/mcp", `"https://a.example/mcp?x"`}, "http.issuer": {"https://a https://a", `["https://u@a.example"]`},
		"http.audience": {`a"b`, `["a b"]`}, "http.required_scopes": {"a a", `["a b"]`}, "http.tokens": {"ci sha256:00", `[{name = "a b", hash = "` + hashA + `"}]`},
		"http.allowed_origins": {"*", `["https://a.example/x"]`}, "http.allowed_hosts": {"https://a", `["A.example"]`}, "http.insecure_no_auth": {"1", `"true"`},
		"http.max_body": {"1", `"4GiB"`}, "http.max_sessions": {"0", "-1"}, "http.session_ttl": {"0", `"31d"`}, "http.rate": {"NaN", "0.0"}, "http.burst": {"1e3", "1.5"},
		"http.share": {"0", "1.5"}, "http.tls_cert": {"a\x00b", `"a\u0000b"`}, "http.tls_key": {"a\x00b", `"a\u0000b"`},
	}
)

var httpExample = `[http]
addr = "0.0.0.0:3000"
public_url = "https://tools.example.com/mcp"
issuer = ["https://id.example.com/realms/a", "http://localhost:8080"]
audience = ["https://tools.example.com/mcp", "api://tools"]
required_scopes = ["skill:use"]
allowed_origins = ["https://app.example.com", "http://localhost:5173"]
allowed_hosts = ["tools.example.com", "tools.internal:3000"]
max_body = "1MiB"
max_sessions = 10
session_ttl = "1h"
rate = 2.5
burst = 5
share = 1
tls_cert = "tls/cert.pem"
tls_key = "/etc/skill/key.pem"

[[http.tokens]]
name = "ci"
hash = "` + hashA + `"
rights = ["tools.read"]

[[http.tokens]]
name = "me"
hash = "` + hashB + `"
`

func TestHTTP(t *testing.T) {
	home := t.TempDir()
	c, err := load(Flags{}, env{"SKILL_HOME": home}.get, "")
	if err != nil {
		t.Fatal(err)
	}
	want := HTTP{Addr: "127.0.0.1:3000", Limits: HTTPLimits{4 << 20, 1000, 30 * time.Minute, 50, 100, 0.25}}
	for _, l := range []*[]string{&want.Issuers, &want.Audiences, &want.Required, &want.Origins, &want.Hosts} {
		*l = []string{}
	}
	if !reflect.DeepEqual(c.HTTP, want) || c.HTTP.Asks() || !c.HTTP.Loopback() || c.HTTP.Check() != nil {
		t.Errorf("defaults %+v", c.HTTP)
	}
	file := write(t, filepath.Join(home, "config.toml"), httpExample)
	if c, err = load(Flags{HTTP: "127.0.0.1:0"}, env{"SKILL_HOME": home, "SKILL_HTTP_RATE": "9"}.get, ""); err != nil {
		t.Fatal(err)
	}
	want = HTTP{Addr: "127.0.0.1:0", PublicURL: "https://tools.example.com/mcp", Issuers: []string{"https://id.example.com/realms/a", "http://localhost:8080"},
		Audiences: []string{"https://tools.example.com/mcp", "api://tools"}, Required: []string{"skill:use"}, Tokens: []HTTPToken{{"ci", hashA, []string{"tools.read"}}, {"me", hashB, []string{}}},
		Origins: []string{"https://app.example.com", "http://localhost:5173"}, Hosts: []string{"tools.example.com", "tools.internal:3000"}, Limits: HTTPLimits{1 << 20, 10, time.Hour, 9, 5, 1}, TLS: HTTPTLS{filepath.Join(home, "tls", "cert.pem"), "/etc/skill/key.pem"}}
	if !reflect.DeepEqual(c.HTTP, want) {
		t.Errorf("%+v\nwant %+v", c.HTTP, want)
	}
	if c.Origins["http.addr"] != "--http" || c.Origins["http.rate"] != "SKILL_HTTP_RATE" || c.Origins["http.burst"] != file+":13" || !strings.HasPrefix(c.Origins["http.tokens"], file+":1") {
		t.Errorf("origins %v", c.Origins)
	}
	if _, err := load(Flags{HTTP: "3000"}, env{"SKILL_HOME": home}.get, ""); sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), "--http: ") {
		t.Errorf("--http 3000: %v", err)
	}
}

func TestHTTPRefuses(t *testing.T) {
	dir := t.TempDir()
	secret := "skill_" + strings.Repeat("S", 43)
	for name, tt := range map[string]struct{ text, want string }{
		"unknown_key":       {"[http]\nbrust = 1", `:2: unknown key "brust" in [http] (did you mean "burst"?`},
		"unknown_token_key": {"[[http.tokens]]\nname = \"a\"\nhsh = \"x\"", `:3: unknown key "hsh" in [[http.tokens]] (did you mean "hash"?`},
		"plain_token":       {"[http]\n[[http.tokens]]\nname = \"a\"\nhash = \"" + secret + "\"", `:2: http.tokens: bad hash of token "a"`},
		"no_hash":           {"[[http.tokens]]\nname = \"a\"", `bad hash`},
		"no_name":           {"[[http.tokens]]\nhash = \"" + hashA + "\"", `bad name ""`},
		"name_twice":        {"[[http.tokens]]\nname = \"a\"\nhash = \"" + hashA + "\"\n[[http.tokens]]\nname = \"a\"\nhash = \"" + hashB + "\"", `twice`},
		"hash_twice":        {"[[http.tokens]]\nname = \"a\"\nhash = \"" + hashA + "\"\n[[http.tokens]]\nname = \"b\"\nhash = \"" + hashA + "\"", `twice`},
		"hash_upper":        {"[[http.tokens]]\nname = \"a\"\nhash = \"" + strings.ToUpper(hashA) + "\"", `bad hash`},
		"right_smuggles":    {"[[http.tokens]]\nname = \"a\"\nhash = \"" + hashA + "\"\nrights = [\"x;b " + hashB + "\"]", `bad right`},
		"right_two":         {"[[http.tokens]]\nname = \"a\"\nhash = \"" + hashA + "\"\nrights = [\"x y\"]", `bad right`},
		"name_smuggles":     {"[[http.tokens]]\nname = \"a;b\"\nhash = \"" + hashA + "\"", `bad name`},
		"issuer_two_in_one": {"[http]\nissuer = [\n\"https://a.example\",\n\"https://b.example https://c.example\"]", `:4: http.issuer: `},
		"issuer_file":       {"[http]\nissuer = [\"file:///etc\"]", `absolute address`},
		"issuer_like_local": {"[http]\nissuer = [\"http://127.0.0.1.evil.example\"]", `want https`},
		"port_large":        {"[http]\naddr = \"127.0.0.1:70000\"", `want a port`},
		"port_name":         {"[http]\naddr = \"127.0.0.1:http\"", `want a port`},
		"origin_null":       {"[http]\nallowed_origins = [\"null\"]", `want scheme, host`},
		"origin_upper":      {"[http]\nallowed_origins = [\"https://A.example\"]", `lower case`},
		"origin_user":       {"[http]\nallowed_origins = [\"https://u@a.example\"]", `want scheme, host`},
		"host_glob":         {"[http]\nallowed_hosts = [\"*.example.com\"]", `want a name`},
	} {
		file := write(t, filepath.Join(dir, "config.toml"), tt.text)
		_, err := load(Flags{}, env{"SKILL_HOME": dir}.get, "")
		if sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), file) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "SSSS") {
			t.Errorf("%s: the token is in the error: %v", name, err)
		}
	}
	_, err := load(Flags{}, env{"SKILL_HOME": t.TempDir(), "SKILL_HTTP_TOKENS": "a " + secret}.get, "")
	if err == nil || strings.Contains(err.Error(), "SSSS") {
		t.Errorf("the token is in the error: %v", err)
	}
}

// Nobody is served unasked beyond this machine, unless the operator says so.
func TestHTTPCheck(t *testing.T) {
	issuer, token := []string{"https://a.example"}, []HTTPToken{{Name: "a", Hash: hashA}}
	for name, tt := range map[string]struct {
		h    HTTP
		want string
	}{
		"loopback":             {HTTP{Addr: "127.0.0.1:1"}, ""},
		"loopback_name":        {HTTP{Addr: "localhost:1"}, ""},
		"loopback_6":           {HTTP{Addr: "[::1]:1"}, ""},
		"loopback_mapped":      {HTTP{Addr: "[::ffff:127.0.0.1]:1"}, ""},
		"all":                  {HTTP{Addr: ":1"}, "other machines"},
		"all_4":                {HTTP{Addr: "0.0.0.0:1"}, "other machines"},
		"all_6":                {HTTP{Addr: "[::]:1"}, "other machines"},
		"lan":                  {HTTP{Addr: "192.168.1.2:1"}, "other machines"},
		"name_like_loopback":   {HTTP{Addr: "localhost.example:1"}, "other machines"},
		"no_address":           {HTTP{}, "other machines"},
		"open":                 {HTTP{Addr: ":1", Open: true}, ""},
		"open_and_tokens":      {HTTP{Addr: ":1", Open: true, Tokens: token}, "leave one of them out"},
		"tokens":               {HTTP{Addr: ":1", Tokens: token}, ""},
		"issuer":               {HTTP{Addr: ":1", Issuers: issuer, PublicURL: "https://x.example/mcp"}, ""},
		"issuer_nameless":      {HTTP{Addr: ":1", Issuers: issuer}, "http.public_url"},
		"issuer_local":         {HTTP{Addr: "127.0.0.1:1", Issuers: issuer}, ""},
		"audience_for_nothing": {HTTP{Addr: "127.0.0.1:1", Audiences: []string{"x"}}, "no http.issuer"},
		"required_of_nobody":   {HTTP{Addr: "127.0.0.1:1", Required: []string{"x"}}, "nobody is asked"},
		"tls":                  {HTTP{Addr: ":1", Tokens: token, TLS: HTTPTLS{"c", "k"}}, ""},
		"tls_without_key":      {HTTP{Addr: "127.0.0.1:1", TLS: HTTPTLS{Cert: "c"}}, "http.tls_key"},
		"tls_without_cert":     {HTTP{Addr: "127.0.0.1:1", TLS: HTTPTLS{Key: "k"}}, "http.tls_cert"},
		"tls_lets_nobody_in":   {HTTP{Addr: ":1", TLS: HTTPTLS{"c", "k"}}, "other machines"},
		"tls_called_plain":     {HTTP{Addr: "127.0.0.1:1", PublicURL: "http://localhost:1/mcp", TLS: HTTPTLS{"c", "k"}}, "http.public_url"},
	} {
		if err := tt.h.Check(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// The examples of both pages are settings that the host reads.
func TestHTTPPages(t *testing.T) {
	n := 0
	for _, page := range []string{"config.md", "http-auth.md"} {
		raw, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range strings.Split(string(raw), "```toml\n")[1:] {
			text, _, _ := strings.Cut(b, "```")
			c := Config{Origins: map[string]string{}}
			if err := c.file(page, []byte(text)); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
			n += len(c.HTTP.Tokens) + len(c.HTTP.Issuers)
		}
	}
	if n < 4 {
		t.Errorf("%d tokens and issuers in examples", n)
	}
}
