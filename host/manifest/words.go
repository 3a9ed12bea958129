package manifest

import (
	"slices"
	"strings"

	"github.com/skillhost/skill/host/manifest/words"
)

// The values of keys that have a fixed set of them.
var (
	runtimes       = []string{"wasm", "plugin", "exec", "container", "mcp", "instructions"}
	nativeRuntimes = []string{"plugin", "exec", "container"}
	abis           = []string{"skill/1", "command/1"}
	requires       = []string{"strict", "landlock", "none"}
	isolations     = []string{"call", "fresh", "session"}
	homes          = []string{"private"}
	themes         = []string{"light", "dark"}
	audiences      = []string{"user", "assistant"}
	taskWhens      = []string{"optional", "required", "long"}
)

// text checks a text that people review and models read.
func (r *reader) text(path []string, s string) error {
	if len(s) > words.MaxText {
		return r.fail(path, "", "%s: %d bytes of text are too many: at most %d", strings.Join(path, "."), len(s), words.MaxText)
	}
	if c, ok := words.Invisible(s); ok {
		return r.fail(path, "remove it: a reviewer does not see it, and a model does", "%s: the invisible character %U", strings.Join(path, "."), c)
	}
	return nil
}

// texts checks keys of the table at path, given as key and value in turn.
func (r *reader) texts(path []string, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := r.text(append(path[:len(path):len(path)], pairs[i]), pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) oneOf(path []string, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return r.fail(path, words.Near(value, known, "allowed"), "%s: unknown value %q", strings.Join(path, "."), words.Clip(value))
}
