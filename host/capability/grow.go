package capability

import "slices"

// MayGrow reports whether binding l again could give more: whether it allows a
// path that was written with "?" and may come to exist.
func (l Layer) MayGrow() bool {
	for i := range l.Allow {
		if l.Allow[i].optional {
			return true
		}
	}
	return false
}

// Followed returns l with what its deny list leads to by the links that are
// there now: Bind may have been long ago. realpath is that of Bind.
func (l Layer) Followed(realpath func(string) (string, error)) Layer {
	for _, c := range l.Deny { // of l, which is not changed
		if c.Kind != Filesystem || c.asIs || !isAbs(c.Pattern) {
			continue
		}
		if real, err := realpath(c.Pattern); err == nil && real != c.Pattern && isReal(real) {
			c.Pattern = real
			l.Deny = append(slices.Clip(l.Deny), c)
		}
	}
	return l
}
