package rootfs

import (
	"path"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/skillhost/skill/host/capability"
)

// A target is a path as the Grant knows it: a real path, or one beneath
// "${tmp}", which has no parent but "/".

// parent returns the directory of target.
func parent(target string) string {
	if i := strings.LastIndexByte(target, '/'); i > 0 {
		return target[:i]
	}
	return "/"
}

func last(target string) string { return target[strings.LastIndexByte(target, '/')+1:] }

// child returns the path of name in the directory dir.
func child(dir, name string) string {
	if dir != "/" {
		return dir + "/" + name
	}
	if isDrive(name) {
		return name
	}
	return "/" + name
}

// beyond returns what follows dir in target, which is at or beneath it.
func beyond(target, dir string) string {
	if dir == "/" {
		return strings.TrimPrefix(target, "/")
	}
	return strings.TrimPrefix(target[len(dir):], "/")
}

// alias returns the target that name in the guest's root directory stands for.
// "/tmp" never is that of the host.
func (f *FS) alias(name string) (target string, ok bool) {
	switch name {
	case "tmp":
		return capability.VarTmp, true
	case "workspace":
		return f.dirs.Workspace, f.dirs.Workspace != ""
	case "skill":
		return f.dirs.Skill, f.dirs.Skill != ""
	}
	return "", false
}

// A spot is where a guest path leads.
type spot struct {
	target string
	area   area // not outside
	link   bool // target is a symbolic link that was not to be followed
	slash  bool // the path ends in a slash: it must lead to a directory
	sealed bool // it was reached by /skill, which is read-only
}

// A trip says how to follow a path.
type trip struct {
	path   string
	verb   capability.Verb // what is recorded if the path ends too soon
	follow bool            // the last name too
	create bool            // the last name may be made
}

// flaw reports what is wrong with a guest path whatever it leads to.
func flaw(p string) sys.Errno {
	switch {
	case p == "":
		return sys.ENOENT
	case len(p) > maxPath:
		return sys.ENAMETOOLONG
	case strings.IndexByte(p, 0) >= 0 || unspeakable(p):
		return sys.EINVAL
	}
	return 0
}

// lexical returns the spot that path leads to if there is no link on the way,
// which has to be proved by opening it, and nothing of it is "..".
func (f *FS) lexical(p string) (s spot, ok bool) {
	p = strings.TrimLeft(p, "/")
	if strings.Contains(p, "..") {
		return s, false
	}
	if !isClean(p) {
		s.slash = strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.")
		p = path.Clean("/" + p)[1:]
	}
	if f.shadowed("/" + p) {
		s.target = "/" + p
		return s, true
	}
	first, rest, more := strings.Cut(p, "/")
	base, isAlias := f.alias(first)
	switch {
	case isAlias && more:
		s.target = child(base, rest)
	case isAlias:
		s.target = base
	case p == "":
		s.target = "/"
	case isDrive(first):
		s.target = p
	default:
		s.target = "/" + p
	}
	s.sealed = isAlias && first == "skill"
	return s, true
}

// shadowed reports whether p is in a workspace that the guest's own /tmp would
// hide. What clients name by its path on the host must be found there.
func (f *FS) shadowed(p string) bool {
	return strings.HasPrefix(f.dirs.Workspace, "/tmp/") && capability.Beneath(p, f.dirs.Workspace)
}

// isClean reports whether p, which has no ".." and no slash in front, is as
// path.Clean would have it.
func isClean(p string) bool {
	for i := 0; i < len(p); i++ {
		if (i == 0 || p[i-1] == '/') && (p[i] == '/' || p[i] == '.' && (i+1 == len(p) || p[i+1] == '/')) {
			return false
		}
	}
	return p == "" || p[len(p)-1] != '/'
}

// direct is lexical for those spots that may be opened to see whether there is
// a link on the way.
func (f *FS) direct(t trip) (spot, bool) {
	s, ok := f.lexical(t.path)
	if !ok {
		return s, false
	}
	s.target = f.named(s.target, t.create)
	s.area = inside
	return s, f.allows(capability.Read, s.target)
}

// A walk follows a path name by name.
type walk struct {
	trip
	at     string // the directory reached: a target
	rest   string // what is left of the path
	links  int    // followed so far
	guest  bool   // no link of the host was followed: "/" is the guest's, with its aliases
	sealed bool
}

// follow finds where a path leads. Nothing outside of the granted roots is
// touched: a root is a real path, so that there are no links above it.
func (f *FS) follow(t trip) (spot, sys.Errno) {
	w := walk{trip: t, at: "/", rest: t.path, guest: true}
	if s, ok := f.lexical(t.path); ok { // skip the names that lead to the root
		if root := f.root(s.target); root != "" && f.allows(capability.Read, root) {
			w.at, w.rest, w.sealed = root, beyond(s.target, root), s.sealed
			if s.slash {
				w.rest += "/"
			}
		}
	}
	for {
		name, rest, more := strings.Cut(strings.TrimLeft(w.rest, "/"), "/")
		w.rest = rest
		switch name {
		case "":
			s := spot{target: w.at, area: f.area(w.at), slash: strings.HasSuffix(t.path, "/"), sealed: w.sealed}
			if s.area == outside {
				return s, f.refuse(t.verb, s.target)
			}
			return s, 0
		case ".":
			continue
		case "..":
			w.at = parent(w.at)
			continue
		}
		s, done, errno := f.step(&w, name, more)
		if done || errno != 0 {
			return s, errno
		}
	}
}

// step goes from w.at to name. more says that a slash follows.
func (f *FS) step(w *walk, name string, more bool) (s spot, done bool, errno sys.Errno) {
	next, isAlias := "", false
	if w.guest && w.at == "/" {
		next, isAlias = f.alias(name)
		w.sealed = isAlias && name == "skill"
	}
	final := strings.Trim(w.rest, "/") == ""
	if !isAlias {
		next = f.named(child(w.at, name), w.create && final)
	}
	s = spot{target: next, area: f.area(next), slash: more, sealed: w.sealed}
	switch s.area {
	case outside:
		return s, true, f.refuse(w.verb, w.lost(next))
	case ancestor:
		w.at = next
		return s, final, 0
	}
	kind, link, errno := f.look(next)
	switch {
	case errno == sys.ENOENT && final:
		return s, true, 0
	case errno != 0:
		return s, true, f.miss(w, next, errno)
	case link != "" && final && !more && !w.follow:
		s.link = true
		return s, true, 0
	case link != "":
		return s, false, f.turn(w, next, link, more)
	case !kind.IsDir() && (!final || more):
		return s, true, f.miss(w, next, sys.ENOTDIR)
	}
	w.at = next
	return s, final, 0
}

// turn follows the link at next, whose own directory is w.at.
func (f *FS) turn(w *walk, next, link string, more bool) sys.Errno {
	if w.links++; w.links > maxLinks || len(link) > maxPath {
		return f.miss(w, next, sys.ELOOP)
	}
	if more {
		link += "/"
	}
	w.rest = link + w.rest
	if capability.Beneath(next, capability.VarTmp) {
		if strings.HasPrefix(link, "/") { // in the guest's own directory it is the guest's path
			w.at = "/"
		}
		return 0
	}
	w.guest, w.sealed = false, false
	if abs, ok := absolute(link); ok {
		w.at, w.rest = "/", abs+strings.TrimPrefix(w.rest, link)
	}
	return 0
}

// miss records the attempt that ended at next with errno. If what was asked
// for is denied by name, that is all the guest learns.
func (f *FS) miss(w *walk, next string, errno sys.Errno) sys.Errno {
	if e := f.check(w.verb, w.lost(next)); e != 0 {
		return e
	}
	return errno
}

// lost returns the target that was asked for, as far as names tell, where the
// walk ends at next.
func (w *walk) lost(next string) string {
	for name := range strings.SplitSeq(w.rest, "/") {
		if name == ".." {
			break
		}
		if name != "" && name != "." {
			next = child(next, name)
		}
	}
	return next
}

// plain reports whether the names of a link's target, taken from the directory
// at, lead only where the guest may look. It touches nothing.
func (f *FS) plain(at, link string) bool {
	guest := capability.Beneath(at, capability.VarTmp)
	if abs, ok := absolute(link); ok {
		at, link = "/", abs
	}
	for name := range strings.SplitSeq(link, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			at = parent(at)
		default:
			next, isAlias := "", false
			if guest && at == "/" {
				next, isAlias = f.alias(name)
			}
			if !isAlias {
				next = child(at, name)
			}
			at = next
		}
		if f.area(at) == outside {
			return false
		}
	}
	return true
}
