package bearer

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	strict "github.com/go-jose/go-jose/v4/json" // exact names, and none twice
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	keysFresh   = 10 * time.Minute // a withdrawn key is trusted no longer, if the issuer answers
	keysStale   = time.Hour        // and no longer than this if it does not
	pauseKeys   = 10 * time.Second // at least, between two looks for a key that was not there
	pauseFailed = 2 * time.Second  // at least, after a failure
	askTimeout  = 5 * time.Second
	maxAnswer   = 512 << 10 // bytes
	maxKeys     = 64
	maxTries    = 8 // keys that one token is checked with
	minRSA      = 2048
)

var (
	errSignature = errors.New("no key of the issuer has signed this")
	errClaims    = errors.New("the claims cannot be read")
)

// tooSoon is why the issuer was not asked.
type tooSoon struct{ left time.Duration }

func (t *tooSoon) Error() string {
	return fmt.Sprintf("it failed a moment ago; asked again in %v", t.left)
}

// An issuer is an authorization server whose tokens are accepted.
type issuer struct {
	url    string // exactly as it calls itself
	client *http.Client
	now    func() time.Time
	keys   atomic.Pointer[keySet]
	turn   chan struct{} // holds one value while somebody asks; it guards:
	tried  time.Time
	failed bool
}

// A keySet is what an issuer published at some time. It does not change.
type keySet struct {
	keys []jose.JSONWebKey
	sum  [sha256.Size]byte // of what was published
	at   time.Time
}

func newIssuer(name string, client *http.Client, now func() time.Time) (*issuer, error) {
	if _, err := secureURL(name); err != nil {
		return nil, invalid(fmt.Sprintf("issuer %q", name), err.Error(), `write what the tokens have as "iss", such as "https://id.example.com"`)
	}
	return &issuer{url: name, client: client, now: now, turn: make(chan struct{}, 1)}, nil
}

// prove reads the claims of t, which some key of i must have signed.
func (i *issuer) prove(ctx context.Context, t *jwt.JSONWebToken, h jose.Header, c *claims) (*keySet, error) {
	keys, err := i.current(ctx)
	if err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		fit := keys.fit(h)
		for _, k := range fit {
			var raw json.RawMessage
			if t.Claims(k.Key, &raw) != nil {
				continue
			}
			if strict.Unmarshal(raw, c) != nil {
				return nil, errClaims
			}
			return keys, nil
		}
		if again || len(fit) > 0 && h.KeyID != "" {
			return nil, errSignature
		}
		newer, err := i.refresh(ctx, keys)
		if err != nil {
			return nil, err
		}
		if newer == keys {
			return nil, errSignature
		}
		keys = newer
	}
}

// fit returns the keys that may have signed what h heads.
func (s *keySet) fit(h jose.Header) []jose.JSONWebKey {
	var fit []jose.JSONWebKey
	for _, k := range s.keys {
		if (h.KeyID == "" || k.KeyID == h.KeyID) && (k.Algorithm == "" || k.Algorithm == h.Algorithm) && len(fit) < maxTries {
			fit = append(fit, k)
		}
	}
	return fit
}

// current returns the keys of i, of which it asks if they are old. Old ones do
// for a while if i does not answer.
func (i *issuer) current(ctx context.Context) (*keySet, error) {
	s := i.keys.Load()
	if s == nil {
		return i.refresh(ctx, nil)
	}
	switch age := i.now().Sub(s.at); {
	case age < keysFresh:
		return s, nil
	case age < keysStale:
		if len(i.turn) > 0 { // somebody asks already
			return s, nil
		}
		if newer, err := i.refresh(ctx, s); err == nil {
			return newer, nil
		}
		return s, nil
	}
	return i.refresh(ctx, s)
}

// refresh asks i for its keys, unless somebody has done so since they were
// seen, or a moment ago: then it returns those, or why there are none.
func (i *issuer) refresh(ctx context.Context, seen *keySet) (*keySet, error) {
	select {
	case i.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-i.turn }()
	if s := i.keys.Load(); s != seen {
		return s, nil
	}
	now := i.now()
	since := now.Sub(i.tried)
	switch {
	case i.failed && since < pauseFailed:
		return nil, &tooSoon{pauseFailed - since}
	case !i.failed && seen != nil && since < pauseKeys:
		return seen, nil
	}
	// Who asks may hang up; others wait for the answer as well.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	s, err := i.ask(ctx)
	i.tried, i.failed = i.now(), err != nil
	if err != nil {
		return nil, err
	}
	s.at = now
	i.keys.Store(s)
	return s, nil
}

// ask discovers where the keys of i are, and reads them.
func (i *issuer) ask(ctx context.Context) (*keySet, error) {
	at, err := i.discover(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := secureURL(strings.SplitN(at, "?", 2)[0]); err != nil {
		return nil, fmt.Errorf("jwks_uri %q: %w", at, err)
	}
	raw, err := i.get(ctx, at)
	if err != nil {
		return nil, err
	}
	var published struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &published); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	s := &keySet{sum: sha256.Sum256(raw)}
	for _, one := range published.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(one, &k) == nil && usable(&k) && len(s.keys) < maxKeys { // one of an unknown kind is not for us
			s.keys = append(s.keys, k)
		}
	}
	if len(s.keys) == 0 {
		return nil, fmt.Errorf("%s: no key to check signatures with", at)
	}
	return s, nil
}

// usable reports whether k may be used to check signatures: never a secret.
func usable(k *jose.JSONWebKey) bool {
	if !k.IsPublic() || !k.Valid() || k.Use != "" && k.Use != "sig" {
		return false
	}
	r, ok := k.Key.(*rsa.PublicKey)
	return !ok || r.N.BitLen() >= minRSA
}

// discover returns where i says that its keys are: RFC 8414, or OpenID Connect
// in both spellings.
func (i *issuer) discover(ctx context.Context) (string, error) {
	u, err := url.Parse(i.url)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	tried := map[string]bool{}
	for _, p := range []string{"/.well-known/oauth-authorization-server" + path, path + "/.well-known/openid-configuration", "/.well-known/openid-configuration" + path} {
		if tried[p] {
			continue
		}
		tried[p] = true
		at := *u
		at.Path, at.RawPath = p, ""
		raw, failure := i.get(ctx, at.String())
		var no *status
		if failure != nil && !errors.As(failure, &no) { // it does not answer at all
			return "", failure
		}
		var doc struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		switch {
		case failure != nil:
			err = failure
		case json.Unmarshal(raw, &doc) != nil:
			err = fmt.Errorf("%s: no JSON", &at)
		case doc.Issuer != i.url:
			err = fmt.Errorf("%s: it is about the issuer %q", &at, doc.Issuer)
		case doc.Keys == "":
			err = fmt.Errorf("%s: no jwks_uri", &at)
		default:
			return doc.Keys, nil
		}
	}
	return "", err
}

// A status is an answer that is not 200.
type status struct {
	at   string
	code int
}

func (s *status) Error() string { return fmt.Sprintf("%s: status %d", s.at, s.code) }

func (i *issuer) get(ctx context.Context, at string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	a, err := i.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer+1))
	switch {
	case a.StatusCode != http.StatusOK:
		return nil, &status{at, a.StatusCode}
	case err != nil:
		return nil, err
	case len(raw) > maxAnswer:
		return nil, fmt.Errorf("%s: more than %d bytes", at, maxAnswer)
	}
	return raw, nil
}

// askOnly returns a client that follows nobody elsewhere: where keys come from
// is what the operator and the issuer said.
func askOnly(c *http.Client) *http.Client {
	own := http.Client{Timeout: askTimeout}
	if c != nil {
		own.Transport, own.Jar = c.Transport, nil
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}
