package bearer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// leeway is how far the issuer's clock may be from ours.
const leeway = 30 * time.Second

const (
	maxSubject = 255 // bytes, as OpenID Connect bounds it
	maxCaller  = 512 // bytes of a caller's name, as the record keeps it
)

// algorithms are all that is accepted. There is no "none" and no HMAC among
// them: a public key must never be taken for a shared secret.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// types are what the header of an access token may say it is: RFC 9068's, or
// what issuers write that do not follow it.
var types = []string{"", "at+jwt", "application/at+jwt", "jwt"}

// claims are what a token says.
type claims struct {
	jwt.Claims
	Scope scopes          `json:"scope"`
	Scp   scopes          `json:"scp"`
	Bound json.RawMessage `json:"cnf"`
}

// verify returns who the bearer of a signed token is.
func (d *Door) verify(ctx context.Context, token string) (checked, error) {
	t, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(t.Headers) != 1 || !canonical(token) {
		return checked{}, d.bad("the token is not one that this server can read")
	}
	h := t.Headers[0]
	if typ, ok := h.ExtraHeaders[jose.HeaderType]; ok {
		if s, ok := typ.(string); !ok || !slices.Contains(types, strings.ToLower(s)) {
			return checked{}, d.bad("the token is not an access token")
		}
	}
	var unproved struct {
		Issuer string `json:"iss"`
	}
	if err := t.UnsafeClaimsWithoutVerification(&unproved); err != nil {
		return checked{}, d.bad("the token is not one that this server can read")
	}
	i := d.issuers[unproved.Issuer]
	if i == nil {
		return checked{}, d.bad("the token is of an issuer that is not trusted here")
	}
	var c claims
	keys, err := i.prove(ctx, t, h, &c)
	switch {
	case errors.Is(err, errSignature):
		return checked{}, d.bad("the token is not signed by its issuer")
	case errors.Is(err, errClaims):
		return checked{}, d.bad("the token is not one that this server can read")
	case err != nil:
		return checked{}, d.trouble(ctx, err)
	}
	id, err := d.accept(i, &c)
	return checked{id, i, keys.sum}, err
}

// canonical reports whether token is the only spelling of what it says: the
// last letter of each part may have bits that mean nothing.
func canonical(token string) bool {
	for part := range strings.SplitSeq(token, ".") {
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return false
		}
	}
	return true
}

// accept returns who c, which i signed, is about, if c is for this server and
// this moment.
func (d *Door) accept(i *issuer, c *claims) (Identity, error) {
	if c.Expiry == nil || len(c.Audience) == 0 {
		return Identity{}, d.bad("the token does not say for whom or until when it is")
	}
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: i.url, AnyAudience: d.options.Audiences, Time: d.options.Now()}, leeway)
	switch {
	case errors.Is(err, jwt.ErrInvalidAudience):
		return Identity{}, d.bad("the token is for another server")
	case errors.Is(err, jwt.ErrExpired):
		return Identity{}, d.bad("the token has expired")
	case err != nil:
		return Identity{}, d.bad("the token is not valid yet")
	case len(c.Bound) > 0 && string(c.Bound) != "null": // a thief could present it as well as its owner
		return Identity{}, d.bad("the token is bound to a key, which this server cannot check")
	}
	caller, err := i.caller(c.Subject)
	if err != nil {
		return Identity{}, d.bad("the token does not say well whose it is")
	}
	list := c.Scope
	if !list.said {
		list = c.Scp
	}
	rights, err := join(list.list)
	if err != nil {
		return Identity{}, d.bad("the token does not say well which rights it gives")
	}
	return Identity{Caller: caller, Rights: rights, Expires: c.Expiry.Time()}, nil
}

// caller names the subject of i. The first "|" ends the issuer, which has none,
// so that no two subjects of any issuers have one name. What a policy could not
// write, or a terminal would obey, is escaped.
func (i *issuer) caller(subject string) (string, error) {
	// A broken character was replaced by this one: two subjects may look alike.
	if subject == "" || len(subject) > maxSubject || strings.ContainsRune(subject, '\uFFFD') {
		return "", errors.New("no subject")
	}
	var b strings.Builder
	b.WriteString("oauth:" + strings.TrimPrefix(i.url, "https://") + "|")
	for k := range len(subject) {
		if c := subject[k]; c <= ' ' || c > '~' || strings.IndexByte(`%*"\`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	if b.Len() > maxCaller {
		return "", errors.New("too long")
	}
	return b.String(), nil
}
