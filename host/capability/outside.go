package capability

import (
	"net/netip"
	"slices"
	"strings"
)

// Outside returns the members of s that permit something which no member of
// outer permits, or which only several members of outer permit together where
// that cannot be told: a narrower list has nothing outside the wider one.
// Variables of paths are compared by name.
func (s Set) Outside(outer Set) Set {
	var out Set
	for i := range s {
		if !outer.contains(&s[i]) {
			out = append(out, s[i])
		}
	}
	return out
}

// contains reports whether s permits everything that c permits.
func (s Set) contains(c *Capability) bool {
	if c.net == nil {
		return slices.ContainsFunc(s, func(o Capability) bool { return o.containsName(c) })
	}
	methods := c.net.methods
	if methods == nil {
		methods = []string{""} // one that no list of methods names
	}
	for _, method := range methods {
		// An entry without a scheme is good for opaque tunnels, which no entry
		// with one is, so that entries with schemes never add up to it.
		var hosts []*endpoint
		for i := range s {
			if o := s[i].net; o != nil && (o.scheme == "" && c.net.scheme != "http" || o.scheme == c.net.scheme) &&
				(o.methods == nil || slices.Contains(o.methods, method)) && (o.port == 0 || o.port == c.net.port) {
				hosts = append(hosts, o)
			}
		}
		if !c.net.hostsWithin(hosts) {
			return false
		}
	}
	return true
}

// containsName is contains for one entry that is not of the network kind.
func (c *Capability) containsName(in *Capability) bool {
	if c.Kind != in.Kind || c.net != nil {
		return false
	}
	switch c.Kind {
	case Filesystem:
		if c.Verb != in.Verb && c.Verb != Write {
			return false
		}
		// Wherever the workspace, the skill and the home are, they are beneath "/".
		return Beneath(in.Pattern, c.Pattern) || c.Pattern == "/" && !Beneath(in.Pattern, VarTmp)
	case Exec:
		if c.Pattern == anyProgram {
			return true
		}
	case Invoke:
		if prefix, ok := strings.CutSuffix(c.Pattern, "*"); ok {
			return strings.HasPrefix(in.Pattern, prefix)
		}
	}
	return c.Verb == in.Verb && c.Pattern == in.Pattern
}

// hostsWithin reports whether the hosts of outer include those of e.
func (e *endpoint) hostsWithin(outer []*endpoint) bool {
	if e.prefix.IsValid() {
		return prefixWithin(e.prefix, outer)
	}
	return slices.ContainsFunc(outer, func(o *endpoint) bool {
		switch {
		case o.any || e.any:
			return o.any
		case o.prefix.IsValid():
			return false
		case o.wild:
			return e.host == o.host && e.wild || strings.HasSuffix(e.host, "."+o.host)
		}
		return !e.wild && e.host == o.host
	})
}

// prefixWithin reports whether the prefixes of outer include all addresses of
// p, be it by its two halves.
func prefixWithin(p netip.Prefix, outer []*endpoint) bool {
	inside := false // some prefix of outer is a part of p
	for _, o := range outer {
		if o.any {
			return true
		}
		if !o.prefix.IsValid() {
			continue
		}
		if o.prefix.Bits() <= p.Bits() && o.prefix.Contains(p.Addr()) {
			return true
		}
		inside = inside || p.Overlaps(o.prefix)
	}
	if !inside {
		return false
	}
	low := netip.PrefixFrom(p.Addr(), p.Bits()+1)
	return prefixWithin(low, outer) && prefixWithin(netip.PrefixFrom(upperHalf(p), p.Bits()+1), outer)
}

// upperHalf returns the first address of the upper half of p.
func upperHalf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	b[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	a, _ := netip.AddrFromSlice(b)
	return a
}
