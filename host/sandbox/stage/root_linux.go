package stage

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// A root is a private root under construction: a small tmpfs of its own on
// which granted directories are mounted. Every path is opened once, without
// following links, and used by descriptor from then on.
type root struct {
	old int // the host's root directory
	new int // the private one
}

// enter makes the private root that s describes and moves into it; the host's
// is gone then.
func enter(s *Spec) *fault {
	if s.has(Proxy) {
		if f := listen(); f != nil {
			return f
		}
	}
	// Memory is found in a cage before it is found in the host.
	if fd, err := unix.Open("/proc/self/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		_, _ = unix.Write(fd, []byte("500"))
		unix.Close(fd)
	}
	r, f := newRoot()
	if f != nil {
		return f
	}
	for _, step := range []func(*Spec) *fault{r.basics, r.proc, r.tmp, r.mounts, r.links, r.switchTo} {
		if f := step(s); f != nil {
			return f
		}
	}
	return nil
}

func newRoot() (*root, *fault) {
	private := unix.MountAttr{Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &private); err != nil {
		return nil, at(err, "private mounts")
	}
	r := new(root)
	var err error
	if r.old, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return nil, at(err, "open /")
	}
	if r.new, err = tmpfs("1m", "4096", "0755", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
		return nil, at(err, "tmpfs")
	}
	if err = unix.MoveMount(r.new, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, at(err, "mount private root")
	}
	return r, nil
}

// beneath opens the absolute path p of a root. No part of it may be a link:
// one that is there now was not when the path was checked.
func beneath(dir int, p string, flags, resolve uint64) (int, error) {
	if p = strings.TrimPrefix(p, "/"); p == "" {
		p = "."
	}
	return unix.Openat2(dir, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | resolve})
}

// point opens the path p of the private root, as a directory or as a file. If
// nothing is there it is made, but only on the root's own file system: never
// in a directory of the host.
func (r *root) point(p string, dir bool) (int, error) {
	fd, err := beneath(r.new, p, 0, 0)
	if err != unix.ENOENT {
		return fd, err
	}
	parent, name, err := r.parent(p)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	if dir {
		err = unix.Mkdirat(parent, name, 0o755)
	} else {
		err = unix.Mknodat(parent, name, unix.S_IFREG|0o644, 0)
	}
	if err != nil {
		return -1, err
	}
	return beneath(parent, name, 0, unix.RESOLVE_NO_XDEV)
}

// parent opens the directory of p, and makes those that are not there: on the
// root's own file system, or on that of the private /tmp.
func (r *root) parent(p string) (dir int, name string, err error) {
	base := "/"
	if strings.HasPrefix(p, "/tmp/") {
		base = "/tmp"
	}
	if dir, err = beneath(r.new, base, unix.O_DIRECTORY, 0); err != nil {
		return -1, "", err
	}
	rest, name := path.Split(strings.TrimPrefix(p[len(base):], "/"))
	if rest == "" {
		return dir, name, nil
	}
	if whole, err := beneath(dir, rest, unix.O_DIRECTORY, unix.RESOLVE_NO_XDEV); err == nil { // as a rule
		unix.Close(dir)
		return whole, name, nil
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), "/") {
		next, err := beneath(dir, part, unix.O_DIRECTORY, unix.RESOLVE_NO_XDEV)
		if err == unix.ENOENT {
			if err = unix.Mkdirat(dir, part, 0o755); err == nil {
				next, err = beneath(dir, part, unix.O_DIRECTORY, unix.RESOLVE_NO_XDEV)
			}
		}
		unix.Close(dir)
		if err != nil {
			return -1, "", err
		}
		dir = next
	}
	return dir, name, nil
}

func isDir(fd int) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

// links makes the links of the view where nothing else is.
func (r *root) links(s *Spec) *fault {
	for _, l := range s.Links {
		dir, name, err := r.parent(path.Clean(l.Path))
		if err == unix.EXDEV || err == unix.ELOOP || err == unix.ENOTDIR { // beneath what the host has there
			continue
		}
		if err == nil {
			err = unix.Symlinkat(l.Target, dir, name)
			unix.Close(dir)
		}
		if err != nil && err != unix.EEXIST {
			return at(err, "link "+l.Path)
		}
	}
	return nil
}

// switchTo makes the private root the root, and the host's unreachable.
func (r *root) switchTo(*Spec) *fault {
	err := unix.MountSetattr(r.new, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err == nil {
		err = unix.Fchdir(r.new)
	}
	if err == nil {
		err = unix.PivotRoot(".", ".")
	}
	if err != nil {
		return at(err, "pivot_root")
	}
	if err = unix.Unmount(".", unix.MNT_DETACH); err == nil {
		err = unix.Chdir("/")
	}
	unix.Close(r.old)
	unix.Close(r.new)
	return at(err, "leave the host's root")
}
