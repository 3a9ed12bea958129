package view

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
)

// A tree is a small file system. A directory ends in "/", a link is "name -> target".
type tree map[string]string // path to "dir", "file", "exec" or the target of a link

func grow(lines ...string) tree {
	t := tree{"/": "dir"}
	for _, l := range lines {
		name, target, link := strings.Cut(l, " -> ")
		p, what := strings.TrimSuffix(name, "/"), "file"
		switch {
		case link:
			what = target
		case strings.HasSuffix(name, "/"):
			what = "dir"
		case strings.HasSuffix(name, "*"):
			p, what = strings.TrimSuffix(name, "*"), "exec"
		}
		for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
			if t[dir] == "" {
				t[dir] = "dir"
			}
		}
		t[p] = what
	}
	return t
}

func (t tree) Real(p string) (string, error) {
	for range 40 {
		at := "/"
		again := false
		parts := strings.Split(strings.Trim(p, "/"), "/")
		for i, part := range parts {
			if part == "" {
				continue
			}
			at = path.Join(at, part)
			what := t[at]
			if what == "" {
				return "", fs.ErrNotExist
			}
			if strings.HasPrefix(what, "/") {
				p, again = path.Join(append([]string{what}, parts[i+1:]...)...), true
				break
			}
		}
		if !again {
			return at, nil
		}
	}
	return "", fs.ErrInvalid
}

func (t tree) Mode(p string) (fs.FileMode, error) {
	dir, err := t.Real(path.Dir(p))
	if err != nil {
		return 0, err
	}
	switch what := t[path.Join(dir, path.Base(p))]; what {
	case "":
		return 0, fs.ErrNotExist
	case "dir":
		return fs.ModeDir | 0o755, nil
	case "file":
		return 0o644, nil
	case "exec":
		return 0o755, nil
	}
	return fs.ModeSymlink | 0o777, nil
}

func (t tree) Names(dir string) ([]string, error) {
	var out []string
	for p := range t {
		if p != "/" && path.Dir(p) == dir {
			out = append(out, path.Base(p))
		}
	}
	slices.Sort(out)
	return out, nil
}

func (t tree) options(strict bool) Options {
	o := Options{Strict: strict, Mode: t.Mode, Names: t.Names, Real: t.Real, Tmp: "/var/private", HomePath: "/run/home"}
	return o
}

// A cage simulates what the kernel makes of a View.
type cage struct {
	tree   tree
	strict bool
	view   View
}

// allows reports whether a process may do what rights say to what is at the
// real path p of the host.
func (c cage) allows(p string, r Rights) bool { return c.mounted(p, r) && c.ruled(p, r) }

func (c cage) mounted(p string, r Rights) bool {
	if !c.strict {
		return true
	}
	kind, source, at := Kind(0), "", ""
	for _, m := range c.view.Mounts { // a later mount hides an earlier one
		if !within(p, m.Path) || c.tree[m.Path] == "" && m.Source == "" {
			continue
		}
		if m.Path == "/" && (p == "/" || reserved(p)) {
			continue
		}
		if m.Kind == Pinned {
			if kind == 0 {
				panic("a pin of nothing at " + m.Path)
			}
			continue
		}
		kind, source, at = m.Kind, m.Source, m.Path
		if at == "/" && kind == Writable && within(p, "/sys") {
			kind = ReadOnly
		}
	}
	switch {
	case source != "": // not the host's file of this name
		return false
	case kind == Writable:
		return true
	case kind == ReadOnly:
		return r&Write == 0
	}
	return false
}

func (c cage) ruled(p string, r Rights) bool {
	for _, s := range c.view.Rulesets {
		var got Rights
		for _, rule := range s.Rules {
			if within(p, rule.Path) {
				got |= rule.Rights
			}
		}
		if want := r & s.Handles; got&want != want {
			return false
		}
	}
	return true
}

// within appends a slash to both, where the code looks for one.
func within(p, dir string) bool {
	return dir == "/" || len(p) >= len(dir) && p[:len(dir)] == dir && (p + "/")[len(dir)] == '/'
}

func reserved(p string) bool {
	return within(p, "/proc") || within(p, "/dev") || within(p, "/run") || within(p, "/tmp")
}

// world is everything that the laws are asked about.
var world = grow("/a/b/c/d", "/a/b/e", "/a/f", "/ab/g", "/a/link -> /ab", "/a/b/n -> /a", "/z/", "/proc/1/environ", "/dev/sda", "/run/x", "/sys/k", "/tmp/host",
	"/usr/lib/libc.so", "/usr/lib/ld-linux-x86-64.so.2*", "/lib -> /usr/lib", "/lib64/ld-linux-x86-64.so.2 -> /usr/lib/ld-linux-x86-64.so.2", "/etc/ssl/private/key", "/etc/ssl/certs/x", "/etc/passwd")

// freed are the paths of the baseline, which may be read whatever layers say.
var freed = map[bool][]string{true: bases(true), false: bases(false)}

func bases(strict bool) (out []string) {
	for _, e := range linux {
		if real, err := world.Real(e.path); err == nil && (e.where == both || e.where == private == strict) {
			out = append(out, real)
		}
	}
	return out
}

func free(p string, strict bool) bool {
	return slices.ContainsFunc(freed[strict], func(dir string) bool { return within(p, dir) })
}

type entry struct {
	path string
	verb capability.Verb
}

func entries() []entry {
	var out []entry
	for _, p := range []string{"/", "/a", "/a/b", "/a/b/c", "/ab"} {
		out = append(out, entry{p, capability.Read}, entry{p, capability.Write})
	}
	return out
}

// lists returns every list of at most n entries.
func lists(n int) [][]entry {
	out := [][]entry{nil}
	if n > 0 {
		for _, l := range lists(n - 1) {
			for _, e := range entries() {
				if len(l) == n-1 && (len(l) == 0 || l[len(l)-1].path+string(l[len(l)-1].verb) < e.path+string(e.verb)) {
					out = append(out, append(slices.Clone(l), e))
				}
			}
		}
		if n > 1 {
			out = append(out, lists(n - 1)[1:]...)
		}
	}
	return out
}

func set(list []entry) capability.Set {
	var s capability.Set
	for _, e := range list {
		s = append(s, capability.Capability{Kind: capability.Filesystem, Verb: e.verb, Pattern: e.path})
	}
	return s
}

var modes = []capability.Layer{
	{Name: "closed", Closed: true},
	{Name: "silent"},
	{Name: "read", Speaks: []capability.Topic{reading}},
	{Name: "write", Speaks: []capability.Topic{writing}},
	{Name: "both", Speaks: []capability.Topic{reading, writing}},
}

// lost counts what a View refuses though the grant allows it.
type lost struct{ refused, allowed int }

// check compares the View of layers with what the grant says about every path.
func check(t *testing.T, layers []capability.Layer, strict bool, n *lost) {
	t.Helper()
	v, err := Of(layers, world.options(strict))
	if err != nil {
		t.Fatal(err)
	}
	sound(t, v)
	g, c := capability.NewGrant(layers, nil), cage{world, strict, v}
	for p, what := range world {
		if strings.HasPrefix(what, "/") { // a link is nobody's real path
			continue
		}
		for _, verb := range []capability.Verb{capability.Read, capability.Write} {
			r := Read
			if verb == capability.Write {
				r = Write
			}
			got := c.allows(p, r)
			want := g.Allows(capability.Access{Kind: capability.Filesystem, Verb: verb, Target: p})
			alone := c.mounted(p, r) // holds even if there were no rule sets, and the other way round
			if !strict {
				alone = cage{view: View{Rulesets: v.Rulesets[len(v.Rulesets)-1:]}}.ruled(p, r)
			}
			switch {
			case alone && !want && !(r == Read && free(p, strict)):
				t.Fatalf("strict %v, layers %+v: %s of %s is held by one wall only\n%+v", strict, layers, verb, p, v)
			case got && !want && !(r == Read && free(p, strict)):
				t.Fatalf("strict %v, layers %+v: %s of %s is allowed\n%+v", strict, layers, verb, p, v)
			case want && !got && strict && p != "/" && !reserved(p) && !(within(p, "/sys") && r == Write) && !(r == Write && besideLink(layers, p)):
				t.Fatalf("layers %+v: %s of %s is not possible\n%+v", layers, verb, p, v)
			}
			if want {
				n.allowed++
				if !got {
					n.refused++
				}
			}
		}
	}
	held(t, c, g, layers)
}

// sound checks that a stage can make v: it opens the path of each rule, and
// nothing can be opened beneath what is hidden.
func sound(t *testing.T, v View) {
	t.Helper()
	for _, m := range v.Mounts {
		for _, s := range v.Rulesets {
			for _, r := range s.Rules {
				if m.Kind == Hidden && r.Path != m.Path && within(r.Path, m.Path) {
					t.Fatalf("rule %v beneath %v", r, m)
				}
			}
		}
		if m.Kind == Pinned && slices.ContainsFunc(v.Mounts, func(up Mount) bool { return up.Kind == Hidden && within(m.Path, up.Path) }) {
			t.Fatalf("%v beneath what is hidden", m)
		}
	}
}

// besideLink reports whether p is a directory with a denied link in it.
func besideLink(layers []capability.Layer, p string) bool {
	for _, l := range layers {
		for _, d := range l.Deny {
			if strings.HasPrefix(world[d.Pattern], "/") && path.Dir(d.Pattern) == p {
				return true
			}
		}
	}
	return false
}

// held checks that what is denied cannot be moved from where it is denied.
func held(t *testing.T, c cage, g capability.Grant, layers []capability.Layer) {
	t.Helper()
	for _, h := range g.Holes() {
		if real, err := world.Real(path.Dir(h.Path)); err != nil || real != path.Dir(h.Path) || world[h.Path] == "" {
			continue
		}
		for p := h.Path; p != "/"; p = path.Dir(p) {
			parent := path.Dir(p)
			// Renaming p takes writing to its parent, and that p is no mount point.
			if parent == "/" && c.strict || !c.allows(parent, Write) {
				continue
			}
			if !c.strict || !slices.ContainsFunc(c.view.Mounts, func(m Mount) bool { return m.Path == p }) {
				t.Fatalf("strict %v, layers %+v: %s, with the denied %s, can be renamed\n%+v", c.strict, layers, p, h.Path, c.view)
			}
		}
	}
}

// Every pair of small lists of two layers, with every deny.
func TestWorld(t *testing.T) {
	allows, few := lists(2), lists(1)
	if testing.Short() {
		allows = few
	}
	var strict, landlock lost
	n := 0
	for _, allow := range allows {
		for _, deny := range append(few, []entry{{"/a/link", capability.Write}}, []entry{{"/a/link/g", capability.Read}}) {
			first := modes[0]
			first.Allow, first.Deny = set(allow), set(deny)
			for _, second := range modes {
				for _, allow := range few {
					if second.Name == "silent" && len(allow) > 0 {
						continue // it says nothing of files either way
					}
					if n++; n%sparse != 0 {
						continue
					}
					second.Allow = set(allow)
					layers := []capability.Layer{first, second}
					check(t, layers, true, &strict)
					check(t, layers, false, &landlock)
				}
			}
		}
	}
	t.Logf("%d stacks: strict refuses %d of %d (its own /tmp, /run, /dev and /proc, and \"/\" itself), landlock %d of %d", n, strict.refused, strict.allowed, landlock.refused, landlock.allowed)
}

// Two denies, which may lie in each other, in a layer that allows nothing.
func TestWorldDenies(t *testing.T) {
	var n lost
	link := entry{"/a/link", capability.Write}
	denies := lists(2)
	for _, l := range lists(1) {
		denies = append(denies, append(l, link), append(slices.Clone(l), link, entry{"/a/b/n", capability.Write}))
	}
	for _, allow := range lists(1) {
		for _, deny := range denies {
			for _, second := range lists(1) {
				layers := []capability.Layer{{Name: "manifest", Closed: true, Allow: set(allow)}, {Name: "operator", Deny: set(deny)}, {Name: "hidden", Deny: set(second)}}
				check(t, layers, true, &n)
				check(t, layers, false, &n)
			}
		}
	}
}

func (m Mount) String() string {
	s := fmt.Sprintf("%s:%s", []string{"?", "ro", "rw", "hidden", "pinned"}[m.Kind], m.Path)
	if m.Source != "" {
		s += "=" + m.Source
	}
	return s
}

func (r Rule) String() string {
	s := ""
	for i, c := range "rwxs" {
		if r.Rights&(1<<i) != 0 {
			s += string(c)
		}
	}
	return s + ":" + r.Path
}
