package egress

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// Target returns what a request with method (empty means GET) to u touches.
// It refuses, with kind Invalid, whatever two readers could read differently:
// schemes but http and https, users and passwords, ambiguous hosts and ports.
func Target(u *url.URL, method string) (capability.Net, error) {
	n := capability.Net{Scheme: u.Scheme, Method: method}
	if method == "" {
		n.Method = http.MethodGet
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return capability.Net{}, invalid(fmt.Sprintf("URL scheme %q", u.Scheme), "want https or http")
	case u.Opaque != "" || u.Host == "":
		return capability.Net{}, invalid("URL without a host", "want https://HOST/PATH")
	case u.User != nil:
		return capability.Net{}, invalid("URL with a user or a password (rule net_userinfo)", "use a secret bound to the host")
	case len(n.Method) > 32 || strings.Trim(n.Method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "":
		return capability.Net{}, invalid(fmt.Sprintf("HTTP method %q", clip(method)), "want upper-case letters")
	case n.Method == http.MethodConnect || n.Method == http.MethodTrace:
		// A tunnel would carry what nobody can judge; TRACE echoes secrets.
		return capability.Net{}, invalid("HTTP method "+n.Method, "CONNECT and TRACE are not offered")
	}
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		host = "[" + host + "]"
	}
	var err error
	if n.Host, n.IP, err = capability.ParseHost(host); err != nil {
		return capability.Net{}, invalid("URL: "+err.Error(), "")
	}
	if n.Port, err = portOf(u); err != nil {
		return capability.Net{}, err
	}
	return n, nil
}

func portOf(u *url.URL) (uint16, error) {
	p := u.Port()
	if p == "" {
		if strings.HasSuffix(u.Host, ":") || !strings.HasSuffix(u.Host, "]") && strings.Contains(u.Host, ":") {
			return 0, invalid("URL with a bad port", "want 1 to 65535")
		}
		if u.Scheme == "http" {
			return 80, nil
		}
		return 443, nil
	}
	v, err := strconv.ParseUint(p, 10, 16)
	if err != nil || v == 0 || strconv.FormatUint(v, 10) != p {
		return 0, invalid(fmt.Sprintf("URL port %q", clip(p)), "want 1 to 65535")
	}
	return uint16(v), nil
}

// authority returns the host and port of n as a URL spells them.
func authority(n capability.Net) string {
	host := n.Host
	if n.IP.Is6() {
		host = "[" + host + "]"
	}
	if n.Port == 443 && n.Scheme == "https" || n.Port == 80 && n.Scheme == "http" {
		return host
	}
	return host + ":" + strconv.Itoa(int(n.Port))
}

func access(n capability.Net) capability.Access {
	return capability.Access{Kind: capability.Network, Verb: capability.Connect, Target: n.String(), Net: &n}
}

// Headers that describe the connection, its framing or what the host itself
// negotiates. A guest that names one could make two readers disagree about
// where a request goes or ends.
var reserved = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Keep-Alive": true,
	"Te": true, "Trailer": true, "Upgrade": true, "Expect": true, "Accept-Encoding": true, "Http2-Settings": true,
}

// judgeHeaders refuses what could break out of a header line, and what is the
// host's to say.
func judgeHeaders(h http.Header) error {
	for name, values := range h {
		if err := judgeHeader(name, values...); err != nil {
			return err
		}
	}
	if n := size(h); n > maxRequestHeader {
		return &sdk.Error{Kind: sdk.Limit, Op: "egress", What: fmt.Sprintf("%d bytes of request headers", n), Hint: fmt.Sprintf("at most %d", maxRequestHeader)}
	}
	return nil
}

// size returns how many bytes h takes on the wire.
func size(h http.Header) int {
	n := 0
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

func judgeHeader(name string, values ...string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !tokenRune(r) }) {
		return invalid(fmt.Sprintf("header name %q (rule net_header_crlf)", clip(name)), "want letters, digits and hyphens")
	}
	if canonical := http.CanonicalHeaderKey(name); reserved[canonical] || strings.HasPrefix(canonical, "Proxy-") {
		return invalid("header "+canonical, "the host sets it itself; leave it out")
	}
	for _, v := range values {
		for i := 0; i < len(v); i++ {
			if v[i] < ' ' && v[i] != '\t' || v[i] == 0x7f {
				return invalid("header "+http.CanonicalHeaderKey(name)+" has a control character in its value (rule net_header_crlf)", "")
			}
		}
	}
	return nil
}

// tokenRune reports whether r may be part of a header's name (RFC 9110, 5.6.2).
func tokenRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func invalid(what, hint string) *sdk.Error {
	return &sdk.Error{Kind: sdk.Invalid, Op: "egress", What: what, Hint: hint}
}

// clip keeps a guest's text from filling a message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
