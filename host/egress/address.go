package egress

import (
	"net/netip"
	"slices"
)

// A class is a set of addresses that no name may lead to unless the grant
// lists the address itself. The zero class is the public internet.
type class struct {
	rule string // as errors and the documentation name it
	text string // for people
}

type block struct {
	class
	prefixes []netip.Prefix
}

// blocks are the special-purpose registries of IANA together with the
// addresses at which clouds serve credentials to whoever asks. The first match
// names the class, so narrower blocks come first.
var blocks = []block{
	{class{"net_metadata_ip", "a cloud metadata address"}, prefixes(
		"169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
		"fd00:ec2::/32", "fd20:ce::254/128")},
	{class{"net_loopback", "a loopback address"}, prefixes("127.0.0.0/8", "::1/128")},
	{class{"net_unspecified", "an address of this host"}, prefixes("0.0.0.0/8", "::/128")},
	{class{"net_link_local", "a link-local address"}, prefixes("169.254.0.0/16", "fe80::/10")},
	{class{"net_private", "a private address"}, prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")},
	{class{"net_shared", "a carrier-grade NAT address"}, prefixes("100.64.0.0/10")},
	{class{"net_multicast", "a multicast or broadcast address"}, prefixes("224.0.0.0/4", "255.255.255.255/32", "ff00::/8")},
	{class{"net_reserved", "a reserved address"}, prefixes(
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16")},
}

var (
	ownInterface  = class{"net_own_interface", "an address of this host's own interfaces"}
	reservedClass = class{"net_reserved", "a reserved address"}
	globalUnicast = netip.MustParsePrefix("2000::/3") // all of IPv6 that is given out
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour     = netip.MustParsePrefix("2002::/16")
	siit          = netip.MustParsePrefix("::ffff:0:0:0/96")
	compatible    = netip.MustParsePrefix("::/96")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// classify returns the class of a, which own are the host's own addresses
// for. An IPv6 address that a translator or a tunnel turns into an IPv4 one is
// judged as that.
func classify(a netip.Addr, own []netip.Addr) class {
	if a.Zone() != "" {
		return class{"net_link_local", "an address with a zone"}
	}
	a = a.Unmap()
	for _, b := range blocks {
		for _, p := range b.prefixes {
			if p.Contains(a) {
				return b.class
			}
		}
	}
	if slices.ContainsFunc(own, func(o netip.Addr) bool { return o.WithZone("").Unmap() == a }) {
		return ownInterface
	}
	v4, way := embedded(a)
	if !v4.IsValid() {
		if a.Is6() && !globalUnicast.Contains(a) {
			return reservedClass
		}
		return class{}
	}
	if inner := classify(v4, own); inner != (class{}) {
		return class{"net_" + way, inner.text + " behind " + way}
	}
	if way == "nat64" || way == "6to4" {
		return class{}
	}
	return reservedClass
}

// embedded returns the IPv4 address that a is delivered to, if it is of a form
// that carries one, and the name of the form.
func embedded(a netip.Addr) (netip.Addr, string) {
	if a.Is4() {
		return netip.Addr{}, ""
	}
	b := a.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case nat64.Contains(a):
		return last, "nat64"
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), "6to4"
	case siit.Contains(a):
		return last, "siit"
	case compatible.Contains(a):
		return last, "compat_v6"
	case (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe:
		return last, "isatap"
	}
	return netip.Addr{}, ""
}
