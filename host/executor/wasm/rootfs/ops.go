package rootfs

import (
	"io/fs"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/skillhost/skill/host/capability"
)

const writing = sys.O_RDWR | sys.O_WRONLY | sys.O_APPEND | sys.O_CREAT | sys.O_TRUNC

// OpenFile opens a regular file or a directory; whatever else there is in a
// file system is EACCES.
func (f *FS) OpenFile(p string, flag sys.Oflag, perm fs.FileMode) (sys.File, sys.Errno) {
	file, errno := f.openFile(p, flag, perm)
	if errno == 0 {
		return file, 0
	}
	if p == "." && flag == sys.O_RDONLY {
		return nil, sys.ENOENT // wazero opens its preopen so, and panics at anything else
	}
	return nil, errno
}

func (f *FS) openFile(p string, flag sys.Oflag, perm fs.FileMode) (sys.File, sys.Errno) {
	if errno := flaw(p); errno != 0 {
		return nil, errno
	}
	if f.open >= maxFiles {
		return nil, sys.EIO
	}
	exclusive := flag&sys.O_CREAT != 0 && flag&sys.O_EXCL != 0
	t := trip{path: p, verb: capability.Read, follow: flag&sys.O_NOFOLLOW == 0 && !exclusive, create: flag&sys.O_CREAT != 0}
	write := flag&writing != 0
	if write {
		t.verb = capability.Write
	}
	s, quick := f.direct(t)
	quick = quick && (!write || f.allows(capability.Write, s.target))
	checked := ""
	for range maxRaces {
		if !quick {
			var errno sys.Errno
			switch s, errno = f.follow(t); {
			case errno != 0:
				return nil, errno
			case write && (s.area == ancestor || !f.allows(capability.Write, s.target)):
				return nil, f.refuse(capability.Write, s.target)
			case s.area == ancestor:
				return f.openAncestor(s.target), 0
			case s.link:
				return nil, f.openLink(s.target, t.verb, exclusive)
			}
		}
		quick = false
		h, errno := f.openAt(s, flag&^(sys.O_CREAT|sys.O_EXCL|sys.O_TRUNC), flag&sys.O_TRUNC != 0, 0)
		if errno == metLink {
			continue
		}
		if e := f.checkOpen(s, flag, &checked); e != 0 {
			if errno == 0 {
				h.close()
			}
			return nil, e
		}
		switch {
		case errno == 0 && exclusive:
			h.close()
			return nil, sys.EEXIST
		case errno == sys.ENOENT && flag&sys.O_CREAT != 0:
			if h, errno = f.create(s, flag, perm); errno == metLink || errno == sys.EEXIST && !exclusive {
				continue
			}
		}
		if errno != 0 {
			return nil, errno
		}
		return f.adopt(h, s.target, flag)
	}
	return nil, sys.ELOOP
}

// checkOpen asks the Grant once about what an open needs of s.
func (f *FS) checkOpen(s spot, flag sys.Oflag, checked *string) sys.Errno {
	if *checked == s.target {
		return 0
	}
	*checked = s.target
	if flag&writing != 0 {
		if errno := f.check(capability.Write, s.target); errno != 0 {
			return errno
		}
		if s.sealed {
			return sys.EROFS
		}
	}
	if flag&sys.O_WRONLY == 0 {
		return f.check(capability.Read, s.target)
	}
	return 0
}

// openAt opens what is at s, beneath its root. It does not block, and a FIFO
// without a reader or a socket is EACCES.
func (f *FS) openAt(s spot, flag sys.Oflag, truncate bool, perm fs.FileMode) (handle, sys.Errno) {
	if s.slash {
		flag |= sys.O_DIRECTORY
	}
	if truncate && flag&(sys.O_RDWR|sys.O_WRONLY) == 0 {
		flag |= sys.O_RDWR // truncating needs it; file.write keeps the guest from more
	}
	d, rel, errno := f.anchor(s.target)
	if errno != 0 {
		return noHandle, errno
	}
	if rel == "" {
		rel = "."
	}
	return d.open(rel, flag, perm)
}

// create makes the file at s, which does not exist, and which is checked.
func (f *FS) create(s spot, flag sys.Oflag, perm fs.FileMode) (handle, sys.Errno) {
	switch {
	case s.slash:
		return noHandle, sys.EISDIR
	case s.target == capability.VarTmp:
		return noHandle, sys.EACCES
	case !f.allows(capability.Write, parent(s.target)): // s is itself a root, whose name is not the guest's
		return noHandle, f.refuse(capability.Write, parent(s.target))
	}
	if pattern, ok := f.shields(s.target); ok {
		return noHandle, f.refuse(capability.Write, pattern)
	}
	return f.openAt(s, flag&^sys.O_TRUNC|sys.O_CREAT|sys.O_EXCL, false, perm.Perm())
}

// openLink is the end of an open that was not to follow the link it found.
func (f *FS) openLink(target string, v capability.Verb, exclusive bool) sys.Errno {
	if errno := f.check(v, target); errno != 0 {
		return errno
	}
	if exclusive {
		return sys.EEXIST
	}
	return sys.ELOOP
}

// A node is what a path leads to: a place with its stat, or, if its area is
// ancestor, nothing but a name.
type node struct {
	spot
	place
	stat wsys.Stat_t
}

// reach finds what t leads to and checks t.verb. The caller leaves the place.
func (f *FS) reach(t trip) (n node, errno sys.Errno) {
	if errno := flaw(t.path); errno != 0 {
		return n, errno
	}
	s, quick := f.direct(t)
	for range maxRaces {
		if !quick {
			if s, errno = f.follow(t); errno != 0 {
				return n, errno
			}
			if s.area == ancestor {
				return node{spot: s}, 0
			}
		}
		quick = false
		n = node{spot: s}
		if n.place, errno = f.enter(s.target); errno == 0 {
			n.stat, errno = n.dir.lstat(n.name)
		}
		if errno == metLink || errno == 0 && n.stat.Mode&fs.ModeSymlink != 0 && (t.follow || s.slash) {
			n.leave()
			continue
		}
		if e := f.check(t.verb, s.target); e != 0 {
			errno = e
		} else if t.verb == capability.Write && s.sealed {
			errno = sys.EROFS
		} else if errno == 0 && s.slash && !n.stat.Mode.IsDir() {
			errno = sys.ENOTDIR
		}
		if errno != 0 {
			n.leave()
		}
		return n, errno
	}
	return n, sys.ELOOP
}

// look returns the type of target, which is granted, and where it leads if it
// is a link. It records nothing.
func (f *FS) look(target string) (kind fs.FileMode, link string, errno sys.Errno) {
	p, errno := f.enter(target)
	defer p.leave()
	if errno == 0 {
		var st wsys.Stat_t
		st, errno = p.dir.lstat(p.name)
		kind = st.Mode
	}
	if errno == 0 && kind&fs.ModeSymlink != 0 {
		link, errno = p.dir.readlink(p.name)
	}
	if errno == metLink { // a name that was a directory a moment ago
		errno = sys.ENOENT
	}
	return kind, link, errno
}

func (f *FS) stat(t trip) (wsys.Stat_t, sys.Errno) {
	n, errno := f.reach(t)
	if errno != 0 {
		return wsys.Stat_t{}, errno
	}
	defer n.leave()
	if n.area == ancestor {
		return ancestorStat(n.target), 0
	}
	return n.stat, 0
}

// Lstat counts as reading.
func (f *FS) Lstat(p string) (wsys.Stat_t, sys.Errno) {
	return f.stat(trip{path: p, verb: capability.Read})
}

// Stat counts as reading.
func (f *FS) Stat(p string) (wsys.Stat_t, sys.Errno) {
	return f.stat(trip{path: p, verb: capability.Read, follow: true})
}

// Readlink is EACCES if the target names a path that is not granted.
func (f *FS) Readlink(p string) (string, sys.Errno) {
	n, errno := f.reach(trip{path: p, verb: capability.Read})
	if errno != 0 {
		return "", errno
	}
	defer n.leave()
	if n.area == ancestor || n.stat.Mode&fs.ModeSymlink == 0 {
		return "", sys.EINVAL
	}
	link, errno := n.dir.readlink(n.name)
	switch {
	case errno != 0:
		return "", errno
	case !f.plain(parent(n.target), link):
		return "", sys.EACCES
	}
	return link, 0
}

// Utimens follows links.
func (f *FS) Utimens(p string, atim, mtim int64) sys.Errno {
	n, errno := f.reach(trip{path: p, verb: capability.Write, follow: true})
	if errno != 0 {
		return errno
	}
	defer n.leave()
	if n.area == ancestor {
		return f.refuse(capability.Write, n.target)
	}
	return n.dir.chtimes(n.name, atim, mtim)
}

// Chmod follows links. Only the permission bits are set.
func (f *FS) Chmod(p string, perm fs.FileMode) sys.Errno {
	n, errno := f.reach(trip{path: p, verb: capability.Write, follow: true})
	if errno != 0 {
		return errno
	}
	defer n.leave()
	if n.area == ancestor {
		return f.refuse(capability.Write, n.target)
	}
	return n.dir.chmod(n.name, perm.Perm())
}

// alter finds a name that is to be made, removed or moved, opens the directory
// it is in and checks that both may be written. The last name is not followed.
// The caller leaves the place.
func (f *FS) alter(p string, create bool) (s spot, at place, errno sys.Errno) {
	if errno := flaw(p); errno != 0 {
		return s, at, errno
	}
	slash := strings.HasSuffix(p, "/")
	if p = strings.TrimRight(p, "/"); p == "" {
		p = "/"
	}
	t := trip{path: p, verb: capability.Write, create: create}
	s, quick := f.direct(t)
	quick = quick && f.mayAlter(s.target)
	for range maxRaces {
		if !quick {
			if s, errno = f.follow(t); errno != 0 || s.area == ancestor {
				return s, at, errno
			}
			if !f.mayAlter(s.target) {
				return s, at, f.refuseName(s.target, create)
			}
		}
		quick = false
		if at, errno = f.enterParent(s.target); errno == metLink {
			continue
		}
		if e := f.check(capability.Write, s.target); e != 0 {
			errno = e
		} else if s.sealed {
			errno = sys.EROFS
		}
		if s.slash = slash; errno != 0 {
			at.leave()
		}
		return s, at, errno
	}
	return s, at, sys.ELOOP
}

// mayAlter reports whether the name of target may be made, removed or moved:
// that is a change to its directory. The name of a root belongs to the host.
func (f *FS) mayAlter(target string) bool {
	return target != capability.VarTmp && target != "/" &&
		f.allows(capability.Write, target) && f.allows(capability.Write, parent(target))
}

// refuseName records the refusal of a change to the name of target. If target
// itself may be written, and so is a root, making it says whether it exists.
func (f *FS) refuseName(target string, create bool) sys.Errno {
	if errno := f.check(capability.Write, target); errno != 0 {
		return errno
	}
	if create {
		if _, _, errno := f.look(target); errno == 0 {
			return sys.EEXIST
		}
	}
	return f.refuse(capability.Write, parent(target))
}

// Mkdir makes a directory.
func (f *FS) Mkdir(p string, perm fs.FileMode) sys.Errno {
	s, at, errno := f.alter(p, true)
	if errno != 0 {
		return errno
	}
	defer at.leave()
	if s.area == ancestor {
		return sys.EEXIST
	}
	return at.dir.mkdir(at.name, perm.Perm())
}

// Unlink removes a name of a file.
func (f *FS) Unlink(p string) sys.Errno { return f.remove(p, false) }

// Rmdir removes an empty directory. One beneath which something is denied is
// EACCES, since whether it is empty would tell.
func (f *FS) Rmdir(p string) sys.Errno { return f.remove(p, true) }

func (f *FS) remove(p string, wantDir bool) sys.Errno {
	s, at, errno := f.alter(p, false)
	if errno != 0 {
		return errno
	}
	defer at.leave()
	if s.area == ancestor {
		return f.refuse(capability.Write, s.target)
	}
	if pattern, ok := f.shields(s.target); ok {
		return f.refuse(capability.Write, pattern)
	}
	st, errno := at.dir.lstat(at.name)
	switch {
	case errno != 0:
		return errno
	case st.Mode.IsDir() && !wantDir:
		return sys.EISDIR
	case !st.Mode.IsDir() && (wantDir || s.slash):
		return sys.ENOTDIR
	}
	if errno = at.dir.remove(at.name, wantDir); errno == 0 {
		f.forget(s.target)
	}
	return errno
}

// Symlink makes a link. The target must be relative and stay, by its names
// alone, in the granted root: other programs of the host will follow it. Where
// something is denied beneath the link's name, there is none to be.
func (f *FS) Symlink(target, p string) sys.Errno {
	if errno := flaw(target); errno != 0 {
		return errno
	}
	s, at, errno := f.alter(p, true)
	if errno != 0 {
		return errno
	}
	defer at.leave()
	if s.area == ancestor {
		return sys.EEXIST
	}
	if pattern, ok := f.shields(s.target); ok {
		return f.refuse(capability.Write, pattern)
	}
	switch {
	case s.slash:
		return sys.ENOENT
	case !f.harmless(parent(s.target), target):
		return sys.EPERM
	}
	return at.dir.symlink(target, at.name)
}

// harmless reports whether a link in the directory dir may have this target:
// names of the same granted root, all "..", which could otherwise pass through
// another link, in front.
func (f *FS) harmless(dir, target string) bool {
	if _, abs := absolute(target); abs || strings.HasPrefix(target, "/") {
		return false
	}
	at, down := dir, false
	for name := range strings.SplitSeq(target, "/") {
		switch name {
		case "", ".":
		case "..":
			if down || at == "/" || at == capability.VarTmp {
				return false
			}
			at = parent(at)
		default:
			at, down = child(at, name), true
		}
	}
	return f.together(dir, at)
}
