package rootfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
)

// TestWorkspaceBelowTmp checks that a workspace below the host's /tmp is found
// under its path there, and that nothing else of the host's /tmp is.
func TestWorkspaceBelowTmp(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "rootfs-test-")
	if err != nil {
		t.Skipf("no /tmp here: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	work, private := filepath.Join(base, "work"), filepath.Join(base, "private")
	for name, text := range map[string]string{"work/sub/file": "inside", "work2/file": "beside", "private/own": "mine"} {
		name = filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	layer := capability.Layer{Name: "manifest", Closed: true, Allow: capability.Set{
		{Kind: capability.Filesystem, Verb: capability.Write, Pattern: work},
		{Kind: capability.Filesystem, Verb: capability.Write, Pattern: capability.VarTmp},
	}}
	f := New(capability.NewGrant([]capability.Layer{layer}, nil), executor.Dirs{Workspace: work, Tmp: func() (string, error) { return private, nil }})
	defer f.Close()
	for name, want := range map[string]sys.Errno{
		work + "/sub/file": 0, work + "/sub": 0, "/workspace/sub/file": 0, "/tmp/own": 0,
		base + "/work2/file": sys.ENOENT, base + "/private/own": sys.ENOENT, // in the guest's own /tmp, where they are not
		work + "/none": sys.ENOENT,
	} {
		file, errno := f.OpenFile(strings.TrimPrefix(name, "/"), sys.O_RDONLY, 0)
		if errno != want {
			t.Errorf("%s: %v, want %v", name, errno, want)
		}
		if errno == 0 {
			file.Close()
		}
	}
}
