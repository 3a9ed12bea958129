package host

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// warmAfter is how long a host serves before it warms: the client's first
// requests come first.
const warmAfter = time.Second

// warm compiles the modules of allowed skills that this machine has not
// compiled yet, and lets go of them: the compiler's cache keeps the code, so
// that the first call of each takes milliseconds instead of a second.
func (h *Host) warm() {
	select {
	case <-h.ctx.Done():
		return
	case <-time.After(warmAfter):
	}
	did := false
	for _, s := range h.Catalog.Skills() {
		if s.Runtime != "wasm" || h.ctx.Err() != nil || !h.Dispatcher.VisibleSkill(s, h.Scope()) {
			continue
		}
		mark := filepath.Join(h.Config.Paths.Cache, "warm-"+strings.TrimPrefix(s.Home.Digest, "sha256:")+"-"+h.options.Version)
		if _, err := os.Stat(mark); err == nil {
			continue
		}
		_, release, err := h.programs.Lease(h.ctx, s)
		if err != nil {
			h.say(err)
			continue
		}
		release()
		if err := h.programs.Drop(s.Home.Digest); err != nil {
			h.say(err)
		}
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			h.say(err)
		}
		did = true
	}
	if did {
		debug.FreeOSMemory()
	}
}
