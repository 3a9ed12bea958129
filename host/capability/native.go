package capability

// SpeaksOf reports whether l has something to say about t, be it by being
// Closed; if not, l restricts nothing there. It is for a runtime that hands each
// layer to the kernel instead of asking the Grant.
func (l Layer) SpeaksOf(t Topic) bool { return l.speaks(t.Kind, t.Verb) }
