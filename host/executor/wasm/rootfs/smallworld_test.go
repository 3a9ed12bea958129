package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/skillhost/skill/host/capability"
)

// worldTree has a link in each way that two roots can be tied together.
var worldTree = []string{
	"a/f", "a/l -> ../b", "a/k -> l/g", "b/g", "b/k -> ../a/f", "b/d/f", "b/l -> ../a/l/d", "c -> a", "d -> nowhere", "k -> k",
}

var worldNames = []string{"a", "b", "c", "d", "f", "g", "k", "l", "x"}

// worldLayers are all that a layer may say; a layer without entries abstains.
var worldLayers = [][]string{
	{}, {"read:@/a"}, {"write:@/a"}, {"read:@/b"}, {"write:@/b"}, {"write:@/a", "read:@/b"}, {"read:@"}, {"write:@"},
	{"read:@/a/f", "write:@/b/d"}, {"write:@", "!read:@/b/d"}, {"read:@", "write:@/a", "!read:@/b/g"}, {"write:@", "!write:@/a", "!read:@/c"},
}

// TestSmallWorld tries every path of up to three names under every pair of
// layers, and compares with two references that share no code with the package:
// what is opened must be what EvalSymlinks says, granted by a naive check, and
// every answer must be that of a walk by os.Lstat and os.Readlink.
func TestSmallWorld(t *testing.T) {
	base := scratch(t)
	plant(t, base, worldTree...)
	var paths []string
	for _, x := range append([]string{""}, worldNames...) {
		for _, y := range append([]string{""}, worldNames...) {
			for _, z := range append([]string{""}, worldNames...) {
				if !(y == "" && z != "" || x == "" && y != "") {
					paths = append(paths, filepath.ToSlash(filepath.Join(base, x, y, z)))
				}
			}
		}
	}
	count, opened := 0, 0
	for i, one := range worldLayers {
		for j, two := range worldLayers {
			if (testing.Short() || *oldKernel) && (i+j)%4 != 0 {
				continue
			}
			o := &oracle{base: base, layers: [][]string{one, two}}
			o.learn(t)
			f := New(newGrant(t, base, nil, one, two), noDirs)
			f.walking = *oldKernel
			for _, p := range paths {
				for _, op := range []string{"stat", "read", "write", "list"} {
					got, ino := perform(f, op, p)
					want := o.expect(op, p)
					count++
					if got != want {
						t.Fatalf("%q and %q: %s %s: %q, want %q", one, two, op, strings.TrimPrefix(p, base), got, want)
					}
					if ino == 0 || strings.HasPrefix(got, "E") {
						continue
					}
					opened++
					if why := o.unsound(op, p, ino); why != "" {
						t.Fatalf("%q and %q: %s %s: %s", one, two, op, strings.TrimPrefix(p, base), why)
					}
				}
			}
			f.Close()
		}
	}
	if opened < 500 {
		t.Errorf("only %d of %d attempts were let through", opened, count)
	}
	t.Logf("%d attempts, %d let through", count, opened)
}

// perform returns the errno's name, or what was seen, and the inode if it is
// one of the host.
func perform(f *FS, op, p string) (string, uint64) {
	flag := map[string]sys.Oflag{"read": sys.O_RDONLY, "write": sys.O_WRONLY, "list": sys.O_DIRECTORY}[op]
	if op == "stat" {
		st, errno := f.Stat(p)
		if errno != 0 {
			return name(errno), 0
		}
		return st.Mode.Type().String(), st.Ino
	}
	x, errno := f.OpenFile(p, flag, 0)
	if errno != 0 {
		return name(errno), 0
	}
	defer x.Close()
	if op == "write" {
		if _, errno := x.Write([]byte("same")); errno != 0 {
			return name(errno), 0
		}
	}
	ino, _ := x.Ino()
	if op != "list" {
		return "opened", ino
	}
	entries, errno := x.Readdir(-1)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	if errno != 0 {
		return name(errno), 0
	}
	return "[" + strings.Join(names, " ") + "]", ino
}

func name(errno sys.Errno) string {
	for e, s := range map[sys.Errno]string{sys.EACCES: "EACCES", sys.ENOENT: "ENOENT", sys.ENOTDIR: "ENOTDIR", sys.EISDIR: "EISDIR", sys.ELOOP: "ELOOP"} {
		if e == errno {
			return s
		}
	}
	return "E?" + errno.Error()
}

// oracle says what must happen, naively.
type oracle struct {
	base   string
	layers [][]string
	below  map[string]map[string]bool // each directory above something granted, and the names that lead there
}

func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// grants decides on real paths: denies first, then every layer that says
// something must have an entry.
func (o *oracle) grants(verb, p string) bool {
	for _, l := range o.layers {
		for _, e := range l {
			if d, ok := strings.CutPrefix(strings.ReplaceAll(e, "@", o.base), "!"); ok {
				v, dir, _ := strings.Cut(d, ":")
				if under(p, dir) && (v == "read" || v == verb) {
					return false
				}
			}
		}
	}
	for i, l := range o.layers {
		ok := len(l) == 0 && i > 0
		for _, e := range l {
			v, dir, _ := strings.Cut(strings.ReplaceAll(e, "@", o.base), ":")
			ok = ok || under(p, dir) && (v == "write" || v == verb)
		}
		if !ok {
			return false
		}
	}
	return true
}

func (o *oracle) learn(t *testing.T) {
	o.below = map[string]map[string]bool{}
	err := filepath.WalkDir(o.base, func(p string, _ fs.DirEntry, err error) error {
		if err == nil && o.grants("read", p) {
			for at := p; at != "/"; at = filepath.Dir(at) {
				up := filepath.Dir(at)
				if o.below[up] == nil {
					o.below[up] = map[string]bool{}
				}
				o.below[up][filepath.Base(at)] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// expect walks by os.Lstat and os.Readlink, asking at each name.
func (o *oracle) expect(op, p string) string {
	verb := "read"
	if op == "write" {
		verb = "write"
	}
	at, todo, links := "", strings.Split(p[1:], "/"), 0
	miss := func(next, errno string) string {
		for _, n := range todo {
			if n == ".." {
				break
			}
			next += "/" + n
		}
		if !o.grants(verb, next) {
			return "EACCES"
		}
		return errno
	}
	for len(todo) > 0 {
		n := todo[0]
		todo = todo[1:]
		if n == ".." {
			at = strings.TrimSuffix(filepath.Dir(at), "/")
			continue
		}
		next := at + "/" + n
		if !o.grants("read", next) {
			if o.below[next] == nil {
				return "EACCES"
			}
			at = next
			continue
		}
		st, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return miss(next, "ENOENT")
		case err != nil:
			return err.Error()
		case st.Mode()&fs.ModeSymlink != 0:
			if links++; links > 40 {
				return miss(next, "ELOOP")
			}
			target, err := os.Readlink(next)
			if err != nil || filepath.IsAbs(target) {
				return "the tree has only relative links"
			}
			todo = append(strings.Split(target, "/"), todo...)
		case !st.IsDir() && len(todo) > 0:
			return miss(next, "ENOTDIR")
		default:
			at = next
		}
	}
	return o.final(op, verb, at)
}

// final says what op gives at a path that exists.
func (o *oracle) final(op, verb, at string) string {
	if !o.grants("read", at) { // above what is granted
		switch op {
		case "write":
			return "EACCES"
		case "stat":
			return fs.ModeDir.String()
		case "read":
			return "opened"
		}
		return o.names(at, func(n string) bool { return o.below[at][n] })
	}
	st, err := os.Lstat(at)
	switch {
	case err != nil:
		return err.Error()
	case !o.grants(verb, at):
		return "EACCES"
	case op == "stat":
		return st.Mode().Type().String()
	case op == "write" && st.IsDir():
		return "EISDIR"
	case op == "list" && !st.IsDir():
		return "ENOTDIR"
	case op == "list":
		return o.names(at, func(n string) bool { return o.grants("read", at+"/"+n) })
	}
	return "opened"
}

func (o *oracle) names(dir string, shown func(string) bool) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, e := range entries {
		if shown(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return "[" + strings.Join(names, " ") + "]"
}

// unsound says why what was opened should not have been.
func (o *oracle) unsound(op, p string, ino uint64) string {
	if ino == number(p) || portable {
		return "" // nothing of the host
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return err.Error()
	}
	f := New(capability.NewGrant([]capability.Layer{{Closed: true, Allow: all}}, nil), noDirs)
	defer f.Close()
	st, errno := f.Lstat(real)
	switch {
	case number(real) == ino && o.below[real] != nil:
		return ""
	case errno != 0 || st.Ino != ino:
		return "opened something else than " + real
	case op == "write" && !o.grants("write", real), !o.grants("read", real):
		return "opened " + real + ", which is not granted"
	}
	return ""
}

var all = capability.Set{{Kind: capability.Filesystem, Verb: capability.Read, Pattern: "/"}}
