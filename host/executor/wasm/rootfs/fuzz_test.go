package rootfs

import (
	"os"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/skillhost/skill/host/capability"
)

// FuzzOps does two operations with paths of the fuzzer's making, and then looks
// whether anything changed that must not, and whether what was opened is
// beneath what is granted.
func FuzzOps(f *testing.F) {
	for i, p := range []string{
		"/workspace/../out/secret", "/workspace/out-dir/secret", "workspace/self/self/climb/out/secret", "/workspace/private/key",
		"//workspace//./sub/../to-private-dir/key", "/tmp/../workspace/a.txt", "/workspace/host-root/etc/passwd", "/skill/../skill/skill.toml",
		"/workspace/sub/", "/proc/self/root/etc", "/workspace/PRIVATE/key", "/workspace/to-ro/to-secret", ".", "..", "/", "", "\x00", "/workspace/a.txt/.",
	} {
		f.Add(byte(i), byte(i+3), p, "/workspace/l"+p)
		f.Add(byte(i), byte(2*i), p, "../"+p)
	}
	h := newHouse(f, "!read:@/ws/private")
	guarded := []string{h.base + "/ro", h.base + "/out", h.base + "/ws2", h.base + "/wsx", h.base + "/skill", h.base + "/ws/private"}
	before := state(f, guarded...)
	f.Fuzz(func(t *testing.T, one, two byte, p, q string) {
		h.rec.reset()
		for _, op := range [2]byte{one, two} {
			operate(t, h, op, p, q)
		}
		if after := state(t, guarded...); after != before {
			t.Fatalf("the host changed:\n%s\nwas:\n%s", after, before)
		}
		for _, s := range []string{"/new", "/l", "/stolen"} {
			if _, err := os.Lstat(h.base + s); err == nil {
				t.Fatalf("%s was made", s)
			}
		}
	})
}

func operate(t *testing.T, h *house, op byte, p, q string) {
	switch op % 12 {
	case 0, 1, 2, 3:
		flag := []sys.Oflag{sys.O_RDONLY, truncating, sys.O_RDWR | sys.O_CREAT | sys.O_EXCL, sys.O_RDONLY | sys.O_TRUNC}[op%4]
		x, errno := h.fs.OpenFile(p, flag, 0o600)
		if errno != 0 {
			return
		}
		defer x.Close()
		x.Write([]byte("x"))
		x.Readdir(10)
		host, ok := x.(*file)
		if !ok {
			return
		}
		if real, err := whereIs(host); err == nil {
			allowed := false
			for _, dir := range []string{"/ws", "/ro", "/skill", "/tmp"} {
				allowed = allowed || capability.Beneath(real, h.base+dir)
			}
			if !allowed || capability.Beneath(real, h.base+"/ws/private") {
				t.Fatalf("opened %s by %q", real, p)
			}
		}
	case 4:
		h.fs.Stat(p)
		h.fs.Lstat(q)
	case 5:
		if link, errno := h.fs.Readlink(p); errno == 0 && (link == "../out" || link == h.base+"/out/secret") {
			t.Fatalf("%q leads to %s, says readlink", p, link)
		}
	case 6:
		h.fs.Mkdir(p, 0o700)
	case 7:
		h.fs.Rmdir(p)
	case 8:
		h.fs.Unlink(q)
	case 9:
		h.fs.Rename(p, q)
	case 10:
		h.fs.Link(p, q)
		h.fs.Symlink(p, q)
	case 11:
		h.fs.Utimens(p, 1, 1)
		h.fs.Chmod(q, 0o700)
	}
}
