package rootfs

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
)

// scratch returns a new directory with a real path that is not beneath /tmp,
// which a guest can name only by the alias.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if dir = filepath.ToSlash(dir); !capability.Beneath(dir, "/tmp") {
		return dir
	}
	for _, place := range []string{"/var/tmp", "."} {
		if dir, err = os.MkdirTemp(place, ".rootfs-test-"); err == nil {
			break
		}
	}
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil || capability.Beneath(dir, "/tmp") {
		t.Skipf("no place outside of /tmp: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// layer makes a layer of entries; those that start with "!" are denied. The
// first layer of a grant is closed.
func layer(t testing.TB, name string, entries ...string) capability.Layer {
	t.Helper()
	l := capability.Layer{Name: name, Closed: name == "manifest"}
	for _, e := range entries {
		e, deny := strings.CutPrefix(e, "!")
		c, err := capability.Parse(capability.Filesystem, e, capability.Pos{File: name + ".toml", Line: 1})
		if err != nil {
			t.Fatal(err)
		}
		if deny {
			l.Deny = append(l.Deny, c)
		} else {
			l.Allow = append(l.Allow, c)
			l.Speaks = []capability.Topic{{Kind: capability.Filesystem, Verb: capability.Read}, {Kind: capability.Filesystem, Verb: capability.Write}}
		}
	}
	return l
}

// record is what was told to the audit log.
type record struct{ allowed, denied []string }

func (r *record) see(a capability.Access, err error) {
	s := string(a.Verb) + ":" + a.Target
	if err == nil {
		r.allowed = append(r.allowed, s)
	} else {
		r.denied = append(r.denied, s)
	}
}

func (r *record) reset() { *r = record{} }

// plant makes files, "dir/" directories and "name -> target" links beneath dir.
func plant(t testing.TB, dir string, entries ...string) {
	t.Helper()
	for _, e := range entries {
		name, target, isLink := strings.Cut(e, " -> ")
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case isLink:
			err = os.Symlink(target, p)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(p, 0o755)
		default:
			err = os.WriteFile(p, []byte("content of "+name), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// state describes everything beneath dirs, so that a change shows.
func state(t testing.TB, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %v %v", p, st.Mode(), st.ModTime().UnixNano())
			switch {
			case st.Mode().IsRegular():
				data, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, " %x", sha256.Sum256(data))
			case st.Mode()&fs.ModeSymlink != 0:
				link, err := os.Readlink(p)
				if err != nil {
					return err
				}
				b.WriteString(" " + link)
			}
			b.WriteByte('\n')
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// house is the world of most tests: a workspace that may be written, a root
// that may be read, a private directory and a skill, and next to them what is
// not granted.
type house struct {
	base string
	fs   *FS
	rec  *record
	tmps int // how often the private directory was asked for
}

// newHouse grants write:base/ws, read:base/ro, write:${tmp}, read:base/skill
// and what more says, where "@" stands for base.
func newHouse(t testing.TB, more ...string) *house {
	t.Helper()
	h := &house{base: scratch(t), rec: new(record)}
	plant(t, h.base,
		"ws/a.txt", "ws/sub/b.txt", "ws/sub/deep/c.txt", "ws/empty/", "ws/private/key", "ws/private/more/key",
		"ws/in -> sub/b.txt", "ws/indir -> sub", "ws/up -> sub/../a.txt", "ws/dangling -> nowhere",
		"ws/out-abs -> "+h.base+"/out/secret", "ws/out-rel -> ../out/secret", "ws/out-dir -> ../out",
		"ws/out-missing -> ../out/missing", "ws/hop -> hop2", "ws/hop2 -> out-dir",
		"ws/to-ro -> ../ro", "ws/to-ro-abs -> "+h.base+"/ro/r.txt", "ws/to-private -> private/key", "ws/to-private-dir -> private",
		"ws/loop -> loop", "ws/loop1 -> loop2", "ws/loop2 -> loop1", "ws/self -> .", "ws/climb -> ..",
		"ws/host-tmp -> /tmp", "ws/host-root -> /",
		"ro/r.txt", "ro/d/e.txt", "ro/to-ws -> ../ws", "ro/to-secret -> ../out/secret",
		"out/secret", "out/dir/x", "out/empty/", "ws2/sibling", "wsx", "skill/skill.toml",
		"tmp/")
	entries := []string{"write:@/ws", "read:@/ro", "write:${tmp}", "read:@/skill"}
	for i, e := range append(entries, more...) {
		e = strings.ReplaceAll(e, "@", h.base)
		if i < len(entries) {
			entries[i] = e
		} else {
			entries = append(entries, e)
		}
	}
	g := capability.NewGrant([]capability.Layer{layer(t, "manifest", entries...)}, h.rec.see)
	h.fs = New(g, executor.Dirs{Workspace: h.base + "/ws", Skill: h.base + "/skill", Tmp: h.tmp})
	h.fs.walking = *oldKernel
	t.Cleanup(func() {
		if err := h.fs.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *house) tmp() (string, error) {
	h.tmps++
	return h.base + "/tmp", nil
}

// path replaces "@" by base.
func (h *house) path(p string) string { return strings.ReplaceAll(p, "@", h.base) }

func (h *house) read(p string) (string, sys.Errno) { return read(h.fs, h.path(p)) }

func read(f *FS, p string) (string, sys.Errno) {
	x, errno := f.OpenFile(p, sys.O_RDONLY, 0)
	if errno != 0 {
		return "", errno
	}
	defer x.Close()
	buf := make([]byte, 4096)
	n, errno := x.Read(buf)
	return string(buf[:n]), errno
}

func (h *house) put(p, content string, flag sys.Oflag) sys.Errno {
	x, errno := h.fs.OpenFile(h.path(p), flag, 0o600)
	if errno != 0 {
		return errno
	}
	defer x.Close()
	_, errno = x.Write([]byte(content))
	return errno
}

func (h *house) list(p string) ([]string, sys.Errno) { return list(h.fs, h.path(p)) }

func list(f *FS, p string) (names []string, errno sys.Errno) {
	x, errno := f.OpenFile(p, sys.O_DIRECTORY, 0)
	if errno != 0 {
		return nil, errno
	}
	defer x.Close()
	entries, errno := x.Readdir(-1)
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, errno
}

var noDirs executor.Dirs

// newGrant makes a grant of layers, of which the first is closed; "@" in an
// entry stands for base.
func newGrant(t testing.TB, base string, rec *record, layers ...[]string) capability.Grant {
	t.Helper()
	var ls []capability.Layer
	for i, entries := range layers {
		var es []string
		for _, e := range entries {
			es = append(es, strings.ReplaceAll(e, "@", base))
		}
		ls = append(ls, layer(t, []string{"manifest", "operator", "session", "call"}[i], es...))
	}
	if rec == nil {
		return capability.NewGrant(ls, nil)
	}
	return capability.NewGrant(ls, rec.see)
}
