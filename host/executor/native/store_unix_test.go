//go:build unix

package native

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain runs the test binary as what a test needs besides itself.
func TestMain(m *testing.M) {
	if dir := os.Getenv("NATIVE_TEST_REMOVE"); dir != "" {
		os.Exit(removeUnprivileged(dir))
	}
	os.Exit(m.Run())
}

// removeUnprivileged makes a tree as a guest could and removes it, with few
// descriptors: how deep a tree is must not matter.
func removeUnprivileged(dir string) int {
	fail := func(err error) int {
		os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		return fail(err)
	}
	if err := plant(dir); err != nil {
		return fail(err)
	}
	if err := os.RemoveAll(dir); err == nil {
		return fail(errors.New("os.RemoveAll would have done it"))
	}
	if err := removeTree(dir); err != nil {
		return fail(err)
	}
	return 0
}

const depth = 3000

func plant(dir string) error {
	base := filepath.Join(dir, "work")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return err
	}
	if err := os.Symlink("../../outside", filepath.Join(base, "link")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(base, ".moved-1"), nil, 0o400); err != nil {
		return err
	}
	fd, err := unix.Open(base, unix.O_DIRECTORY|unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	for i := range depth {
		if err := unix.Mkdirat(fd, "d", 0o700); err != nil {
			return err
		}
		next, err := unix.Openat(fd, "d", unix.O_DIRECTORY|unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		if i%1000 == 7 {
			if err := errors.Join(unix.Symlinkat("/", next, "root"), unix.Mkdirat(next, "closed", 0o700), unix.Mkdirat(next, "closed/in", 0o000),
				unix.Fchmodat(next, "closed", 0o100, 0)); err != nil {
				return err
			}
		}
		if i%100 == 3 {
			if err := unix.Fchmod(fd, 0o500); err != nil {
				return err
			}
		}
		unix.Close(fd)
		fd = next
	}
	return errors.Join(unix.Fchmod(fd, 0), unix.Close(fd), os.Chmod(base, 0o500))
}

// nobody is a command that runs this test binary, as a user without any rights
// if this one has all. It is in a directory that everybody may write to.
func nobody(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self) // go test keeps it where others may not look
	if err != nil {
		t.Fatal(err)
	}
	self = filepath.Join(dir, "self")
	if err := os.WriteFile(self, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	return cmd
}

func TestRemoveTree(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "remove")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(base, "outside")
	if err := os.Mkdir(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(outside, "kept")
	if err := os.WriteFile(kept, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(base, "tree")
	cmd := nobody(t)
	cmd.Env = []string{"NATIVE_TEST_REMOVE=" + tree}
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = removeTree(tree)
		t.Fatalf("%v: %s", err, out)
	}
	absent(t, tree)
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	if err := removeTree(tree); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}

// Directories of a host that was killed go when the next host starts; those of
// one that lives stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	living, err := newStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	var roots []string
	for _, s := range []*store{living, dead} {
		if _, err := s.dir(true); err != nil {
			t.Fatal(err)
		}
		roots = append(roots, s.root)
	}
	var sockets []string // of a living host's guest, of a dead one's, and what is no such directory
	for i, s := range []*store{living, dead, dead} {
		run, err := socketDir(dir)
		if i == 2 {
			run, err = filepath.Join(dir, "precious"), os.Mkdir(filepath.Join(dir, "precious"), 0o700)
		}
		base, err2 := s.dir(false)
		if err := errors.Join(err, err2, os.WriteFile(filepath.Join(run, "plugin"), nil, 0o600), os.Symlink(run, filepath.Join(base, socketsName))); err != nil {
			t.Fatal(err)
		}
		sockets = append(sockets, run)
	}
	if err := dead.lock.Close(); err != nil {
		t.Fatal(err)
	}
	strangers := []string{filepath.Join(dir, storePrefix+"young"), filepath.Join(dir, "other")} // a store that is being made, and none
	for _, s := range strangers {
		if err := os.Mkdir(s, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	next, err := newStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	absent(t, roots[1])
	absent(t, sockets[1])
	for _, there := range append(strangers, roots[0], next.root, sockets[0], sockets[2]) {
		if _, err := os.Stat(there); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(living.close(), next.close()); err != nil {
		t.Error(err)
	}
	absent(t, living.root)
}

// What programs ask about their user names nobody.
func TestEtc(t *testing.T) {
	s, err := newStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := s.dir(true)
	if err != nil {
		t.Fatal(err)
	}
	passwd, err := os.ReadFile(filepath.Join(dir, "etc", "passwd"))
	if want := "user:x:" + strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid()) + "::/tmp:/bin/sh\n"; err != nil || string(passwd) != want {
		t.Errorf("%q %v", passwd, err)
	}
	hosts, err := os.ReadFile(filepath.Join(dir, "etc", "hosts"))
	if err != nil || strings.Count(string(hosts), "localhost") != 2 {
		t.Errorf("%q %v", hosts, err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
