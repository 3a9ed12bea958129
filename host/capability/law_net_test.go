package capability

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// The small world of hosts. The label z is in no entry: it stands for all
// names, as port 9 stands for all ports and method "" for all methods, that
// nobody has written down.

// names returns all names of up to n of the labels.
func names(n int, labels ...string) []string {
	var out []string
	grow := []string{""}
	for range n {
		var next []string
		for _, g := range grow {
			for _, l := range labels {
				next = append(next, strings.TrimSuffix(l+"."+g, "."))
			}
		}
		out, grow = append(out, next...), next
	}
	return out
}

func worldNets() []Net {
	var out []Net
	add := func(host string, ip netip.Addr) {
		for _, scheme := range []string{"", "https", "http", "tcp"} {
			for _, port := range []uint16{80, 443, 9} {
				for _, method := range []string{"", "GET", "POST"} {
					out = append(out, Net{Scheme: scheme, Host: host, IP: ip, Port: port, Method: method})
				}
			}
		}
	}
	for _, h := range names(3, "a", "b", "z") {
		add(h, netip.Addr{})
	}
	for _, ip := range []string{"10.0.0.0", "10.0.0.1", "10.0.0.2", "::1"} {
		add(ip, netip.MustParseAddr(ip))
	}
	return out
}

// hostForms are endpoints that differ in the host only. Those with a wildcard
// over one label cannot be written down (public suffixes), but must obey.
func hostForms() []endpoint {
	var out []endpoint
	for _, h := range names(3, "a", "b") {
		out = append(out, endpoint{host: h})
	}
	for _, h := range names(2, "a", "b") {
		out = append(out, endpoint{host: h, wild: true})
	}
	for _, p := range []string{"10.0.0.0/31", "10.0.0.0/32", "10.0.0.1/32", "10.0.0.0/30", "::/127"} {
		out = append(out, endpoint{prefix: netip.MustParsePrefix(p)})
	}
	return append(out, endpoint{any: true})
}

func endpoints(hosts []endpoint, schemes []string, ports []uint16, methods [][]string) []endpoint {
	var out []endpoint
	for _, e := range hosts {
		for _, e.scheme = range schemes {
			for _, e.port = range ports {
				for _, e.methods = range methods {
					out = append(out, e)
				}
			}
		}
	}
	return out
}

// naiveReaches matches label by label, where the code compares suffixes.
func naiveReaches(e *endpoint, n *Net) bool {
	if e.port != 0 && e.port != n.Port {
		return false
	}
	if e.any {
		return true
	}
	if n.IP.IsValid() {
		for a := e.prefix.Addr(); e.prefix.IsValid() && e.prefix.Contains(a); a = a.Next() {
			if a == n.IP {
				return true
			}
		}
		return false
	}
	if e.prefix.IsValid() {
		return false
	}
	have, want := strings.Split(n.Host, "."), strings.Split(e.host, ".")
	if e.wild {
		if len(have) <= len(want) {
			return false
		}
		have = have[len(have)-len(want):]
	}
	return slices.Equal(have, want)
}

func naiveCovers(e *endpoint, n *Net) bool {
	schemes := map[string][]string{"": {"", "https", "tcp"}, "https": {"https"}, "http": {"http"}, "tcp": {"tcp"}}
	if !slices.Contains(schemes[e.scheme], n.Scheme) {
		return false
	}
	return (len(e.methods) == 0 || slices.Contains(e.methods, n.Method)) && naiveReaches(e, n)
}

func netCapability(e endpoint) Capability {
	return Capability{Kind: Network, Verb: Connect, Pattern: e.String(), Pos: Pos{File: "f", Line: 1}, net: &e}
}

var (
	allSchemes = []string{"", "https", "http", "tcp"}
	allPorts   = []uint16{0, 80, 443}
	allMethods = [][]string{nil, {"GET"}, {"GET", "POST"}}
)

func TestNetWorld(t *testing.T) {
	nets := worldNets()
	for _, e := range endpoints(hostForms(), allSchemes, allPorts, allMethods) {
		c := netCapability(e)
		allow := NewGrant([]Layer{{Name: "l", Closed: true, Allow: Set{c}}}, nil)
		open := Set{netCapability(endpoint{any: true}), netCapability(endpoint{any: true, scheme: "http"}),
			netCapability(endpoint{prefix: netip.MustParsePrefix("0.0.0.0/0")}), netCapability(endpoint{prefix: netip.MustParsePrefix("::/0")})}
		deny := NewGrant([]Layer{{Name: "l", Closed: true, Allow: open, Deny: Set{c}}}, nil)
		both := NewGrant([]Layer{{Name: "l", Closed: true, Allow: Set{c}}, {Name: "m", Deny: Set{c}}}, nil)
		for i := range nets {
			a := Access{Kind: Network, Verb: Connect, Target: "t", Net: &nets[i]}
			if got, want := allow.Allows(a), naiveCovers(&e, a.Net); got != want {
				t.Fatalf("%q allows %v: got %v, want %v", c.Pattern, a.Net, got, want)
			}
			if naiveReaches(&e, a.Net) && deny.Allows(a) {
				t.Fatalf("%q does not deny %v", c.Pattern, a.Net)
			}
			if both.Allows(a) {
				t.Fatalf("%q is allowed and denied, and %v passes", c.Pattern, a.Net)
			}
		}
		if got, err := parseEndpoint(e.String()); err == nil && got.String() != e.String() {
			t.Fatalf("%q is read as %q", e.String(), got.String())
		}
	}
}

// Who may go everywhere but to a denied name may not go there by number.
func TestNetWorldDeniedNames(t *testing.T) {
	nets := worldNets()
	hosts := hostForms()
	for _, allow := range []endpoint{{any: true}, {prefix: netip.MustParsePrefix("10.0.0.0/31"), scheme: "https"}} {
		for _, deny := range endpoints(hosts, []string{""}, allPorts, [][]string{nil}) {
			plain := Layer{Name: "manifest", Closed: true, Allow: Set{netCapability(allow)}}
			op := Layer{Name: "operator", Deny: Set{netCapability(deny)}}
			wide := Layer{Name: "call", Speaks: []Topic{{Network, Connect}}, Allow: Set{netCapability(endpoint{any: true})}}
			for i := range nets {
				n := &nets[i]
				a := Access{Kind: Network, Verb: Connect, Target: "t", Net: n}
				guess := n.IP.IsValid() && deny.host != "" && (deny.port == 0 || deny.port == n.Port)
				want := naiveCovers(&allow, n) && !naiveReaches(&deny, n) && !(guess && allow.any)
				if got := NewGrant([]Layer{plain, op}, nil).Allows(a); got != want {
					t.Fatalf("allow %q deny %q: %v: got %v, want %v", allow.String(), deny.String(), n, got, want)
				}
				want = want && !guess && n.Scheme != "http"
				if got := NewGrant([]Layer{plain, op, wide}, nil).Allows(a); got != want {
					t.Fatalf("allow %q, \"*\" deny %q: %v: got %v, want %v", allow.String(), deny.String(), n, got, want)
				}
			}
		}
	}
}

// netBits is the set of the world's accesses that a list covers.
type netBits [25]uint64

func (b *netBits) or(c *netBits) {
	for i := range b {
		b[i] |= c[i]
	}
}

func (b *netBits) within(c *netBits) bool {
	for i := range b {
		if b[i]&^c[i] != 0 {
			return false
		}
	}
	return true
}

func TestOutsideNetworks(t *testing.T) {
	nets := worldNets()
	var b netBits
	if need := (len(nets) + 63) / 64; need > len(b) {
		t.Fatalf("netBits needs %d words", need)
	}
	forms := []endpoint{{host: "a"}, {host: "a.b"}, {host: "b", wild: true}, {host: "a.b", wild: true}, {any: true},
		{prefix: netip.MustParsePrefix("10.0.0.0/31")}, {prefix: netip.MustParsePrefix("10.0.0.0/32")}, {prefix: netip.MustParsePrefix("10.0.0.1/32")}}
	all := endpoints(forms, []string{"", "https", "http"}, []uint16{0, 443}, [][]string{nil, {"GET"}, {"POST"}, {"POST", "GET"}})
	caps, covered := make(Set, len(all)), make([]netBits, len(all))
	for i := range all {
		caps[i] = netCapability(all[i])
		for j := range nets {
			if naiveCovers(&all[i], &nets[j]) {
				covered[i][j/64] |= 1 << (j % 64)
			}
		}
	}
	for i := range caps {
		for j := i; j < len(caps); j++ {
			outer, union := Set{caps[i], caps[j]}, covered[i]
			union.or(&covered[j])
			for k := range caps {
				if got, want := outer.contains(&caps[k]), covered[k].within(&union); got != want {
					t.Fatalf("%q within %q and %q: got %v, want %v", caps[k].Pattern, caps[i].Pattern, caps[j].Pattern, got, want)
				}
			}
		}
	}
}

func TestOutside(t *testing.T) {
	tests := []struct {
		kind         Kind
		inner, outer string // entries separated by "|"
		outside      string
	}{
		{Network, "api.x.com|evil.com", "*.x.com", "evil.com"},
		{Network, "x.com", "*.x.com", "x.com"},
		{Network, "*.a.x.com", "*.x.com", ""},
		{Network, "*.x.com", "*.a.x.com", "*.x.com"},
		{Network, "x.com:*", "x.com", "x.com:*"},
		{Network, "http://x.com", "x.com", "http://x.com"},
		{Network, "x.com", "https://x.com", "x.com"},
		{Network, "GET,HEAD https://x.com", "GET https://x.com|HEAD https://x.com", ""},
		{Network, "GET,PUT https://x.com", "GET https://x.com|HEAD https://x.com", "GET,PUT https://x.com"},
		{Network, "10.0.0.0/8", "10.0.0.0/9|10.128.0.0/9", ""},
		{Network, "10.0.0.0/8", "10.0.0.0/9|10.128.0.0/10|10.192.0.0/11", "10.0.0.0/8"},
		{Network, "10.0.0.1|10.0.0.0/8|x.com:*", "*", ""},
		{Network, "*", "0.0.0.0/0|::/0", "*"},
		{Network, "fd00::/9", "fd00::/8", ""},
		{Filesystem, "read:/data/x", "read:/data", ""},
		{Filesystem, "write:/data/x", "read:/data", "write:/data/x"},
		{Filesystem, "read:/data2", "write:/data", "read:/data2"},
		{Filesystem, "read:${workspace}/a", "write:${workspace}", ""},
		{Filesystem, "read:${workspace}", "read:/", ""},
		{Filesystem, "write:${tmp}", "write:/", "write:${tmp}"},
		{Filesystem, "write:/tmp/x", "write:${tmp}", ""},
		{Filesystem, "read:${skill_dir}", "read:${workspace}", "read:${skill_dir}"},
		{Exec, "git|jq", "git", "jq"},
		{Env, "LANG", "LANG|TZ", ""},
		{Secrets, "A", "", "A"},
		{Invoke, "hello.greet|hello.*", "hello.*", ""},
		{Invoke, "hello.*", "hello.greet", "hello.*"},
		{Invoke, "hello.*|other", "*", ""},
	}
	for _, tt := range tests {
		var out []string
		for _, c := range parseAll(t, tt.kind, tt.inner).Outside(parseAll(t, tt.kind, tt.outer)) {
			out = append(out, c.Entry())
		}
		if got := strings.Join(out, "|"); got != tt.outside {
			t.Errorf("%q outside %q: got %q, want %q", tt.inner, tt.outer, got, tt.outside)
		}
	}
}

func parseAll(t testing.TB, kind Kind, entries string) Set {
	t.Helper()
	var s Set
	for e := range strings.SplitSeq(entries, "|") {
		if e == "" {
			continue
		}
		c, err := Parse(kind, e, Pos{File: "f.toml", Line: 7})
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, c)
	}
	return s
}
