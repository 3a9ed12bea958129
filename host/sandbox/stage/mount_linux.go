package stage

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

func (r *root) mounts(s *Spec) *fault {
	for i := range s.Mounts {
		m := &s.Mounts[i]
		err := r.mount(m)
		if err == unix.ENOENT && m.Maybe {
			continue
		}
		if err != nil {
			return at(err, "mount "+m.Path)
		}
	}
	return nil
}

func (r *root) mount(m *Mount) error {
	if m.Kind != Hidden && (within(m.Path, "/proc") || within(m.Path, "/dev")) {
		return nil // whoever was granted these has the cage's own
	}
	source := m.Source
	if source == "" {
		source = m.Path
	}
	attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	switch m.Kind {
	case ReadOnly:
		attr |= unix.MOUNT_ATTR_RDONLY
	case Writable:
	case Hidden:
		if m.Path == "/" { // of which nothing is here but what is mounted
			return nil
		}
		return r.mask(m.Path)
	case Pinned:
		fd, err := beneath(r.new, m.Path, 0, 0)
		if err != nil {
			return err
		}
		return r.bind(fd, m.Path, 0)
	default:
		return unix.EINVAL
	}
	if m.Path == "/" {
		return r.everything(source, attr)
	}
	fd, err := beneath(r.old, source, 0, 0)
	if err != nil {
		return err
	}
	return r.bind(fd, m.Path, attr)
}

func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, dir+"/")
}

// bind mounts from on p. from is closed.
func (r *root) bind(from int, p string, attr uint64) error {
	defer unix.Close(from)
	dir, err := isDir(from)
	if err != nil {
		return err
	}
	to, err := r.point(p, dir)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	tree, err := clone(from, attr)
	if err != nil {
		return err
	}
	return put(tree, to)
}

// clone returns what is at from, with all mounts beneath it, as a mount that
// is not yet anywhere, with the attributes attr set on all of it.
func clone(from int, attr uint64) (int, error) {
	tree, err := unix.OpenTree(from, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil || attr == 0 {
		return tree, err
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
		unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

// put mounts tree, which it closes, on the directory or file point.
func put(tree, point int) error {
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", point, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// mask puts an empty directory or file that nobody has a permission for over
// p. Where nothing is, nothing needs to be hidden.
func (r *root) mask(p string) error {
	to, err := beneath(r.new, p, 0, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err == unix.EACCES {
		return r.closed(p)
	}
	if err != nil {
		return err
	}
	defer unix.Close(to)
	dir, err := isDir(to)
	if err != nil {
		return err
	}
	const name = ".hidden" // goes away; what is mounted from it stays
	flags := 0
	if dir {
		flags, err = unix.AT_REMOVEDIR, unix.Mkdirat(r.new, name, 0)
	} else {
		err = unix.Mknodat(r.new, name, unix.S_IFREG, 0)
	}
	if err != nil {
		return err
	}
	from, err := beneath(r.new, name, 0, 0)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	tree, err := clone(from, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	if err := put(tree, to); err != nil {
		return err
	}
	return unix.Unlinkat(r.new, name, flags)
}

// closed returns nil if p cannot be reached because of a directory on the way
// that belongs to another user: what the stage, which has capabilities, cannot
// pass, the program cannot either. A directory of the user's own it could open;
// one of the user's own in another group, that is, because what belongs to both
// is not closed to the stage. (Whoever is not in the namespace looks like the
// user, if that is 65534.)
func (r *root) closed(p string) error {
	for p != "/" {
		p = path.Dir(p)
		fd, err := beneath(r.new, p, 0, 0)
		if err == unix.EACCES {
			continue
		}
		if err != nil {
			return err
		}
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		unix.Close(fd)
		if err != nil {
			return err
		}
		if int(st.Uid) == unix.Getuid() && int(st.Gid) != unix.Getgid() {
			return unix.EACCES
		}
		return nil
	}
	return unix.EACCES
}

// everything mounts each entry of the directory source on the private root,
// which so remains one where links and mount points can be made. What a cage
// has of its own is left out, and nobody writes to the kernel's own files.
func (r *root) everything(source string, attr uint64) error {
	dir, err := beneath(r.old, source, unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	names, err := list(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch name {
		case "dev", "proc", "run", "tmp":
			continue
		}
		a := attr
		if name == "sys" {
			a |= unix.MOUNT_ATTR_RDONLY
		}
		if err := r.entry(dir, name, a); err != nil && err != unix.ENOENT { // it may have gone since
			return err
		}
	}
	return nil
}

// entry mounts one name of a directory, or makes the same link.
func (r *root) entry(dir int, name string, attr uint64) error {
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(dir, name, buf[:])
	if err == nil {
		return unix.Symlinkat(string(buf[:n]), r.new, name)
	}
	if err != unix.EINVAL { // is not a link
		return err
	}
	fd, err := beneath(dir, name, 0, 0)
	if err != nil {
		return err
	}
	return r.bind(fd, "/"+name, attr)
}

// list returns the names in a directory that was opened by path only.
func list(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n == 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}
