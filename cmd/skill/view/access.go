package view

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// ParseAccess reads an access as the audit log writes it: "KIND.VERB TARGET".
// A path is made absolute and its links are resolved. Errors are of kind Invalid.
func ParseAccess(s string) (capability.Access, error) {
	topic, target, ok := strings.Cut(s, " ")
	kind, verb, dot := strings.Cut(topic, ".")
	a := capability.Access{Kind: capability.Kind(kind), Verb: capability.Verb(verb), Target: target}
	if !ok || !dot || !known(a) {
		return a, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("access %q", s), Hint: `want for example "filesystem.read /data/x", "network.connect https://example.com" or "env.read LANG"`}
	}
	switch a.Kind {
	case capability.Filesystem:
		abs, err := filepath.Abs(target)
		if err != nil {
			return a, err
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		a.Target = filepath.ToSlash(abs)
	case capability.Network:
		net, err := parseTarget(target)
		if err != nil {
			return a, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("access %q", s), Err: err}
		}
		a.Net, a.Target = net, net.String()
	}
	return a, nil
}

func known(a capability.Access) bool {
	for _, v := range capability.Verbs(a.Kind) {
		if v == a.Verb {
			return true
		}
	}
	return false
}

// parseTarget reads "[METHOD ]scheme://host[:port]".
func parseTarget(s string) (*capability.Net, error) {
	n := new(capability.Net)
	if method, rest, ok := strings.Cut(s, " "); ok {
		n.Method, s = method, rest
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, err
	}
	n.Scheme = u.Scheme
	if n.Host, n.IP, err = capability.ParseHost(u.Hostname()); err != nil {
		return nil, err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[n.Scheme]
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q", port)
	}
	n.Port = uint16(p)
	return n, nil
}
