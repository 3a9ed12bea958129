package rootfs

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// TestRace flips a directory of the workspace to a symbolic link and back while
// the guest goes through it. Whatever the guest is told, it must never see or
// change what the link leads to.
func TestRace(t *testing.T) {
	for name, link := range map[string]string{"out of the root": "../out", "to what is denied": "private"} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, "!read:@/ws/private")
			plant(t, h.base, "ws/flip/secret", "ws/flip/key", "ws/flip/sub/x", "ws/link -> "+link)
			guarded := []string{h.base + "/out", h.base + "/ws/private"}
			before := state(t, guarded...)
			stop := flipping(t, h.base+"/ws")
			defer stop()
			seen, refused := 0, 0
			for end := time.Now().Add(raceTime()); time.Now().Before(end); {
				for _, p := range []string{"/workspace/flip/secret", "/workspace/flip/key", "/workspace/flip/sub/../key"} {
					switch got, errno := h.read(p); {
					case errno != 0:
						refused++
					case got == "content of ws/flip/secret" || got == "content of ws/flip/key":
						seen++
					default:
						t.Fatalf("escaped: %q", got)
					}
				}
				h.put("/workspace/flip/new", "x", truncating)
				h.put("/workspace/flip/secret2", "x", sys.O_WRONLY|sys.O_APPEND)
				h.fs.Mkdir("/workspace/flip/dir2", 0o700)
				h.fs.Rename("/workspace/flip/new", "/workspace/flip/new2")
				h.fs.Unlink("/workspace/flip/new2")
				h.fs.Rmdir("/workspace/flip/dir2")
				h.fs.Utimens("/workspace/flip/sub", 1, 1)
				if !portable { // os.Root cannot keep these three off links in the same root
					h.fs.Link("/workspace/flip/key", "/workspace/flip/key2")
					h.fs.Unlink("/workspace/flip/key2")
					h.fs.Chmod("/workspace/flip/key", 0o644)
				}
			}
			stop()
			if after := state(t, guarded...); after != before {
				t.Errorf("the host changed:\n%s\nwas:\n%s", after, before)
			}
			t.Logf("%d reads, %d refused, 0 escapes", seen, refused)
		})
	}
}

func raceTime() time.Duration {
	if testing.Short() {
		return 100 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// flipping renames dir/flip and dir/link to and fro until stop is called.
func flipping(t *testing.T, dir string) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			for i, move := range [][2]string{{"flip", "dir"}, {"link", "flip"}, {"flip", "link"}, {"dir", "flip"}} {
				if err := os.Rename(dir+"/"+move[0], dir+"/"+move[1]); err != nil {
					t.Error(err)
					return
				}
				for at := time.Now(); i%2 == 1 && time.Since(at) < 50*time.Microsecond; { // let the guest see it
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}
