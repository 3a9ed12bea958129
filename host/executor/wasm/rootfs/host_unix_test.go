//go:build linux || darwin

package rootfs

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// TestSpecialFiles pins that opening anything but files and directories is
// refused, and that nothing of it blocks.
func TestSpecialFiles(t *testing.T) {
	h := newHouse(t, "read:/dev")
	ws := h.base + "/ws"
	if err := syscall.Mkfifo(ws+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	plant(t, h.base, "ws/to-fifo -> fifo", "ws/to-null -> /dev/null")
	paths := []string{"/workspace/fifo", "/workspace/to-fifo", "/dev/null", "/dev/zero", "/workspace/to-null"}
	if l, err := net.Listen("unix", ws+"/sock"); err == nil { // a path may be too long for a socket
		defer l.Close()
		paths = append(paths, "/workspace/sock")
	}
	for _, p := range paths {
		for _, flag := range []sys.Oflag{sys.O_RDONLY, sys.O_WRONLY, sys.O_RDWR, truncating, sys.O_RDONLY | sys.O_TRUNC, sys.O_NONBLOCK} {
			if x, errno := h.fs.OpenFile(p, flag, 0o600); errno != sys.EACCES {
				t.Errorf("open %s %#x: %v %v", p, flag, x, errno)
			}
		}
		if _, errno := h.fs.Stat(p); errno != 0 {
			t.Errorf("stat %s: %v", p, errno)
		}
	}
	if errno := h.fs.Link("/workspace/fifo", "/workspace/fifo2"); errno != sys.EPERM {
		t.Error(errno)
	}
	if errno := h.fs.Unlink("/workspace/fifo"); errno != 0 {
		t.Error(errno)
	}
}

// TestOtherSpelling uses a hard link as the other name that a file system which
// ignores normalisation would give to a denied file.
func TestOtherSpelling(t *testing.T) {
	h := newHouse(t, "!read:@/ws/sub/résumé")
	plant(t, h.base, "ws/sub/résumé", "ws/sub/façade")
	if err := os.Link(h.base+"/ws/sub/résumé", h.base+"/ws/sub/re\u0301sume\u0301"); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]sys.Errno{"sub/résumé": sys.EACCES, "sub/re\u0301sume\u0301": sys.EACCES, "indir/re\u0301sume\u0301": sys.EACCES, "sub/façade": 0} {
		if _, errno := h.read("/workspace/" + p); errno != want {
			t.Errorf("%s: %v, want %v", p, errno, want)
		}
	}
}

// TestUnprivileged runs the tests once more as a user whom the kernel stops
// too, if they run as root.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("is already so")
	}
	dir := scratch(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for p := dir; p != "/"; p = filepath.Dir(p) {
		if st, err := os.Stat(p); p != dir && (err != nil || st.Mode()&0o001 == 0) {
			t.Skipf("nobody may not enter %s", p)
		}
	}
	copyFile(t, exe, dir+"/test")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/t", 0o777); err != nil || os.Chmod(dir+"/t", 0o777) != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir+"/test", "-test.short", "-test.skip=TestUnprivileged|TestOldKernel|TestGuest")
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir + "/t"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if !strings.Contains(string(out), "PASS") {
		t.Errorf("%s", out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKernelPermissions pins that what the host's own permissions forbid stays
// forbidden, and is told apart by nothing.
func TestKernelPermissions(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may do everything; TestUnprivileged comes here")
	}
	h := newHouse(t)
	if err := os.Chmod(h.base+"/ws/a.txt", 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(h.base+"/ws/sub", 0o311); err != nil { // may be passed, not listed
		t.Fatal(err)
	}
	defer os.Chmod(h.base+"/ws/sub", 0o755)
	if _, errno := h.read("/workspace/a.txt"); errno != sys.EACCES {
		t.Error(errno)
	}
	if _, errno := h.read("/workspace/sub/b.txt"); errno != 0 && !isDarwin && !portable {
		t.Error(errno)
	}
	if _, errno := h.list("/workspace/sub"); errno != sys.EACCES {
		t.Error(errno)
	}
}
