// Package bearer says who is behind an HTTP request: it reads the bearer token,
// checks it as an OAuth 2.1 resource server does, and returns the caller's name
// and rights, or a refusal with the status and the challenge to answer with. It
// does not know what a caller may do, what the request asks for, or how the
// refusal's body is written.
//
// docs/http-auth.md documents what it accepts.
package bearer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
)

// An Identity is who is behind a request.
type Identity struct {
	Caller  string    // "oauth:ISSUER|SUBJECT" or "token:NAME"
	Rights  string    // OAuth scopes or the token's rights, sorted, with spaces between them
	Expires time.Time // when the token does; zero for one of the configuration's
}

// Anonymous is the caller where the operator lets come in whoever reaches an
// address. It is a remote one.
const Anonymous = "anonymous"

// Options say whose tokens are accepted.
type Options struct {
	Resource  string          // the canonical URI of this server, such as "https://tools.example.com/mcp"
	Name      string          // of this server, for people; may be empty
	Issuers   []string        // the authorization servers, exactly as they call themselves
	Audiences []string        // what a token may be for; none means Resource
	Required  []string        // rights that every token must have
	Offered   func() []string // rights that mean something here, to be published beside Required; may be nil
	Tokens    []Token         // beside those of issuers
	Client    *http.Client    // asks the issuers; nil: one of our own
	Now       func() time.Time
}

// A Door checks the tokens of requests. It remembers the keys of issuers and,
// for their lifetime, tokens whose signature it has checked.
type Door struct {
	options  Options
	wanted   string // Required, as Identity.Rights
	metadata string // its URL, or "" if there is no issuer
	issuers  map[string]*issuer
	tokens   []stored
	checked  memory
}

// New checks o and returns the Door. It asks nobody: an issuer that is down
// keeps only its own tokens out.
func New(o Options) (*Door, error) {
	d := &Door{options: o, issuers: map[string]*issuer{}}
	if d.options.Now == nil {
		d.options.Now = time.Now
	}
	if err := d.resource(); err != nil {
		return nil, err
	}
	rights, err := join(o.Required)
	if err != nil {
		return nil, invalid("required rights", err.Error(), "")
	}
	d.wanted = rights
	if d.tokens, err = store(o.Tokens); err != nil {
		return nil, err
	}
	client := askOnly(o.Client)
	for _, name := range o.Issuers {
		i, err := newIssuer(name, client, d.options.Now)
		if err != nil {
			return nil, err
		}
		if d.issuers[name] != nil {
			return nil, invalid(fmt.Sprintf("issuer %q", name), "it is there twice", "")
		}
		d.issuers[name] = i
	}
	if len(d.issuers) == 0 && len(d.tokens) == 0 {
		return nil, invalid("no issuer and no token", "nobody could come in", "name an issuer, or make a token with: skill token")
	}
	return d, nil
}

// resource checks what this server is called, and finds the URL of its metadata.
func (d *Door) resource() error {
	o := &d.options
	if len(o.Issuers) == 0 {
		return nil
	}
	u, err := secureURL(o.Resource)
	if err != nil {
		return invalid(fmt.Sprintf("resource %q", o.Resource), err.Error(), `it is the address that clients use, such as "https://tools.example.com/mcp"`)
	}
	if len(o.Audiences) == 0 {
		o.Audiences = []string{o.Resource}
	}
	if slices.Contains(o.Audiences, "") {
		return invalid("an audience", "it is empty", "a token for nobody would be for this server")
	}
	well := *u
	well.Path = wellKnown + strings.TrimSuffix(u.Path, "/")
	well.RawPath = ""
	d.metadata = well.String()
	return nil
}

// Authenticate returns who is behind r. The error is a *Refusal, unless r's
// context has ended.
func (d *Door) Authenticate(r *http.Request) (Identity, error) {
	if hasToken(r.URL.RawQuery) {
		return Identity{}, d.malformed("a token in the address is not accepted")
	}
	token, err := credential(r.Header.Values("Authorization"))
	if err != nil {
		if err == errAbsent {
			return Identity{}, d.absent()
		}
		return Identity{}, d.malformed(err.Error())
	}
	id, err := d.identify(r.Context(), token)
	if err != nil {
		return Identity{}, err
	}
	if !includes(id.Rights, d.options.Required) {
		return Identity{}, d.insufficient()
	}
	return id, nil
}

// identify returns whose token it is.
func (d *Door) identify(ctx context.Context, token string) (Identity, error) {
	sum := sha256.Sum256([]byte(token))
	if tokenForm.MatchString(token) {
		if id, ok := find(d.tokens, sum); ok {
			return id, nil
		}
		return Identity{}, d.bad("the token is not known")
	}
	if len(d.issuers) == 0 {
		return Identity{}, d.bad("the token is not known")
	}
	if c, ok := d.checked.get(sum); ok && d.options.Now().Before(c.identity.Expires) {
		keys, err := c.issuer.current(ctx)
		if err != nil {
			return Identity{}, d.trouble(ctx, err)
		}
		if keys.sum == c.keys {
			return c.identity, nil
		}
	}
	c, err := d.verify(ctx, token)
	if err != nil {
		return Identity{}, err
	}
	d.checked.put(sum, c, d.options.Now())
	return c.identity, nil
}

// secureURL parses what must be an absolute address over https, or over http
// on this very machine, without anything that is no address.
func secureURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, fmt.Errorf("it is no absolute address")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		return nil, fmt.Errorf("it has more than scheme, host and path")
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`|*"\`, r) }):
		return nil, fmt.Errorf("it has a character that addresses do not have")
	case u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("want https (http only for loopback addresses)")
}

func invalid(what, why, hint string) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: "bearer.New", What: what + ": " + why, Hint: hint}
}
