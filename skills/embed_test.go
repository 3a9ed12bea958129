package skills

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/skillhost/skill/host/manifest"
)

// TestEmbedded holds in a fresh clone, where nothing is built, as well as after
// a build.
func TestEmbedded(t *testing.T) {
	missing, digests := Missing(), Digests()
	names := slices.DeleteFunc(all(), func(name string) bool { return !built(name) })
	every := slices.Sorted(slices.Values(slices.Concat(names, missing)))
	if !slices.Equal(every, []string{"ask-user-question", "plan-mode", "read-image", "set-callback", "task-manager", "websearch"}) {
		t.Errorf("built %q, missing %q", names, missing)
	}
	if len(missing) > 0 {
		t.Logf("LEFT OUT: %q are not built (make guests)", missing)
	}
	for _, name := range names {
		sub, err := fs.Sub(Dist, "dist/"+name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := manifest.OpenBuiltin(sub)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != name || s.Home.Digest != digests[name] {
			t.Errorf("%s: skill %q, digest %s, written %s", name, s.Name, s.Home.Digest, digests[name])
		}
	}
}
