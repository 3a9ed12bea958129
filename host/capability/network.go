package capability

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// Net is the target of a network access.
type Net struct {
	Scheme string     // "https", "http" or "tcp"; "" if the bytes are opaque, as in a CONNECT tunnel
	Host   string     // as ParseHost gives it
	IP     netip.Addr // valid if Host is an address literal
	Port   uint16
	Method string // the HTTP method, or "" if it is not known
}

// String formats n as "METHOD scheme://host:port".
func (n *Net) String() string {
	var b strings.Builder
	if n.Method != "" {
		b.WriteString(n.Method + " ")
	}
	if n.Scheme != "" {
		b.WriteString(n.Scheme + "://")
	}
	if n.IP.Is6() {
		b.WriteString("[" + n.Host + "]")
	} else {
		b.WriteString(n.Host)
	}
	b.WriteString(":" + strconv.Itoa(int(n.Port)))
	return b.String()
}

// endpoint is the parsed form of a network entry:
//
//	[METHOD,… ][scheme://](host | *.domain | address | prefix)[:port | :*]
//
// A bare host means port 443. Plain HTTP is reached only by an entry that
// says http://, raw bytes only by one that says tcp:// or gives no scheme.
type endpoint struct {
	methods []string
	scheme  string
	host    string // without the wildcard
	wild    bool   // strict subdomains of host
	prefix  netip.Prefix
	port    uint16 // 0: any
	any     bool   // "*": every host
}

var profile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true), idna.Transitional(false))

// ParseHost returns the one form in which hosts are compared: lower-case ASCII
// (IDNA, UTS 46) without a trailing dot, or a canonical address, IPv4-mapped
// ones as IPv4. Forms that resolvers read differently (0x7f.1, 2130706433,
// 0177.0.0.1, zones) are refused.
func ParseHost(h string) (string, netip.Addr, error) {
	if h == "" || len(h) > 255 || !utf8.ValidString(h) || strings.ContainsAny(h, "%/\\@ \t\r\n\x00#?") {
		return "", netip.Addr{}, fmt.Errorf("bad host %q", h)
	}
	if inner, ok := strings.CutPrefix(h, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !ok || err != nil || !a.Is6() {
			return "", netip.Addr{}, fmt.Errorf("bad IPv6 literal %q", h)
		}
		return a.Unmap().String(), a.Unmap(), nil
	}
	if a, err := netip.ParseAddr(h); err == nil {
		return a.Unmap().String(), a.Unmap(), nil
	}
	ascii, err := profile.ToASCII(strings.TrimSuffix(h, "."))
	if err != nil {
		return "", netip.Addr{}, fmt.Errorf("bad host %q: %w", h, err)
	}
	// The mapping may produce an address ("１２７.0.0.1") or a dot at the end.
	if a, err := netip.ParseAddr(ascii); err == nil {
		return a.Unmap().String(), a.Unmap(), nil
	}
	last := ascii[strings.LastIndexByte(ascii, '.')+1:]
	if isNumeric(last) {
		return "", netip.Addr{}, fmt.Errorf("ambiguous numeric host %q", h)
	}
	return ascii, netip.Addr{}, nil
}

func parseEndpoint(s string) (*endpoint, error) {
	e := new(endpoint)
	rest := s
	if methods, r, ok := strings.Cut(rest, " "); ok {
		rest = r
		for m := range strings.SplitSeq(methods, ",") {
			if m == "" || strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
				return nil, fmt.Errorf("bad HTTP method %q: want for example \"GET,HEAD https://example.com\"", m)
			}
			e.methods = append(e.methods, m)
		}
	}
	if scheme, r, ok := strings.Cut(rest, "://"); ok {
		e.scheme, rest = scheme, r
		if scheme != "https" && scheme != "http" && scheme != "tcp" {
			return nil, fmt.Errorf("unknown scheme %q: want https, http or tcp", scheme)
		}
	}
	if e.methods != nil && e.scheme == "tcp" {
		return nil, fmt.Errorf("methods mean nothing on tcp")
	}
	if rest == "*" {
		e.any = true
		if e.scheme == "http" {
			e.port = 80
		}
		return e, nil
	}
	if p, err := netip.ParsePrefix(rest); err == nil {
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("write an IPv4 prefix as IPv4")
		}
		e.prefix = p.Masked()
		return e, nil
	}
	if strings.ContainsAny(rest, "/?#@") {
		return nil, fmt.Errorf("an entry names a host and a port, not a path, a query or a user")
	}
	host, port, err := cutPort(rest)
	if err != nil {
		return nil, err
	}
	if err := e.setPort(port); err != nil {
		return nil, err
	}
	if h, ok := strings.CutPrefix(host, "*."); ok {
		e.wild, host = true, h
	}
	if strings.Contains(host, "*") {
		return nil, fmt.Errorf("a wildcard is only allowed as the whole first label, as in \"*.example.com\"")
	}
	name, ip, err := ParseHost(host)
	if err != nil {
		return nil, err
	}
	switch {
	case ip.IsValid() && e.wild:
		return nil, fmt.Errorf("a wildcard cannot stand before an address")
	case ip.IsValid():
		e.prefix = netip.PrefixFrom(ip, ip.BitLen())
	case e.wild:
		if coversStrangers(name) {
			return nil, fmt.Errorf("a wildcard over the public suffix %q would cover strangers", name)
		}
		fallthrough
	default:
		e.host = name
	}
	return e, nil
}

// coversStrangers reports whether the subdomains of name belong to different
// owners: it is a public suffix, or all names one level below it are.
func coversStrangers(name string) bool {
	suffix, _ := publicsuffix.PublicSuffix(name)
	below, _ := publicsuffix.PublicSuffix("any--name." + name)
	return suffix == name || below == "any--name."+name
}

// cutPort splits "host", "host:port", "[v6]" or "[v6]:port".
func cutPort(s string) (host, port string, err error) {
	if strings.HasPrefix(s, "[") {
		i := strings.IndexByte(s, ']')
		if i < 0 || i+1 < len(s) && s[i+1] != ':' {
			return "", "", fmt.Errorf("bad IPv6 literal")
		}
		host, port = s[:i+1], s[i+1:]
		if port == ":" {
			return "", "", fmt.Errorf("no port after the colon")
		}
		return host, strings.TrimPrefix(port, ":"), nil
	}
	if strings.Count(s, ":") > 1 {
		return "", "", fmt.Errorf("an IPv6 literal needs brackets")
	}
	host, port, found := strings.Cut(s, ":")
	if found && port == "" {
		return "", "", fmt.Errorf("no port after the colon")
	}
	return host, port, nil
}

func (e *endpoint) setPort(port string) error {
	switch {
	case port == "*":
	case port != "":
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return fmt.Errorf("bad port %q: want 1 to 65535 or *", port)
		}
		e.port = uint16(n)
	case e.scheme == "http":
		e.port = 80
	case e.scheme == "tcp":
		return fmt.Errorf("tcp needs a port")
	default:
		e.port = 443
	}
	return nil
}

// String formats e canonically; parsing the result gives e again.
func (e *endpoint) String() string {
	var b strings.Builder
	if e.methods != nil {
		b.WriteString(strings.Join(e.methods, ",") + " ")
	}
	if e.scheme != "" {
		b.WriteString(e.scheme + "://")
	}
	switch {
	case e.any:
		return b.String() + "*"
	case e.prefix.IsValid() && !e.prefix.IsSingleIP():
		return b.String() + e.prefix.String()
	case e.prefix.IsValid() && e.prefix.Addr().Is6():
		b.WriteString("[" + e.prefix.Addr().String() + "]")
	case e.prefix.IsValid():
		b.WriteString(e.prefix.Addr().String())
	case e.wild:
		b.WriteString("*." + e.host)
	default:
		b.WriteString(e.host)
	}
	switch {
	case e.port == 0:
		b.WriteString(":*")
	case e.port == 443 && e.scheme != "http" && e.scheme != "tcp", e.port == 80 && e.scheme == "http":
	default:
		b.WriteString(":" + strconv.Itoa(int(e.port)))
	}
	return b.String()
}

func (e *endpoint) covers(n *Net) bool {
	if !e.speaksScheme(n.Scheme) || e.methods != nil && !slices.Contains(e.methods, n.Method) {
		return false
	}
	return e.reaches(n)
}

// speaksScheme reports whether e is good for scheme. An entry without a scheme
// is good for all but plain HTTP.
func (e *endpoint) speaksScheme(scheme string) bool {
	if e.scheme != "" {
		return e.scheme == scheme
	}
	return scheme == "https" || scheme == "tcp" || scheme == ""
}

// reaches reports whether host and port match. An address is matched by
// addresses, prefixes and "*" only: whose it is, a name cannot tell.
func (e *endpoint) reaches(n *Net) bool {
	if e.port != 0 && e.port != n.Port {
		return false
	}
	switch {
	case e.any:
		return true
	case e.prefix.IsValid():
		return n.IP.IsValid() && e.prefix.Contains(n.IP)
	case n.IP.IsValid():
		return false
	case e.wild:
		return len(n.Host) > len(e.host)+1 && n.Host[len(n.Host)-len(e.host)-1] == '.' && strings.HasSuffix(n.Host, e.host)
	}
	return n.Host == e.host
}

// wellFormed reports whether n is as ParseHost would have it, so that no
// spelling of a denied host passes for another one.
func (n *Net) wellFormed() bool {
	if n.Port == 0 {
		return false
	}
	if n.IP.IsValid() {
		return !n.IP.Is4In6() && n.IP.Zone() == ""
	}
	label := 0 // length of the current label
	for i := 0; i < len(n.Host); i++ {
		switch c := n.Host[i]; {
		case c == '.' && label == 0:
			return false
		case c == '.':
			label = 0
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-':
			label++
		default:
			return false
		}
	}
	return label > 0 && !isNumeric(n.Host[len(n.Host)-label:])
}

// isNumeric reports whether a resolver may take a name that ends in label for
// an IPv4 address.
func isNumeric(label string) bool {
	return strings.HasPrefix(label, "0x") || strings.Trim(label, "0123456789") == ""
}
