package capability

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
