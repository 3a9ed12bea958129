package rootfs

import (
	"io/fs"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/skillhost/skill/host/capability"
)

// ends finds the two names of a Rename or Link, both of which must be the
// guest's to change. The caller leaves both places.
func (f *FS) ends(from, to string) (a, b spot, ap, bp place, errno sys.Errno) {
	if a, ap, errno = f.alter(from, false); errno != 0 {
		return a, b, ap, bp, errno
	}
	if a.area == ancestor {
		return a, b, ap, bp, f.refuse(capability.Write, a.target)
	}
	if b, bp, errno = f.alter(to, true); errno == 0 && b.area == ancestor {
		errno = f.refuse(capability.Write, b.target)
	}
	if errno != 0 {
		ap.leave()
	}
	return a, b, ap, bp, errno
}

// Rename moves a file or a directory, and replaces what is there. A directory
// beneath which something is denied, at either end, stays where it is: under
// another name it would not be denied. So does one that would move up, or to
// another root: the links in it would lead elsewhere, and looking at them first
// is no help while somebody else can make new ones.
func (f *FS) Rename(from, to string) sys.Errno {
	a, b, ap, bp, errno := f.ends(from, to)
	if errno != 0 {
		return errno
	}
	defer ap.leave()
	defer bp.leave()
	for _, target := range [...]string{a.target, b.target} {
		if pattern, ok := f.shields(target); ok {
			return f.refuse(capability.Write, pattern)
		}
	}
	st, errno := ap.dir.lstat(ap.name)
	switch {
	case errno != 0:
		return errno
	case (a.slash || b.slash) && !st.Mode.IsDir():
		return sys.ENOTDIR
	case st.Mode&fs.ModeSymlink != 0:
		link, errno := ap.dir.readlink(ap.name)
		if errno != 0 {
			return errno
		}
		if !f.harmless(parent(b.target), link) { // from there it would lead elsewhere
			return sys.EPERM
		}
	case st.Mode.IsDir() && (strings.Count(b.target, "/") < strings.Count(a.target, "/") || !f.together(a.target, b.target)):
		return sys.EPERM // a link in it that stays in its root would lead out of it from there
	}
	if errno := ap.dir.rename(ap.name, bp.dir, bp.name); errno != 0 {
		return errno
	}
	f.forget(a.target)
	f.forget(b.target)
	return 0
}

// Link makes another name for a regular file in the same root.
func (f *FS) Link(from, to string) sys.Errno {
	a, b, ap, bp, errno := f.ends(from, to)
	if errno != 0 {
		return errno
	}
	defer ap.leave()
	defer bp.leave()
	if pattern, ok := f.shields(b.target); ok {
		return f.refuse(capability.Write, pattern)
	}
	var st wsys.Stat_t
	switch st, errno = ap.dir.lstat(ap.name); {
	case errno != 0:
		return errno
	case !st.Mode.IsRegular():
		return sys.EPERM
	case a.slash || b.slash:
		return sys.ENOTDIR
	case !f.together(a.target, b.target):
		return sys.EPERM
	}
	return ap.dir.link(ap.name, bp.dir, bp.name)
}
