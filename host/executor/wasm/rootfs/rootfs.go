// Package rootfs is the file system that a WASM guest sees: the host's paths,
// and the aliases /workspace, /tmp and /skill, mounted once at "/". It resolves
// symbolic links itself, checks the path they lead to against the whole Grant,
// and only then opens it beneath a granted root in a way that follows no link,
// so that nothing that happens between check and open can widen it. What is
// not granted is refused without touching the host: a guest cannot tell what
// exists there. It does not know who calls, why something is granted, or what
// is written to the audit log; Grant.Check sees to that.
//
// # Names
//
// Names are compared byte by byte, as policies write them: where a host ignores
// case or Unicode normalisation, another spelling of a granted path is refused.
// Another spelling of a denied path is recognised by the identity of the file,
// and creating one that differs in case alone is refused whether or not it exists.
//
// # Limits
//
// A guest has at most 256 files open; wazero has no EMFILE, so that one more
// fails with EIO, as all errors do that wazero has no name for. A guest path or
// link target is at most 4096 bytes long, and leads through at most 40 links.
package rootfs

import (
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
)

const (
	maxFiles = 256  // open at once
	maxLinks = 40   // followed in one path, as Linux has it
	maxPath  = 4096 // bytes of a guest path, as Linux has it
	maxRaces = 8    // links found where a moment before there was none
)

// metLink is what the methods of dir return instead of following a link. It
// never reaches the guest.
const metLink sys.Errno = 0xffff

// FS is the file system of one call. It and its files are not safe for
// concurrent use, as the guest that they serve has one thread.
type FS struct {
	sys.UnimplementedFS
	grant   capability.Grant
	dirs    executor.Dirs
	anchors []anchor
	files   []*file           // those that hold something of the host
	open    int               // all files, the synthetic ones too
	roots   []capability.Root // of grant; see ancestors
	rooted  bool              // roots is computed
	walking bool              // do without openat2, as if the kernel were old
}

// An anchor is an open directory beneath which paths are opened.
type anchor struct {
	root string // the granted path
	at   string // the path of dir: root, or its parent if root is a file
	dir  dir
}

// New returns the file system of a call that may touch what g grants. It opens
// nothing and asks d.Tmp for nothing until the guest does.
func New(g capability.Grant, d executor.Dirs) *FS { return &FS{grant: g, dirs: d} }

// Close closes all that is open. The guest must have stopped. It is idempotent.
func (f *FS) Close() error {
	for len(f.files) > 0 {
		f.files[len(f.files)-1].Close()
	}
	for _, a := range f.anchors {
		a.dir.close()
	}
	f.anchors = nil
	return nil
}

// check asks the Grant for v on target, which is recorded.
func (f *FS) check(v capability.Verb, target string) sys.Errno {
	if f.grant.Check(capability.Access{Kind: capability.Filesystem, Verb: v, Target: target}) != nil || f.kernel(target) {
		return sys.EACCES
	}
	return 0
}

// refuse records that v on target is refused. It is EACCES even if the layers,
// which are asked only to name the one that is to blame, should allow it.
func (f *FS) refuse(v capability.Verb, target string) sys.Errno {
	if f.check(v, target) == 0 && v == capability.Write {
		f.check(capability.Read, target)
	}
	return sys.EACCES
}

// allows is check without a record, for deciding what to look at.
func (f *FS) allows(v capability.Verb, target string) bool {
	return !f.kernel(target) && f.grant.Allows(capability.Access{Kind: capability.Filesystem, Verb: v, Target: target})
}

// kernel reports whether target is in /proc or /sys without a layer that names
// a path there: that the whole disk may be read does not mean that the memory
// of the host process may.
func (f *FS) kernel(target string) bool {
	for _, dir := range [...]string{"/proc", "/sys"} {
		if capability.Beneath(target, dir) {
			return !capability.Beneath(f.root(target), dir)
		}
	}
	return false
}

// root returns the deepest path of any layer that covers target. If target is
// granted, then so is that path, since every layer covers it as well.
func (f *FS) root(target string) string {
	if capability.Beneath(target, capability.VarTmp) {
		return capability.VarTmp
	}
	best := ""
	layers := f.grant.Layers()
	for i := range layers {
		for j := range layers[i].Allow {
			c := &layers[i].Allow[j]
			if c.Kind == capability.Filesystem && len(c.Pattern) > len(best) && capability.Beneath(target, c.Pattern) {
				best = c.Pattern
			}
		}
	}
	return best
}

// An area says what a guest may learn of a path.
type area int

const (
	outside  area = iota // nothing, not even whether it exists
	ancestor             // that it is a directory, and which ways lead to a root
	inside               // what is there
)

func (f *FS) area(target string) area {
	a := outside
	if target == "/" {
		a = ancestor
	}
	asked := false
	for _, r := range f.granted() {
		switch {
		case capability.Beneath(target, r.Path) && !asked:
			if f.allows(capability.Read, target) {
				return inside
			}
			asked = true
		case capability.Beneath(r.Path, target):
			a = ancestor
		}
	}
	return a
}

func (f *FS) granted() []capability.Root {
	if !f.rooted {
		f.roots, f.rooted = f.grant.Roots(), true
	}
	return f.roots
}

// together reports whether one granted root holds both a and b.
func (f *FS) together(a, b string) bool {
	for _, r := range f.granted() {
		if capability.Beneath(a, r.Path) && capability.Beneath(b, r.Path) {
			return true
		}
	}
	return false
}

// anchor returns the open directory that holds target, which is granted, and
// the path of target from there; it is empty if target is the directory.
func (f *FS) anchor(target string) (dir, string, sys.Errno) {
	root := f.root(target)
	for i := range f.anchors {
		if a := &f.anchors[i]; a.root == root {
			return a.dir, beyond(target, a.at), 0
		}
	}
	if root == "" {
		return dir{}, "", sys.EACCES
	}
	real := root
	if root == capability.VarTmp {
		if f.dirs.Tmp == nil {
			return dir{}, "", sys.EACCES
		}
		tmp, err := f.dirs.Tmp()
		if err != nil {
			return dir{}, "", sys.EIO
		}
		real = tmp
	}
	a := anchor{root: root, at: root}
	var errno sys.Errno
	if a.dir, errno = openDir(real, f.walking); errno == sys.ENOTDIR && root != capability.VarTmp {
		a.at = parent(root)
		a.dir, errno = openDir(a.at, f.walking)
	}
	if errno != 0 {
		if errno == metLink { // the root was replaced since it was granted
			errno = sys.EACCES
		}
		return dir{}, "", errno
	}
	f.anchors = append(f.anchors, a)
	return a.dir, beyond(target, a.at), 0
}

// forget closes the anchors at and beneath target, which is no longer what it
// was: an open directory follows its inode, while grants go by the path.
func (f *FS) forget(target string) {
	f.anchors = slices.DeleteFunc(f.anchors, func(a anchor) bool {
		gone := capability.Beneath(a.at, target)
		if gone {
			a.dir.close()
		}
		return gone
	})
}

// A place is a name in an open directory; "." is the directory itself.
type place struct {
	dir  dir
	name string
	own  bool // dir is to be closed
}

// leave closes what entering opened.
func (p *place) leave() {
	if p.own {
		p.dir.close()
		p.own = false
	}
}

// enter opens the directory that holds target, which is granted, following no
// link on the way.
func (f *FS) enter(target string) (place, sys.Errno) {
	d, rel, errno := f.anchor(target)
	if errno != 0 {
		return place{}, errno
	}
	if rel == "" {
		return place{dir: d, name: "."}, 0
	}
	i := strings.LastIndexByte(rel, '/')
	if i < 0 {
		return place{dir: d, name: rel}, 0
	}
	d, errno = d.sub(rel[:i])
	return place{dir: d, name: rel[i+1:], own: errno == 0}, errno
}

// enterParent is enter for changes to the name of target: it stands on the
// parent directory, and so never on "." of a root.
func (f *FS) enterParent(target string) (place, sys.Errno) {
	d, rel, errno := f.anchor(parent(target))
	if errno != 0 || rel == "" {
		return place{dir: d, name: last(target)}, errno
	}
	d, errno = d.sub(rel)
	return place{dir: d, name: last(target), own: errno == 0}, errno
}
