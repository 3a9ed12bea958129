package egress

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// A Secret is a value that the host adds to requests and the guest never sees.
// It goes out only over https, only to hosts that both lists cover, never
// after a redirect has left the first request's origin, and only if the grant
// allows its use.
type Secret struct {
	Name   string
	Value  string         `json:"-"` // empty: the operator has not set it, and it is left out
	Max    capability.Set // the most hosts it may go to: the operator's
	Hosts  capability.Set // the hosts it is for: the manifest's
	Header string         // such as "Authorization"; "" if Query says it
	Query  string         // or the parameter of the URL that carries it, such as "api_key"
	Format string         // "{}" stands for the value; empty means "{}"
}

// String keeps the value out of what fmt prints.
func (s Secret) String() string { return "secret " + s.Name }

// GoString keeps the value out of %#v.
func (s Secret) GoString() string { return s.String() }

// Secrets are those bound to a call's skill.
type Secrets []Secret

// Has reports whether the operator has set a value for the secret name. Ask
// the grant first: whether a secret exists is nobody's business who may not
// use it.
func (s Secrets) Has(name string) bool {
	for i := range s {
		if s[i].Name == name && s[i].Value != "" {
			return true
		}
	}
	return false
}

// due returns the secrets that belong to requests to n.
func (s Secrets) due(n capability.Net) Secrets {
	if n.Scheme != "https" {
		return nil
	}
	var due Secrets
	acc := access(n)
	for i := range s {
		if s[i].Value != "" && s[i].Max.Covers(acc) && s[i].Hosts.Covers(acc) {
			due = append(due, s[i])
		}
	}
	return due
}

// inject adds the secrets to out. A guest that names the header of one is
// refused rather than overruled: a value of its own would act for another
// account, and it should learn why that does not work. left says that a
// redirect chose this target, which is no reason to hand it a secret.
func (s Secrets) inject(out *http.Request, g capability.Grant, left bool) error {
	for i := range s {
		if s[i].Query != "" {
			if err := s[i].unnamed(out.URL); err != nil {
				return err
			}
			continue
		}
		name := http.CanonicalHeaderKey(s[i].Header)
		if _, taken := out.Header[name]; taken {
			return &sdk.Error{Kind: sdk.Denied, Op: "egress", What: fmt.Sprintf("header %s: the host fills it in with secret %s", name, s[i].Name), Hint: "leave it out"}
		}
	}
	if left {
		return nil
	}
	for i := range s {
		if err := g.Check(capability.Access{Kind: capability.Secrets, Verb: capability.Use, Target: s[i].Name}); err != nil {
			return err
		}
		value := s[i].Value
		if s[i].Format != "" {
			value = strings.ReplaceAll(s[i].Format, "{}", value)
		}
		if s[i].Query != "" {
			if out.URL.Query().Has(s[i].Query) {
				return invalid(fmt.Sprintf("two secrets for the parameter %s of %s", s[i].Query, out.URL.Host), "narrow the hosts of one")
			}
			if out.URL.RawQuery != "" {
				out.URL.RawQuery += "&"
			}
			out.URL.RawQuery += url.QueryEscape(s[i].Query) + "=" + url.QueryEscape(value)
			continue
		}
		name := http.CanonicalHeaderKey(s[i].Header)
		if _, taken := out.Header[name]; taken {
			return invalid(fmt.Sprintf("two secrets for header %s of %s", name, out.URL.Host), "narrow the hosts of one")
		}
		if judgeHeader(name, value) != nil { // its error may quote the value
			return invalid(fmt.Sprintf("secret %s does not make a valid header %s", s[i].Name, name), "check its value for line breaks")
		}
		out.Header[name] = []string{value}
	}
	return nil
}

// unnamed refuses a URL that has the parameter of s already, as inject does
// with headers. One that came back from the server, in a redirect, has the
// mark that stands for the value: it is taken out.
func (s *Secret) unnamed(u *url.URL) error {
	for _, v := range u.Query()[s.Query] {
		if v != "[secret "+s.Name+"]" {
			return &sdk.Error{Kind: sdk.Denied, Op: "egress", What: fmt.Sprintf("parameter %s: the host fills it in with secret %s", s.Query, s.Name), Hint: "leave it out"}
		}
		q := u.Query()
		q.Del(s.Query)
		u.RawQuery = q.Encode()
	}
	return nil
}
