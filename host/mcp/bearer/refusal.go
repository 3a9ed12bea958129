package bearer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A Refusal is why a request does not come in, and how to say so over HTTP.
// The error that it wraps is for the caller to read: it names no issuer that
// the caller has not named, and no part of the token.
type Refusal struct {
	Status    int           // 400, 401, 403 or 503
	Challenge string        // the value of WWW-Authenticate, or ""
	Retry     time.Duration // for Retry-After; 0 for none
	Err       *sdk.Error
	Cause     error // why a token could not be checked: for the operator, not for the caller
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns r.Err.
func (r *Refusal) Unwrap() error { return r.Err }

// absent is the answer to a request without a token of ours. It names no
// error, as RFC 6750 wants: there was nothing to be wrong.
func (d *Door) absent() *Refusal {
	return d.refuse(http.StatusUnauthorized, "", "a bearer token is needed", d.wanted)
}

func (d *Door) malformed(what string) *Refusal {
	return d.refuse(http.StatusBadRequest, "invalid_request", what, "")
}

func (d *Door) bad(what string) *Refusal {
	return d.refuse(http.StatusUnauthorized, "invalid_token", what, d.wanted)
}

func (d *Door) insufficient() *Refusal {
	return d.refuse(http.StatusForbidden, "insufficient_scope", "the token lacks rights that are needed here", d.wanted)
}

// trouble is the answer if a token could not be checked, which says nothing
// about the token.
func (d *Door) trouble(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &sdk.Error{Kind: sdk.Canceled, Op: "bearer.Authenticate", What: "the request has ended", Err: ctx.Err()}
	}
	retry := pauseFailed
	if soon := (*tooSoon)(nil); errors.As(err, &soon) {
		retry = soon.left
	}
	return &Refusal{Status: http.StatusServiceUnavailable, Retry: max(retry, time.Second), Cause: err,
		Err: &sdk.Error{Kind: sdk.Unavailable, Op: "bearer.Authenticate", What: "the token cannot be checked: its issuer does not answer as it should", Hint: "try again later"}}
}

// refuse makes a Refusal. what is a constant text without quotes.
func (d *Door) refuse(status int, code, what, scope string) *Refusal {
	var b strings.Builder
	b.WriteString(`Bearer realm="skill"`)
	add := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, `, %s="%s"`, key, value)
		}
	}
	add("error", code)
	if code != "" {
		add("error_description", strings.ReplaceAll(what, `"`, "'"))
	}
	add("scope", scope)
	add("resource_metadata", d.metadata)
	kind, hint := sdk.Denied, "present a token that this server's authorization server issued for it"
	switch {
	case status == http.StatusBadRequest:
		kind, hint = sdk.Invalid, `send one header: "Authorization: Bearer TOKEN"`
	case code == "insufficient_scope":
		hint = "ask the authorization server for: " + scope
	case d.metadata == "":
		hint = "ask the operator for a token"
	}
	return &Refusal{Status: status, Challenge: b.String(), Err: &sdk.Error{Kind: kind, Op: "bearer.Authenticate", What: what, Hint: hint}}
}
