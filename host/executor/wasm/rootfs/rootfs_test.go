package rootfs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
)

func TestLinksInside(t *testing.T) {
	for p, want := range map[string]string{
		"/workspace/a.txt":                "ws/a.txt",
		"workspace/a.txt":                 "ws/a.txt",
		"//workspace/./sub//b.txt":        "ws/sub/b.txt",
		"@/ws/a.txt":                      "ws/a.txt",
		"/workspace/in":                   "ws/sub/b.txt",
		"/workspace/indir/b.txt":          "ws/sub/b.txt",
		"/workspace/up":                   "ws/a.txt",
		"/workspace/self/self/a.txt":      "ws/a.txt",
		"/workspace/sub/../a.txt":         "ws/a.txt",
		"/workspace/../ws/a.txt":          "ws/a.txt",
		"/workspace/to-ro/r.txt":          "ro/r.txt",
		"/workspace/to-ro-abs":            "ro/r.txt",
		"/workspace/climb/ro/r.txt":       "ro/r.txt",
		"@/ro/to-ws/sub/b.txt":            "ws/sub/b.txt",
		"/skill/skill.toml":               "skill/skill.toml",
		"/workspace/host-root/@/ws/a.txt": "ws/a.txt",
	} {
		h := newHouse(t)
		got, errno := h.read(p)
		if errno != 0 || got != "content of "+want {
			t.Errorf("%s: %q, %v", p, got, errno)
		}
		if len(h.rec.denied) != 0 || !slices.Equal(h.rec.allowed, []string{"read:" + h.base + "/" + want}) {
			t.Errorf("%s: on record: %+v", p, h.rec)
		}
	}
}

// TestRecord pins that each operation records each thing it touches once, by
// its real name.
func TestRecord(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(h *house) sys.Errno
		want string
	}{
		"stat":         {func(h *house) sys.Errno { return errnoOf(h.fs.Stat("/workspace/indir")) }, "[read:@/ws/sub]"},
		"stat missing": {func(h *house) sys.Errno { h.fs.Stat("/workspace/no/such"); return 0 }, "[read:@/ws/no/such]"},
		"lstat":        {func(h *house) sys.Errno { return errnoOf(h.fs.Lstat("/workspace/indir")) }, "[read:@/ws/indir]"},
		"open rdwr":    {func(h *house) sys.Errno { return h.put("/workspace/in", "x", sys.O_RDWR) }, "[write:@/ws/sub/b.txt read:@/ws/sub/b.txt]"},
		"create":       {func(h *house) sys.Errno { return h.put("/workspace/indir/new", "x", truncating) }, "[write:@/ws/sub/new]"},
		"dangling":     {func(h *house) sys.Errno { return h.put("/workspace/dangling", "x", truncating) }, "[write:@/ws/nowhere]"},
		"mkdir":        {func(h *house) sys.Errno { return h.fs.Mkdir("/workspace/indir/d", 0o700) }, "[write:@/ws/sub/d]"},
		"rename":       {func(h *house) sys.Errno { return h.fs.Rename("/workspace/a.txt", "/workspace/sub/a") }, "[write:@/ws/a.txt write:@/ws/sub/a]"},
		"unlink":       {func(h *house) sys.Errno { return h.fs.Unlink("/workspace/out-rel") }, "[write:@/ws/out-rel]"},
		"tmp":          {func(h *house) sys.Errno { return h.put("/tmp/x", "x", creating) }, "[write:${tmp}/x]"},
		"ancestors":    {func(h *house) sys.Errno { return errnoOf(h.list("@")) }, "[]"},
		"root":         {func(h *house) sys.Errno { return errnoOf(h.list("/")) }, "[]"},
	} {
		h := newHouse(t)
		if errno := c.do(h); errno != 0 {
			t.Errorf("%s: %v", name, errno)
		}
		if got := fmt.Sprint(h.rec.allowed); got != h.path(c.want) || len(h.rec.denied) != 0 {
			t.Errorf("%s: on record: %+v", name, h.rec)
		}
	}
}

func TestAliases(t *testing.T) {
	h := newHouse(t)
	if h.tmps != 0 {
		t.Error("New touched the private directory")
	}
	names, errno := h.list(".")
	first := strings.SplitN(h.base, "/", 3)[1]
	if want := []string{"skill", "tmp", "workspace", first}; errno != 0 || !slices.Equal(names, want) {
		t.Errorf("/ lists %q, want %q: %v", names, want, errno)
	}
	names, _ = h.list("@")
	slices.Sort(names)
	if want := []string{"ro", "skill", "ws"}; !slices.Equal(names, want) {
		t.Errorf("@ lists %q, want %q", names, want)
	}
	if h.tmps != 0 {
		t.Error("listing touched the private directory")
	}
	if errno := h.put("/tmp/x", "private", creating); errno != 0 {
		t.Fatal(errno)
	}
	if data, err := os.ReadFile(h.base + "/tmp/x"); string(data) != "private" {
		t.Error(string(data), err)
	}
	h.read("/tmp/x")
	if h.tmps != 1 {
		t.Errorf("asked %d times for the private directory", h.tmps)
	}
	for _, p := range []string{"/", "/workspace", "/tmp", "/skill", h.base, "/" + first} {
		if st, errno := h.fs.Stat(p); errno != 0 || !st.Mode.IsDir() || st.Ino == 0 && hasInodes() {
			t.Errorf("stat %s: %v, %v", p, st, errno)
		}
	}
	if errno := h.fs.Mkdir("/workspace", 0o700); errno != sys.EEXIST {
		t.Errorf("mkdir of an alias: %v", errno)
	}
	if errno := h.fs.Mkdir("/"+first, 0o700); errno != sys.EEXIST {
		t.Errorf("mkdir of an ancestor: %v", errno)
	}
}

// hasInodes reports whether inode numbers are known here.
func hasInodes() bool { st, _ := os.Stat("/"); return st.Sys() != nil && os.PathSeparator == '/' }

// TestLinksInTmp pins that an absolute link in the private directory is the
// guest's path, while anywhere else it is the host's.
func TestLinksInTmp(t *testing.T) {
	h := newHouse(t)
	plant(t, h.base, "tmp/abs -> /workspace/a.txt", "tmp/rel -> ../workspace/a.txt", "tmp/own -> /tmp/f", "tmp/f", "tmp/etc -> /etc/passwd",
		"ws/abs -> /workspace/a.txt")
	for p, want := range map[string]sys.Errno{"/tmp/abs": 0, "/tmp/rel": 0, "/tmp/own": 0, "/tmp/etc": sys.EACCES, "/workspace/abs": sys.EACCES} {
		if _, errno := h.read(p); errno != want {
			t.Errorf("%s: %v, want %v", p, errno, want)
		}
	}
	if link, errno := h.fs.Readlink("/tmp/abs"); link != "/workspace/a.txt" {
		t.Error(link, errno)
	}
	if link, errno := h.fs.Readlink("/tmp/etc"); errno != sys.EACCES {
		t.Error(link, errno)
	}
}

func TestReadlink(t *testing.T) {
	h := newHouse(t)
	plant(t, h.base, "ws/weird -> ../out/../ws/a.txt", "ws/abs-in -> "+h.base+"/ws/a.txt")
	for p, want := range map[string]string{
		"/workspace/in": "sub/b.txt", "/workspace/dangling": "nowhere", "/workspace/to-ro": "../ro", "/workspace/climb": "..",
		"/workspace/to-ro-abs": "@/ro/r.txt", "/workspace/abs-in": "@/ws/a.txt", "/workspace/self/in": "sub/b.txt", "@/ro/to-ws": "../ws",
	} {
		if got, errno := h.fs.Readlink(h.path(p)); got != h.path(want) {
			t.Errorf("%s: %q, %v", p, got, errno)
		}
	}
	for p, want := range map[string]sys.Errno{
		"/workspace/out-abs": sys.EACCES, "/workspace/out-dir": sys.EACCES, "/workspace/weird": sys.EACCES, "@/ro/to-secret": sys.EACCES,
		"/workspace/a.txt": sys.EINVAL, "/workspace/none": sys.ENOENT, "/": sys.EINVAL, "/workspace/host-root": 0,
	} {
		if got, errno := h.fs.Readlink(h.path(p)); errno != want {
			t.Errorf("%s: %q, %v, want %v", p, got, errno, want)
		}
	}
}

// TestExistenceOracle compares every answer about something that is not
// granted and exists with that about something that does not.
func TestExistenceOracle(t *testing.T) {
	ops := map[string]func(f *FS, p string) string{
		"open":     func(f *FS, p string) string { _, e := f.OpenFile(p, sys.O_RDONLY, 0); return e.Error() },
		"opendir":  func(f *FS, p string) string { _, e := f.OpenFile(p, sys.O_DIRECTORY, 0); return e.Error() },
		"nofollow": func(f *FS, p string) string { _, e := f.OpenFile(p, sys.O_NOFOLLOW, 0); return e.Error() },
		"write":    func(f *FS, p string) string { _, e := f.OpenFile(p, sys.O_WRONLY, 0); return e.Error() },
		"create":   func(f *FS, p string) string { _, e := f.OpenFile(p, creating, 0o600); return e.Error() },
		"excl":     func(f *FS, p string) string { _, e := f.OpenFile(p, creating|sys.O_EXCL, 0o600); return e.Error() },
		"slash":    func(f *FS, p string) string { _, e := f.OpenFile(p+"/", sys.O_RDONLY, 0); return e.Error() },
		"beneath":  func(f *FS, p string) string { _, e := f.OpenFile(p+"/x/y", sys.O_RDONLY, 0); return e.Error() },
		"up": func(f *FS, p string) string {
			_, e := f.OpenFile(p+"/../../ws/a.txt", sys.O_RDONLY, 0)
			return e.Error()
		},
		"stat":     func(f *FS, p string) string { _, e := f.Stat(p); return e.Error() },
		"lstat":    func(f *FS, p string) string { _, e := f.Lstat(p); return e.Error() },
		"readlink": func(f *FS, p string) string { _, e := f.Readlink(p); return e.Error() },
		"mkdir":    func(f *FS, p string) string { return f.Mkdir(p, 0o700).Error() },
		"rmdir":    func(f *FS, p string) string { return f.Rmdir(p).Error() },
		"unlink":   func(f *FS, p string) string { return f.Unlink(p).Error() },
		"rename":   func(f *FS, p string) string { return f.Rename(p, "/workspace/r").Error() },
		"onto":     func(f *FS, p string) string { return f.Rename("/workspace/a.txt", p).Error() },
		"link":     func(f *FS, p string) string { return f.Link(p, "/workspace/r").Error() },
		"linkto":   func(f *FS, p string) string { return f.Link("/workspace/a.txt", p).Error() },
		"symlink":  func(f *FS, p string) string { return f.Symlink("x", p).Error() },
		"utimens":  func(f *FS, p string) string { return f.Utimens(p, 0, 0).Error() },
		"chmod":    func(f *FS, p string) string { return f.Chmod(p, 0o600).Error() },
	}
	// Names of the same length, so that nothing can depend on that either.
	pairs := [][2]string{
		{"@/out", "@/oux"}, {"@/out/secret", "@/out/absent"}, {"@/out/dir", "@/out/dix"}, {"/etc", "/etx"},
		{"/workspace/private", "/workspace/privata"}, {"/workspace/private/key", "/workspace/private/kex"},
		{"/workspace/out-rel", "/workspace/out-mis"}, {"/workspace/out-dir/dir", "/workspace/out-dir/dix"},
		{"/workspace/to-private", "/workspace/to-privata"},
	}
	for name, op := range ops {
		h := newHouse(t, "!read:@/ws/private", "!read:@/ws/privata")
		plant(t, h.base, "ws/out-mis -> ../out/absent", "ws/to-privata -> privata/kex")
		for _, p := range pairs {
			link := strings.Contains(p[0], "out-rel") || strings.HasSuffix(p[0], "to-private")
			if link && slices.Contains([]string{"unlink", "rename", "onto", "symlink", "lstat", "mkdir", "linkto", "link", "rmdir"}, name) {
				continue // these are about the link itself, which is the guest's
			}
			h.rec.reset()
			a, b := op(h.fs, h.path(p[0])), op(h.fs, h.path(p[1]))
			if a != b || a != sys.EACCES.Error() && !(link && (name == "nofollow" || name == "excl" || name == "linkto")) {
				t.Errorf("%s: %s says %q, %s says %q", name, p[0], a, p[1], b)
			}
		}
	}
}

// TestDeniedIsNotListed pins that a listing does not name what is denied.
func TestDeniedIsNotListed(t *testing.T) {
	h := newHouse(t, "!read:@/ws/private", "!write:@/ws/sub")
	names, errno := h.list("/workspace")
	if errno != 0 || slices.Contains(names, "private") || !slices.Contains(names, "sub") {
		t.Errorf("%q, %v", names, errno)
	}
	if _, errno := h.read("/workspace/sub/b.txt"); errno != 0 {
		t.Errorf("a denied write denies reading: %v", errno)
	}
	if errno := h.put("/workspace/sub/b.txt", "x", sys.O_WRONLY); errno != sys.EACCES {
		t.Error(errno)
	}
}

func TestRename(t *testing.T) {
	h := newHouse(t, "write:@/other")
	plant(t, h.base, "ws/moved/x", "ws/full/x", "ws/level/")
	plant(t, h.base, "other/")
	if portable { // Windows does not replace a directory, nor does os.Root
		os.Remove(h.base + "/ws/empty")
	}
	for _, c := range []struct {
		from, to string
		want     sys.Errno
	}{
		{"/workspace/a.txt", "/workspace/sub/a.txt", 0},
		{"/workspace/sub/a.txt", "/workspace/sub/deep/c.txt", 0},
		{"/workspace/moved", "/workspace/empty", 0},
		{"/workspace/empty", "/workspace/sub/moved", 0},
		{"/workspace/sub/moved", "/workspace/moved", sys.EPERM}, // up
		{"/workspace/sub/moved/x", "/workspace/x", 0},
		{"/workspace/x", "/workspace/sub", sys.EISDIR},
		{"/workspace/level", "/workspace/x", sys.ENOTDIR},
		{"/workspace/level", "/workspace/full", sys.ENOTEMPTY},
		{"/workspace/none", "/workspace/y", sys.ENOENT},
		{"/workspace/x/", "/workspace/y", sys.ENOTDIR},
		{"/workspace/in", "/workspace/in2", 0},
		{"/workspace/out-rel", "/workspace/out-rel2", sys.EPERM},
		{"/workspace/x", "@/other/x", 0},
		{"/workspace/level/", "@/other/level/", sys.EPERM}, // to another root
	} {
		if got := h.fs.Rename(h.path(c.from), h.path(c.to)); got != c.want && !(portable && (got == sys.ENOTSUP && strings.HasPrefix(c.to, "@") || got == sys.EEXIST && c.want != 0)) {
			t.Errorf("rename %s %s: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	if errno := h.fs.Link("/workspace/full/x", h.path("@/other/l")); errno != sys.EPERM {
		t.Errorf("hard link between roots: %v", errno)
	}
	if errno := h.fs.Link("/workspace/full/x", "/workspace/sub/l"); errno != 0 {
		t.Error(errno)
	}
	if errno := h.fs.Link("/workspace/sub", "/workspace/l"); errno != sys.EPERM {
		t.Errorf("hard link of a directory: %v", errno)
	}
}

// TestZero pins that nothing is granted by a Grant without layers, and that
// wazero can open its preopen nevertheless.
func TestZero(t *testing.T) {
	f := New(capability.Grant{}, noDirs)
	defer f.Close()
	if names, errno := list(f, "."); errno != 0 || len(names) != 0 {
		t.Errorf("%q, %v", names, errno)
	}
	for _, p := range []string{"/etc", "/tmp", "/workspace", "/no"} {
		if _, errno := f.Stat(p); errno != sys.EACCES {
			t.Errorf("%s: %v", p, errno)
		}
	}
}

// TestWholeDisk pins that a grant of "/" shows the host with the aliases over
// it, but neither its /tmp nor its processes.
func TestWholeDisk(t *testing.T) {
	base := scratch(t)
	plant(t, base, "ws/a", "tmp/")
	f := New(newGrant(t, base, nil, []string{"read:/"}), executor.Dirs{Workspace: base + "/ws"})
	defer f.Close()
	names, errno := list(f, ".")
	if errno != 0 || !slices.Contains(names, "workspace") || slices.Contains(names, "tmp") || !slices.Contains(names, "etc") {
		t.Errorf("%q, %v", names, errno)
	}
	for p, want := range map[string]sys.Errno{"/workspace/a": 0, base + "/ws/a": 0, "/tmp/x": sys.EACCES, "/proc/self/environ": sys.EACCES, "/sys/kernel": sys.EACCES} {
		if _, errno := read(f, p); errno != want {
			t.Errorf("%s: %v, want %v", p, errno, want)
		}
	}
	if _, err := os.Stat("/proc/version"); err == nil {
		f := New(newGrant(t, base, nil, []string{"read:/", "read:/proc/version"}), noDirs)
		defer f.Close()
		if _, errno := read(f, "/proc/version"); errno != 0 {
			t.Errorf("named explicitly: %v", errno)
		}
	}
}

// TestGrantedFile pins what a grant of one file is worth.
func TestGrantedFile(t *testing.T) {
	base := scratch(t)
	plant(t, base, "d/f", "d/g")
	f := New(newGrant(t, base, nil, []string{"write:@/d/f"}), noDirs)
	defer f.Close()
	if got, errno := read(f, base+"/d/f"); got != "content of d/f" {
		t.Error(errno)
	}
	if names, errno := list(f, base+"/d"); !slices.Equal(names, []string{"f"}) {
		t.Error(names, errno)
	}
	if st, errno := f.Stat(base + "/d/f"); !st.Mode.IsRegular() || st.Size != 14 {
		t.Error(st, errno)
	}
	x, errno := f.OpenFile(base+"/d/f", truncating, 0o600)
	if errno != 0 {
		t.Fatal(errno)
	}
	x.Write([]byte("new"))
	x.Close()
	for what, errno := range map[string]sys.Errno{
		"unlink": f.Unlink(base + "/d/f"), "rename": f.Rename(base+"/d/f", base+"/d/h"), "create": errnoOf(f.OpenFile(base+"/d/h", creating, 0o600)),
		"sibling": errnoOf(f.Stat(base + "/d/g")), "beneath": errnoOf(f.Stat(base + "/d/f/x")),
	} {
		if errno != sys.EACCES && !(what == "beneath" && errno == sys.ENOTDIR) {
			t.Errorf("%s: %v", what, errno)
		}
	}
	if err := os.Remove(base + "/d/f"); err != nil {
		t.Fatal(err)
	}
	if _, errno := f.OpenFile(base+"/d/f", creating, 0o600); errno != sys.EACCES {
		t.Errorf("made a name in a directory that is not granted: %v", errno)
	}
}

// TestMovedRoot pins that a path means what has that name now, also where a
// root within a root was moved away while it was open.
func TestMovedRoot(t *testing.T) {
	base := scratch(t)
	plant(t, base, "a/b/f", "a/c/f")
	f := New(newGrant(t, base, nil, []string{"write:@/a", "write:@/a/b"}), noDirs)
	defer f.Close()
	if got, errno := read(f, base+"/a/b/f"); got != "content of a/b/f" {
		t.Error(got, errno)
	}
	for _, move := range [][2]string{{"/a/b", "/a/d"}, {"/a/c", "/a/b"}} {
		if errno := f.Rename(base+move[0], base+move[1]); errno != 0 {
			t.Fatal(errno)
		}
		if _, errno := read(f, base+"/a/b/f"); move[0] == "/a/b" && errno != sys.ENOENT {
			t.Errorf("still there: %v", errno)
		}
	}
	if got, errno := read(f, base+"/a/b/f"); got != "content of a/c/f" {
		t.Error(got, errno)
	}
}

// TestLive pins that today's policy is asked as well.
func TestLive(t *testing.T) {
	base := scratch(t)
	plant(t, base, "ws/a")
	revoked := false
	g := newGrant(t, base, nil, []string{"read:@/ws"}).WithLive(func(capability.Access) error {
		if revoked {
			return os.ErrPermission
		}
		return nil
	})
	f := New(g, noDirs)
	defer f.Close()
	if _, errno := read(f, base+"/ws/a"); errno != 0 {
		t.Error(errno)
	}
	revoked = true
	if _, errno := read(f, base+"/ws/a"); errno != sys.EACCES {
		t.Error(errno)
	}
}

func TestNewIsCheap(t *testing.T) {
	g, d := capability.Grant{}, executor.Dirs{}
	if n := testing.AllocsPerRun(100, func() { New(g, d).Close() }); n > 1 {
		t.Errorf("New and Close make %v allocations", n)
	}
}
