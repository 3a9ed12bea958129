package view

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// Options say for whom a View is. Directories of the host are real paths.
type Options struct {
	Strict bool // there is a private root; else the process sees the host's, and the rule sets alone hold it

	Tmp       string   // the host's directory behind ${tmp}: /tmp of a private root
	Home      string   // the host's directory behind HomePath; "" is none
	HomePath  string   // of the private root; else Home
	HomeStays bool     // nothing can be written beneath Home
	Sockets   string   // the host's directory behind Serves; "" is none
	Serves    string   // of the private root; else Sockets
	Etc       string   // the host's directory with the passwd, group and hosts of a private root; "" is none
	Workspace string   // what the link /workspace of a private root leads to; "" is none
	SkillDir  string   // what the link /skill of a private root leads to; "" is none
	Hidden    []string // the host's directories that nobody may read who has "/"
	Programs  []string // files that may be executed whatever the layers say of programs, but not if reading them is denied; and links that lead to these

	// How to look at the host's file system; nil is the real one.
	Mode  func(path string) (fs.FileMode, error) // of what is there, be it a link
	Names func(dir string) ([]string, error)     // in a directory
	Real  func(path string) (string, error)      // without links
}

// MaxRulesets is how many rule sets a View has at most. The kernel stacks 16,
// and the host may be under one itself.
const MaxRulesets = 15

// maxRules bounds one rule set.
const maxRules = 1 << 14

// Of returns what the layers' lists of files and programs come to, over the
// baseline that every process has. Layers must be bound.
//
// With a private root, the mounts are the exact intersection of the layers,
// and rule sets hold once more what each layer says by itself. Without one,
// the rule sets are all there is; what is denied beneath a granted directory is
// left out by granting the names beside it one by one, so that the directories
// on the way cannot be listed, and nothing can be made in them.
//
// A denied path that does not exist is not held: the kernel has no rule for
// what is not there. The exceptions of a private root from what the layers
// grant: /tmp, /run, /dev and /proc are its own; /sys is never writable through
// "/"; a denied link cannot be replaced, at the price that nothing can be made
// beside it; and a program that may be run may be read. The rule sets allow all
// of /tmp, so of what is mounted beneath that the mounts alone say.
//
// Errors have kind Limit if the kernel cannot hold the layers, and Invalid if
// a private root has no room for what is granted.
func Of(layers []capability.Layer, o Options) (View, error) {
	b := newBuilder(layers, o)
	b.denials()
	b.findPrograms()
	var v View
	for _, r := range b.roots {
		if b.o.Strict && (r.Path == "/tmp" || r.Path == "/run") {
			return View{}, &sdk.Error{Kind: sdk.Invalid, Op: "view.Of", What: fmt.Sprintf("the host's own %s cannot be granted to a native process", r.Path),
				Hint: "a private root has one of its own; grant a directory beneath it"}
		}
	}
	if o.Strict {
		v.Mounts, v.Links = b.mounts()
	}
	var err error
	if v.Rulesets, err = b.rulesets(); err != nil {
		return View{}, err
	}
	v.Roots = b.granted()
	return v, nil
}

// Granted returns the Roots of the View of layers without looking for
// programs: what the process is granted apart from what is denied beneath it,
// as the record has it.
func Granted(layers []capability.Layer) []Root {
	b := newBuilder(layers, Options{})
	return b.granted()
}

// A builder makes one View.
type builder struct {
	o      Options
	grant  capability.Grant
	layers []capability.Layer
	roots  []capability.Root
	names  []string // programs that are granted, as they are spelled
	any    bool     // whatever may be read may be executed
	denied []deny   // sorted by path

	programs []program
	visible  map[string]*Mount // by path
	reals    map[string]string // real paths by path; "" where nothing is
}

func newBuilder(layers []capability.Layer, o Options) *builder {
	if o.Mode == nil {
		o.Mode = mode
	}
	if o.Names == nil {
		o.Names = names
	}
	if o.Real == nil {
		o.Real = filepath.EvalSymlinks
	}
	g := capability.NewGrant(layers, nil)
	b := &builder{o: o, grant: g, layers: g.Layers(), roots: g.Roots(), reals: map[string]string{}}
	b.names, b.any = runnable(g)
	return b
}

func mode(p string) (fs.FileMode, error) {
	info, err := os.Lstat(p)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

func names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// granted lists what the layers grant.
func (b *builder) granted() []Root {
	var out []Root
	for _, r := range b.roots {
		rights := Read
		if r.Write {
			rights |= Write
		}
		out = append(out, Root{Path: r.Path, Rights: rights})
	}
	if b.any {
		out = append(out, Root{Rights: Exec, Name: "*"})
	}
	for _, name := range b.names {
		root := Root{Rights: Read | Exec, Name: name}
		for _, p := range b.programs {
			if p.name == name {
				root.Path = p.real
			}
		}
		out = append(out, root)
	}
	return out
}

// A deny is a path of the host that a layer denies.
type deny struct {
	path string
	read bool // else only writing
	link bool // it is a link; it is the link that is denied
	made bool // it exists
}

// denials collects what is denied. A path that leads through a link is nobody's
// real path; the layer has the real one as well.
func (b *builder) denials() {
	found := map[string]*deny{}
	add := func(p string, read bool) {
		d := found[p]
		if d == nil {
			var through bool
			if d, through = b.look(p); through {
				return
			}
			found[p] = d
		}
		d.read = d.read || read
	}
	for _, p := range b.o.Hidden {
		add(p, true)
	}
	for _, l := range b.layers {
		for _, c := range l.Deny {
			switch {
			case c.Kind == capability.Filesystem && c.Pattern == capability.VarTmp:
				found[c.Pattern] = &deny{path: c.Pattern, read: c.Verb == capability.Read || found[c.Pattern] != nil && found[c.Pattern].read}
			case c.Kind == capability.Filesystem && path.IsAbs(c.Pattern):
				add(c.Pattern, c.Verb == capability.Read)
			}
		}
	}
	for _, d := range found {
		b.denied = append(b.denied, *d)
	}
	slices.SortFunc(b.denied, func(x, y deny) int { return strings.Compare(x.path, y.path) })
}

// look says what is at p, and whether p leads through a link.
func (b *builder) look(p string) (d *deny, through bool) {
	d = &deny{path: p}
	for i := 1; i < len(p); i++ {
		if p[i] != '/' {
			continue
		}
		m, err := b.o.Mode(p[:i])
		switch {
		case err != nil:
			return d, false
		case m&fs.ModeSymlink != 0:
			return d, true
		case !m.IsDir(): // there never is anything beneath a file
			return d, true
		}
	}
	m, err := b.o.Mode(p)
	d.made = err == nil
	d.link = err == nil && m&fs.ModeSymlink != 0
	return d, false
}

// hidden reports whether reading p is denied.
func (b *builder) hidden(p string) bool {
	return slices.ContainsFunc(b.denied, func(d deny) bool { return d.read && capability.Beneath(p, d.path) })
}

// real returns the real path of p, if there is one. Most paths that are asked
// about have their directory with others in common.
func (b *builder) real(p string) (string, bool) {
	real, known := b.reals[p]
	if !known {
		real = b.resolve(p)
		b.reals[p] = real
	}
	return real, real != ""
}

func (b *builder) resolve(p string) string {
	if p == "/" {
		return p
	}
	if path.IsAbs(p) {
		dir, ok := b.real(path.Dir(p))
		if !ok {
			return ""
		}
		p = path.Join(dir, path.Base(p))
		switch m, err := b.o.Mode(p); {
		case err != nil:
			return ""
		case m&fs.ModeSymlink == 0:
			return p
		}
	}
	real, err := b.o.Real(p)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(real)
}
