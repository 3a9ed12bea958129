package rootfs

import (
	"io/fs"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/skillhost/skill/host/capability"
)

// maxMoved is how many names are looked at before a directory moves up.
const maxMoved = 10_000

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
// another name it would not be denied.
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
		budget := maxMoved
		if errno := f.settle(a.target, b.target, &budget); errno != 0 {
			return errno
		}
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

// settle refuses to move the directory from to the path to if a link in it
// that stays in its root would then leave it, or if there are more than budget
// names to look at.
func (f *FS) settle(from, to string, budget *int) sys.Errno {
	h, errno := f.openAt(spot{target: from}, sys.O_DIRECTORY, false, 0)
	if errno != 0 {
		return errno
	}
	defer h.close()
	buf := make([]byte, direntBuffer)
	for {
		batch, errno := h.readdir(buf)
		if errno != 0 || len(batch) == 0 {
			return errno
		}
		if *budget -= len(batch); *budget < 0 {
			return sys.EPERM
		}
		for _, d := range batch {
			switch {
			case d.Type&fs.ModeSymlink != 0:
				_, link, errno := f.look(child(from, d.Name))
				if errno != 0 || f.harmless(from, link) && !f.harmless(to, link) {
					return sys.EPERM
				}
			case d.Type.IsDir():
				if errno := f.settle(child(from, d.Name), child(to, d.Name), budget); errno != 0 {
					return errno
				}
			}
		}
	}
}
