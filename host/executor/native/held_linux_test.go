package native

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/skillhost/skill/host/sandbox"
)

// A process that waits is not used when something has come to be where it is
// denied: its cage was made before.
func TestHeld(t *testing.T) {
	h := newHouse(t, sandbox.Strict)
	dir := t.TempDir()
	file, folder, link := filepath.Join(dir, "file"), filepath.Join(dir, "folder"), filepath.Join(dir, "link")
	s := skill(t, "read:/data")
	s.Needs.Deny = set(t, "read:"+file, "write:"+folder, "read:"+link)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) { must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	before := h.plan(t, s, job(s)).Key
	for _, step := range []struct {
		name string
		do   func()
		same bool
	}{
		{"nothing", func() {}, true},
		{"another file made", func() { write("other", "x") }, true},
		{"made", func() { write("file", "secret") }, false},
		{"written", func() { write("file", "another secret") }, true},
		{"replaced", func() { write("new", "secret"); must(os.Rename(filepath.Join(dir, "new"), file)) }, false},
		{"removed", func() { must(os.Remove(file)) }, false},
		{"directory made", func() { must(os.Mkdir(folder, 0o700)) }, false},
		{"file made in it", func() { write("folder/x", "") }, true},
		{"directory moved away", func() { must(os.Rename(folder, folder+"2")) }, false},
		{"link made", func() { must(os.Symlink("target", link)) }, false},
		{"what it leads to made", func() { write("target", "secret") }, false},
	} {
		step.do()
		after := h.plan(t, s, job(s)).Key
		if (after == before) != step.same {
			t.Errorf("%s: same key %v, want %v", step.name, after == before, step.same)
		}
		before = after
	}
}
