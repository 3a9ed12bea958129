package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

// HTTP says how the host is served over HTTP, if it is.
type HTTP struct {
	Addr      string // to listen on
	PublicURL string // what clients call this server; "" until an address is known
	Issuers   []string
	Audiences []string // what tokens may be for; none means PublicURL
	Required  []string // the rights that every token must have
	Tokens    []HTTPToken
	Origins   []string // of web pages that may call
	Hosts     []string // names that this server has beside those of its addresses
	Open      bool     // serve addresses beyond this machine without asking who calls
	TLS       HTTPTLS
	Limits    HTTPLimits
}

// HTTPLimits bound what remote callers may use.
type HTTPLimits struct {
	Body       int64 // bytes of one request
	Sessions   int
	SessionTTL time.Duration // idle sessions end after it
	Rate       float64       // requests a second of one caller
	Burst      int           // requests at once beyond the rate
	Share      float64       // part of what there is that one caller may have at once
}

// An HTTPToken is a caller that the operator gave a token to.
type HTTPToken struct {
	Name   string
	Hash   string // of the token: "sha256:HEX"
	Rights []string
}

// Asks reports whether callers have to say who they are.
func (h HTTP) Asks() bool { return len(h.Issuers) > 0 || len(h.Tokens) > 0 }

// Loopback reports whether h.Addr can be reached from this machine only.
func (h HTTP) Loopback() bool {
	host, _, err := net.SplitHostPort(h.Addr)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.Unmap().IsLoopback()
}

// Check reports what keeps h from being served. Each setting alone has been
// checked already.
func (h HTTP) Check() error {
	refuse := func(what, hint string) error {
		return &sdk.Error{Kind: sdk.Invalid, Op: "http", What: what, Hint: hint}
	}
	switch {
	case !h.Asks() && !h.Loopback() && !h.Open:
		return refuse(fmt.Sprintf("%s can be reached from other machines, and nobody would be asked who calls", h.Addr),
			"set http.issuer, make a token with: skill token; or listen on 127.0.0.1; or, if you mean it, set http.insecure_no_auth = true")
	case h.Asks() && h.Open:
		return refuse("http.insecure_no_auth is set beside http.issuer or http.tokens", "leave one of them out")
	case len(h.Issuers) > 0 && h.PublicURL == "" && !h.Loopback():
		return refuse("http.issuer is set, but not what clients call this server", `set http.public_url, such as "https://tools.example.com/mcp"`)
	case len(h.Issuers) == 0 && len(h.Audiences) > 0:
		return refuse("http.audience is set, but no http.issuer", "")
	case !h.Asks() && len(h.Required) > 0:
		return refuse("http.required_scopes is set, but nobody is asked for a token", "set http.issuer, or make a token with: skill token")
	case h.TLS.Cert == "" && h.TLS.Key != "":
		return refuse("http.tls_key is set, but not http.tls_cert", "give the certificate as well: --tls-cert FILE")
	case h.TLS.Cert != "" && h.TLS.Key == "":
		return refuse("http.tls_cert is set, but not http.tls_key", "give its key as well: --tls-key FILE")
	case h.TLS.Cert != "" && strings.HasPrefix(h.PublicURL, "http:"):
		return refuse(fmt.Sprintf("http.public_url is %q, but the server speaks TLS", h.PublicURL), "let it begin with https, or leave http.tls_cert out")
	}
	return nil
}

// httpSettings are the keys of [http].
var httpSettings = []setting{
	{"http.addr", "127.0.0.1:3000", "where `--http` listens if it names no address", func(c *Config, v string) error {
		c.HTTP.Addr = v
		return address(v)
	}},
	{"http.public_url", "", "what clients call this server, such as `https://tools.example.com/mcp`: the resource that tokens are for; default that of a loopback address", func(c *Config, v string) error {
		c.HTTP.PublicURL = v
		if v == "" {
			return nil
		}
		return secure(v)
	}},
	{"http.issuer", "", "authorization servers whose tokens are accepted, exactly as they call themselves (a list in the file)", words(func(c *Config) *[]string { return &c.HTTP.Issuers }, secure)},
	{"http.audience", "", "what tokens may be for, instead of `http.public_url` (a list in the file)", words(func(c *Config) *[]string { return &c.HTTP.Audiences }, visible)},
	{"http.required_scopes", "", "rights that every token must have (a list in the file)", words(func(c *Config) *[]string { return &c.HTTP.Required }, scope)},
	{"http.tokens", "", "callers with a token of the operator's: `NAME HASH RIGHT …`, with `;` between them (`[[http.tokens]]` in the file)", func(c *Config, v string) (err error) {
		c.HTTP.Tokens, err = tokens(v)
		return err
	}},
	{"http.allowed_origins", "", "web pages that may call, such as `https://app.example.com`, beside those of this server (a list in the file)", words(func(c *Config) *[]string { return &c.HTTP.Origins }, origin)},
	{"http.allowed_hosts", "", "names that clients may call this server by, beside that of `http.public_url` and its addresses (a list in the file)", words(func(c *Config) *[]string { return &c.HTTP.Hosts }, hostPort)},
	{"http.insecure_no_auth", "false", "serve addresses beyond this machine without asking who calls", func(c *Config, v string) error {
		c.HTTP.Open = v == "true"
		if v != "true" && v != "false" {
			return errors.New("want true or false")
		}
		return nil
	}},
	{"http.max_body", "4MiB", "size of one request", func(c *Config, v string) (err error) {
		if c.HTTP.Limits.Body, err = size(v); err == nil && (c.HTTP.Limits.Body < 1<<10 || c.HTTP.Limits.Body > 1<<30) {
			err = errors.New("want 1KiB to 1GiB")
		}
		return err
	}},
	{"http.max_sessions", "1000", "sessions at once, of all callers", count(func(c *Config) *int { return &c.HTTP.Limits.Sessions }, 1_000_000)},
	{"http.session_ttl", "30m", "a session that is not used for so long ends", func(c *Config, v string) (err error) {
		if c.HTTP.Limits.SessionTTL, err = age(v); err == nil && (c.HTTP.Limits.SessionTTL < time.Second || c.HTTP.Limits.SessionTTL > 30*24*time.Hour) {
			err = errors.New("want 1s to 30d")
		}
		return err
	}},
	{"http.rate", "50", "requests a second of one caller", func(c *Config, v string) (err error) {
		if c.HTTP.Limits.Rate, err = strconv.ParseFloat(v, 64); err != nil || !(c.HTTP.Limits.Rate >= 0.01 && c.HTTP.Limits.Rate <= 1e6) {
			return errors.New("want a number from 0.01 to 1000000")
		}
		return nil
	}},
	{"http.burst", "100", "requests at once beyond the rate, of one caller", count(func(c *Config) *int { return &c.HTTP.Limits.Burst }, 1_000_000)},
	{"http.share", "0.25", "the part of the sessions, the streams and the calls at once that one caller may have, where callers have tokens", func(c *Config, v string) (err error) {
		if c.HTTP.Limits.Share, err = strconv.ParseFloat(v, 64); err != nil || !(c.HTTP.Limits.Share >= 0.001 && c.HTTP.Limits.Share <= 1) {
			return errors.New("want a number from 0.001 to 1")
		}
		return nil
	}},
	{"http.tls_cert", "", "file with the server's certificate and those of its issuers, in PEM: it speaks TLS", pemFile(func(c *Config) *string { return &c.HTTP.TLS.Cert })},
	{"http.tls_key", "", "file with the key of that certificate, in PEM, which nobody else may read", pemFile(func(c *Config) *string { return &c.HTTP.TLS.Key })},
}

// count is the set of a setting that is a number from 1 to most.
func count(field func(*Config) *int, most int) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("want a number from 1 to %d", most)
		}
		*field(c) = n
		return nil
	}
}

// words is the set of a setting that is a list, with blanks between its
// entries, each of which check accepts.
func words(field func(*Config) *[]string, check func(string) error) func(*Config, string) error {
	return func(c *Config, v string) error {
		list := strings.Fields(v)
		for i, w := range list {
			if err := check(w); err != nil {
				return fmt.Errorf("%q: %w", w, err)
			}
			if slices.Contains(list[:i], w) {
				return fmt.Errorf("%q is there twice", w)
			}
		}
		*field(c) = list
		return nil
	}
}

func address(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New(`want HOST:PORT, such as "127.0.0.1:3000"`)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return errors.New("want a port from 0 to 65535")
	}
	return nil
}

// secure checks an address that has a scheme, a host and perhaps a path, over
// https unless it is of this machine.
func secure(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "" || visible(s) != nil:
		return errors.New(`want an absolute address, such as "https://id.example.com"`)
	case u.User != nil || strings.ContainsAny(s, "?#|*"):
		return errors.New("want no more than scheme, host and path")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return errors.New("want https (http only for loopback addresses)")
	}
	return nil
}

func visible(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return errors.New("want printable ASCII without blanks, quotes and backslashes")
	}
	return nil
}

// scope checks the name of a right: a scope of OAuth.
func scope(s string) error { return visible(s) }

func origin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme+"://"+u.Host != s || strings.ContainsAny(s, "*@") || visible(s) != nil {
		return errors.New(`want scheme, host and perhaps a port, such as "https://app.example.com"`)
	}
	if s != strings.ToLower(s) {
		return errors.New("want lower case, as browsers send it")
	}
	return nil
}

var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)

func hostPort(s string) error {
	if !hostName.MatchString(s) {
		return errors.New(`want a name in lower case, perhaps with a port, such as "tools.example.com"`)
	}
	return nil
}

// tokens reads "NAME HASH RIGHT …", with ";" between tokens.
func tokens(v string) ([]HTTPToken, error) {
	var all []HTTPToken
	for one := range strings.SplitSeq(v, ";") {
		f := strings.Fields(one)
		if len(f) == 0 {
			continue
		}
		if len(f) == 1 {
			f = append(f, "")
		}
		t := HTTPToken{f[0], f[1], slices.Clip(f[2:])}
		if err := t.check(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o HTTPToken) bool { return o.Name == t.Name || o.Hash == t.Hash }) {
			return nil, fmt.Errorf("the name or hash of token %q is there twice", t.Name)
		}
		all = append(all, t)
	}
	return all, nil
}

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

func (t HTTPToken) check() error {
	if !tokenName.MatchString(t.Name) {
		return fmt.Errorf(`bad name %q of a token: want up to 64 letters, digits, ".", "_", "@" and "-"`, t.Name)
	}
	digits, ok := strings.CutPrefix(t.Hash, "sha256:")
	if sum, err := hex.DecodeString(digits); !ok || err != nil || len(sum) != 32 || digits != strings.ToLower(digits) { // not repeated: it may be the token itself
		return fmt.Errorf(`bad hash of token %q: want "sha256:" and 64 hex digits, as "skill token" prints it; never the token`, t.Name)
	}
	for _, r := range t.Rights {
		if err := scope(r); err != nil || strings.Contains(r, ";") {
			return fmt.Errorf("bad right %q of token %q: want a scope of OAuth", r, t.Name)
		}
	}
	return nil
}

// httpFile is [http] as it is written.
type httpFile struct {
	Addr      *string  `toml:"addr"`
	PublicURL *string  `toml:"public_url"`
	Issuer    []string `toml:"issuer"`
	Audience  []string `toml:"audience"`
	Required  []string `toml:"required_scopes"`
	Origins   []string `toml:"allowed_origins"`
	Hosts     []string `toml:"allowed_hosts"`
	Open      *bool    `toml:"insecure_no_auth"`
	Cert      *string  `toml:"tls_cert"`
	Key       *string  `toml:"tls_key"`
	Tokens    []struct {
		Name   string   `toml:"name"`
		Hash   string   `toml:"hash"`
		Rights []string `toml:"rights"`
	} `toml:"tokens"`
	httpLimitsFile
}

type httpLimitsFile struct {
	Body     *string  `toml:"max_body"`
	Sessions *int     `toml:"max_sessions"`
	TTL      *string  `toml:"session_ttl"`
	Rate     *float64 `toml:"rate"`
	Burst    *int     `toml:"burst"`
	Share    *float64 `toml:"share"`
}

// values adds what f says to values, each written as in a variable. Lists are
// checked for what would be read as more entries there.
func (f *httpFile) values(doc *tomlfile.Doc, values map[string]*string) error {
	put := func(key, v string) { values["http."+key] = &v }
	for key, v := range map[string]*string{"addr": f.Addr, "public_url": f.PublicURL, "max_body": f.Body, "session_ttl": f.TTL, "tls_cert": f.Cert, "tls_key": f.Key} {
		values["http."+key] = v
	}
	for key, v := range map[string]*int{"max_sessions": f.Sessions, "burst": f.Burst} {
		if v != nil {
			put(key, strconv.Itoa(*v))
		}
	}
	for key, v := range map[string]*float64{"rate": f.Rate, "share": f.Share} {
		if v != nil {
			put(key, strconv.FormatFloat(*v, 'g', -1, 64))
		}
	}
	if f.Open != nil {
		put("insecure_no_auth", strconv.FormatBool(*f.Open))
	}
	for key, list := range map[string][]string{"issuer": f.Issuer, "audience": f.Audience, "required_scopes": f.Required, "allowed_origins": f.Origins, "allowed_hosts": f.Hosts} {
		for i, w := range list {
			if err := visible(w); err != nil {
				return wrong(doc.Pos("http", key, strconv.Itoa(i)), "http."+key, err)
			}
		}
		if list != nil {
			put(key, strings.Join(list, " "))
		}
	}
	if f.Tokens == nil {
		return nil
	}
	var all []string
	for i, t := range f.Tokens {
		if err := (HTTPToken{t.Name, t.Hash, t.Rights}).check(); err != nil {
			return wrong(doc.Pos("http", "tokens", strconv.Itoa(i)), "http.tokens", err)
		}
		all = append(all, strings.Join(append([]string{t.Name, t.Hash}, t.Rights...), " "))
	}
	put("tokens", strings.Join(all, ";"))
	return nil
}

func wrong(at capability.Pos, key string, err error) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: at.String(), What: fmt.Sprintf("%s: %v", key, err)}
}
