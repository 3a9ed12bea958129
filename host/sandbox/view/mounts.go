package view

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
)

// tmpPath is where a private root has ${tmp}.
const tmpPath = "/tmp"

// mounts returns the mounts and links of a private root. A mount of "/" is one
// of every name in it.
func (b *builder) mounts() ([]Mount, []Link) {
	b.visible = map[string]*Mount{}
	for _, r := range b.roots {
		if path.IsAbs(r.Path) && !own(r.Path) {
			kind := ReadOnly
			if r.Write {
				kind = Writable
			}
			b.mount(Mount{Path: r.Path, Kind: kind})
		}
	}
	b.mountWorkspace()
	for _, e := range baseline() {
		if e.where != shared {
			b.mountBase(e.path)
		}
	}
	for _, p := range b.executables() {
		if b.covering(p) == nil {
			b.mount(Mount{Path: p, Kind: ReadOnly})
		}
	}
	b.mountDenials()
	b.mountOwn()
	links := b.links() // looks at all of the mounts
	out := make([]Mount, 0, len(b.visible))
	for _, p := range slices.Sorted(maps.Keys(b.visible)) { // an ancestor sorts before what is beneath it
		out = append(out, *b.visible[p])
	}
	return out, links
}

// mountWorkspace shows a workspace in the host's /tmp or /run that may be read,
// but not written: "/" shows the private ones.
func (b *builder) mountWorkspace() {
	p := filepath.ToSlash(b.o.Workspace)
	if p != "" && b.covering(p) == nil && b.grant.Allows(capability.Access{Kind: capability.Filesystem, Verb: capability.Read, Target: p}) {
		b.mount(Mount{Path: p, Kind: ReadOnly})
	}
}

func (b *builder) mount(m Mount) {
	m.Maybe = true
	b.visible[m.Path] = &m
}

// own reports whether p is the private root's own, of which the host's is
// never mounted.
func own(p string) bool { return capability.Beneath(p, "/proc") || capability.Beneath(p, "/dev") }

// covering returns the mount that shows what is at p, or nil.
func (b *builder) covering(p string) *Mount {
	for at := p; ; at = path.Dir(at) {
		m := b.visible[at]
		switch {
		case at != "/" && m != nil:
			return m
		case at == "/" && (own(p) || capability.Beneath(p, "/run") || capability.Beneath(p, tmpPath)):
			return nil
		case at == "/":
			return m
		}
	}
}

// mountBase mounts the path p of the baseline unless it is there already. A
// link to it is a file of its own in the private root.
func (b *builder) mountBase(p string) {
	real, ok := b.real(p)
	if !ok || own(p) || b.hidden(p) || b.hidden(real) || b.covering(p) != nil || real != p && slices.Contains(topLinks, p) {
		return
	}
	if real != p && slices.ContainsFunc(b.denied, func(d deny) bool { return d.read && capability.Beneath(d.path, real) }) {
		return // it would be there under another name
	}
	if parent, ok := b.real(path.Dir(p)); !ok || parent != path.Dir(p) { // beneath a link, which shows it
		return
	}
	m := Mount{Path: p, Kind: ReadOnly}
	if real != p {
		m.Source = real
	}
	b.mount(m)
}

// executables are the files that may be executed, by their real paths.
func (b *builder) executables() []string {
	var out []string
	for _, p := range b.programs {
		out = append(out, p.real)
	}
	for _, p := range b.o.Programs {
		if real, ok := b.real(p); !b.hidden(p) && (!ok || real == p) {
			out = append(out, p)
		}
	}
	return out
}

// mountDenials takes out what is denied of what is visible. Who may rename a
// directory on the way to a denied path could give it another name; a mount
// point cannot be renamed.
func (b *builder) mountDenials() {
	for _, d := range b.denied {
		if d.link && !slices.ContainsFunc(b.denied, func(up deny) bool { return !up.link && capability.Beneath(d.path, up.path) }) {
			b.mountAround(d.path) // else nothing can be written there anyway
		}
	}
	for _, d := range b.denied {
		if d.link || !path.IsAbs(d.path) {
			continue
		}
		m := b.covering(d.path)
		if m == nil || m.Kind == Hidden || m.Kind == ReadOnly && !d.read {
			continue
		}
		kind := ReadOnly
		if d.read {
			kind = Hidden
		}
		if m.Path == d.path {
			m.Kind, m.Maybe = kind, !d.made
			continue
		}
		b.pin(path.Dir(d.path), m, d.made)
		b.mount(Mount{Path: d.path, Kind: kind})
		b.visible[d.path].Maybe = !d.made // what is there to be denied must not be left out
	}
}

// pin keeps the directories from p up to the mount m, if that is writable, from
// being renamed.
func (b *builder) pin(p string, m *Mount, made bool) {
	for ; m.Kind != ReadOnly && p != m.Path; p = path.Dir(p) {
		if b.visible[p] == nil {
			b.mount(Mount{Path: p, Kind: Pinned})
		}
		b.visible[p].Maybe = b.visible[p].Maybe && !made
	}
}

// maxAround is how many names beside a denied link stay writable.
const maxAround = 1 << 10

// mountAround keeps the link p from being replaced. Nothing can be mounted on a
// link, so the directory that it is in becomes read-only, and what is beside it
// is writable by mounts of its own.
func (b *builder) mountAround(p string) {
	dir := path.Dir(p)
	m := b.covering(dir)
	if dir == "/" || m == nil || m.Kind != Writable && m.Kind != Pinned { // the private root itself is never writable
		return
	}
	names, err := b.o.Names(dir)
	if err != nil {
		names = nil
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxAround)] {
		beside := path.Join(dir, name)
		if at := b.visible[beside]; at != nil && at.Kind != Pinned {
			continue
		}
		if mode, err := b.o.Mode(beside); err == nil && mode&fs.ModeSymlink == 0 {
			b.mount(Mount{Path: beside, Kind: Writable})
		}
	}
	if m.Path == dir {
		m.Kind = ReadOnly
		return
	}
	b.pin(path.Dir(dir), m, true)
	b.mount(Mount{Path: dir, Kind: ReadOnly})
	b.visible[dir].Maybe = false
}

// mountOwn mounts the process's own directories. No layer has a say about
// them, except that ${tmp} can be denied.
func (b *builder) mountOwn() {
	if kind := b.tmpKind(); b.o.Tmp != "" && kind != Hidden {
		b.visible[tmpPath] = &Mount{Path: tmpPath, Source: b.o.Tmp, Kind: kind}
	}
	if b.o.Home != "" {
		b.visible[b.o.HomePath] = &Mount{Path: b.o.HomePath, Source: b.o.Home, Kind: Writable}
		if b.o.HomeStays {
			b.visible[b.o.HomePath].Kind = ReadOnly
		}
	}
	if b.o.Sockets != "" {
		b.visible[b.o.Serves] = &Mount{Path: b.o.Serves, Source: b.o.Sockets, Kind: Writable}
	}
	if b.o.Etc == "" {
		return
	}
	for _, name := range standIns {
		if p := "/etc/" + name; b.covering(p) == nil && !b.hidden(p) {
			b.visible[p] = &Mount{Path: p, Source: b.o.Etc + "/" + name, Kind: ReadOnly}
		}
	}
}

// tmpKind is how ${tmp} is mounted.
func (b *builder) tmpKind() Kind {
	for _, d := range b.denied {
		if d.path == capability.VarTmp {
			if d.read {
				return Hidden
			}
			return ReadOnly
		}
	}
	return Writable
}

// links returns the links that make the private root look familiar.
func (b *builder) links() []Link {
	var out []Link
	add := func(p, target string) {
		if b.covering(p) == nil && p != target {
			out = append(out, Link{p, target})
		}
	}
	for _, p := range topLinks {
		if m, err := b.o.Mode(p); err == nil && m&fs.ModeSymlink != 0 {
			if real, ok := b.real(p); ok {
				add(p, real)
			}
		}
	}
	for _, p := range b.programs { // mawk is also awk
		if dir, ok := b.real(path.Dir(p.found)); ok {
			add(path.Join(dir, path.Base(p.found)), p.real)
		}
	}
	for _, p := range b.o.Programs { // of a script, whose interpreter is /bin/sh and really dash
		dir, _ := b.real(path.Dir(p))
		if real, ok := b.real(p); ok && !b.hidden(real) && slices.Contains(b.o.Programs, real) {
			add(path.Join(dir, path.Base(p)), real)
		}
	}
	for _, alias := range [][2]string{{"/workspace", b.o.Workspace}, {"/skill", b.o.SkillDir}} {
		if p := alias[1]; p != "" {
			if m := b.covering(p); m != nil && m.Kind != Hidden {
				add(alias[0], p)
			}
		}
	}
	slices.SortFunc(out, func(x, y Link) int { return strings.Compare(x.Path, y.Path) })
	return slices.CompactFunc(out, func(x, y Link) bool { return x.Path == y.Path })
}
