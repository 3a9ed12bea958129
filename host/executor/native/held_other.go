//go:build !linux

package native

import "github.com/skillhost/skill/host/capability"

// addHeld adds nothing: a profile names paths, whatever is there.
func (t *text) addHeld([]capability.Layer) {}
