package policy

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/skillhost/skill/host/capability"
)

var (
	headerName    = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") // RFC 9110, 5.6.2
	parameterName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	envName       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (r *reader) secrets() error {
	for _, name := range sortedKeys(r.in.Secrets) {
		in, path := r.in.Secrets[name], []string{"secrets", name}
		if _, err := capability.Parse(capability.Secrets, name, capability.Pos{}); err != nil {
			return r.invalid(path, fmt.Sprintf("bad name %q", name), `want letters, digits, "_", "-" and ".", such as GITHUB_TOKEN`)
		}
		b := SecretBinding{Name: name, Header: in.Header, Query: in.Query, Format: in.Format, Pos: r.doc.Pos(path...)}
		var ok bool
		if b.Source, ok = parseSource(in.Source); !ok {
			return r.invalid(at(path, "source"), fmt.Sprintf("bad source %q", in.Source), `want "env:VARIABLE", "file:/absolute/path" or "store"`)
		}
		var err error
		if b.Hosts, err = r.hosts(path, in.Hosts); err != nil {
			return err
		}
		if in.Header != "" && !headerName.MatchString(in.Header) {
			return r.invalid(at(path, "header"), fmt.Sprintf("bad header name %q", in.Header), `want for example "Authorization"`)
		}
		if in.Query != "" && (in.Header != "" || !parameterName.MatchString(in.Query)) {
			return r.invalid(at(path, "query"), fmt.Sprintf("bad parameter %q", in.Query), `want a name such as "api_key", and no header beside it`)
		}
		if in.Format != "" && (strings.Count(in.Format, "{}") != 1 || strings.ContainsFunc(in.Format, func(c rune) bool { return c < ' ' || c == 0x7f })) {
			return r.invalid(at(path, "format"), fmt.Sprintf("bad format %q", in.Format), `want one "{}" for the value, as in "Bearer {}"`)
		}
		r.p.secrets[name] = b
	}
	return nil
}

func parseSource(s string) (SecretSource, bool) {
	if s == "store" {
		return SecretSource{Kind: "store"}, true
	}
	kind, name, _ := strings.Cut(s, ":")
	switch kind {
	case "env":
		return SecretSource{kind, name}, envName.MatchString(name)
	case "file":
		return SecretSource{kind, name}, filepath.IsAbs(name) && !strings.ContainsRune(name, 0)
	}
	return SecretSource{}, false
}

// hosts reads the most hosts that a secret may go to. They are never all
// hosts, and never reached in the clear.
func (r *reader) hosts(path, hosts []string) (capability.Set, error) {
	here := at(path, "hosts")
	if len(hosts) == 0 {
		return nil, r.invalid(path, "no hosts", `say where the secret may be sent, such as hosts = ["api.github.com"]`)
	}
	var set capability.Set
	for i, h := range hosts {
		c, err := capability.Parse(capability.Network, h, r.doc.Pos(at(here, fmt.Sprint(i))...))
		switch {
		case err != nil:
			what, hint, _ := strings.Cut(strings.TrimPrefix(err.Error(), "capability.Parse: network "), ": ")
			return nil, r.entry(here, i, what, hint)
		case c.Danger() != "":
			return nil, r.entry(here, i, fmt.Sprintf("a secret may not go to %q", h), "name the hosts")
		case strings.Contains(h, "http://") || strings.Contains(h, "tcp://"):
			return nil, r.entry(here, i, fmt.Sprintf("a secret may not go to %q", h), "secrets are sent over https only")
		}
		set = append(set, c)
	}
	return set, nil
}
