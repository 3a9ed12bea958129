//go:build linux || darwin

package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
)

// TestSettleRace: two calls share a root. While one moves a directory up, which
// looks for links that would then lead out, the other one makes such a link
// where the first has looked already. No link may lead out of the root in the
// end, since other programs of the host follow it.
func TestSettleRace(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(top, "root")
	fsys := func() *FS {
		l := capability.Layer{Name: "manifest", Closed: true}
		c, err := capability.Parse(capability.Filesystem, "write:${workspace}", capability.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		l.Allow = append(l.Allow, c)
		if l, err = l.Bind(capability.Vars{Workspace: root}, filepath.EvalSymlinks); err != nil {
			t.Fatal(err)
		}
		return New(capability.NewGrant([]capability.Layer{l}, nil), executor.Dirs{Workspace: root})
	}
	if err := os.MkdirAll(root+"/a/b/m", 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 8000 { // that looking takes its time
		dir := fmt.Sprintf("%s/a/b/z%d", root, i%8)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mover, linker := fsys(), fsys()
	defer mover.Close()
	defer linker.Close()
	for round := range 60 {
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			mover.Rename("/workspace/a/b", "/workspace/b")
		}()
		time.Sleep(time.Duration(round) * 100 * time.Microsecond) // some round hits the window
		for i := 0; ; i++ {
			// From root/a/b/m this is root/x; from root/b/m it is top/x.
			linker.Symlink("../../../x", fmt.Sprintf("/workspace/a/b/m/%d", i))
			select {
			case <-moved:
			default:
				continue
			}
			break
		}
		links, _ := filepath.Glob(root + "/b/m/*")
		if len(links) > 0 {
			t.Fatalf("write_settle_race: %d links such as %s lead out of %s", len(links), links[0], root)
		}
		if os.Rename(root+"/b", root+"/a/b") == nil {
			continue
		}
		links, _ = filepath.Glob(root + "/a/b/m/*")
		for _, l := range links {
			if err := os.Remove(l); err != nil {
				t.Fatal(err)
			}
		}
	}
}
