package stage

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// The size of each file system in memory that a cage may write to.
const tmpSize = "64m"

// basics makes /dev, with five devices, and what else every root has.
func (r *root) basics(*Spec) *fault {
	for _, d := range []string{"dev", "dev/shm", "run", "proc"} {
		if err := unix.Mkdirat(r.new, d, 0o755); err != nil {
			return at(err, "make /"+d)
		}
	}
	from, err := beneath(r.old, "/dev", unix.O_DIRECTORY, 0)
	if err != nil {
		return at(err, "open /dev")
	}
	defer unix.Close(from)
	to, err := beneath(r.new, "/dev", unix.O_DIRECTORY, 0)
	if err != nil {
		return at(err, "open /dev")
	}
	defer unix.Close(to)
	for _, l := range [][2]string{{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}} {
		if err := unix.Symlinkat(l[1], to, l[0]); err != nil {
			return at(err, "make /dev/"+l[0])
		}
	}
	for _, n := range []string{"null", "zero", "full", "random", "urandom"} {
		if err := device(from, to, n); err != nil {
			return at(err, "mount /dev/"+n)
		}
	}
	return r.memory("/dev/shm")
}

// device mounts a device of the host. It is read-only as a file: its mode
// cannot be changed, but it can be written to.
func device(from, to int, name string) error {
	if err := unix.Mknodat(to, name, unix.S_IFREG|0o644, 0); err != nil {
		return err
	}
	tree, err := unix.OpenTree(from, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", to, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// memory mounts a small tmpfs for everybody on p.
func (r *root) memory(p string) *fault {
	fs, err := tmpfs(tmpSize, "16384", "1777", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return at(err, "tmpfs "+p)
	}
	to, err := r.point(p, true)
	if err != nil {
		unix.Close(fs)
		return at(err, "make "+p)
	}
	defer unix.Close(to)
	return at(put(fs, to), "mount "+p)
}

// tmp gives the cage a /tmp of its own if none was mounted.
func (r *root) tmp(s *Spec) *fault {
	for _, m := range s.Mounts {
		if m.Path == "/tmp" && !m.Maybe && (m.Kind == Writable || m.Kind == ReadOnly) {
			return nil
		}
	}
	return r.memory("/tmp")
}

// proc mounts a /proc that shows this PID namespace only. It is read-only:
// user 0 of the host, if that is who runs this, still owns the files in it,
// such as those of sysctl. Who may make namespaces has to write the maps of
// users in it, so that gets one with nothing but its processes.
func (r *root) proc(s *Spec) *fault {
	fs, err := fsmount("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return at(err, "fresh /proc")
	}
	if s.PidMax > 0 { // RLIMIT_NPROC does not bind user 0
		fd, err := unix.Openat(fs, "sys/kernel/pid_max", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Write(fd, strconv.AppendUint(nil, s.PidMax, 10))
			unix.Close(fd)
		}
		if err != nil {
			return at(err, "pid_max")
		}
	}
	if s.has(Nest) {
		unix.Close(fs)
		fs, err = fsmount("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, "subset", "pid")
		if err != nil {
			return at(err, "/proc of processes")
		}
	} else if err := unix.MountSetattr(fs, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return at(err, "read-only /proc")
	}
	to, err := beneath(r.new, "/proc", unix.O_DIRECTORY, 0)
	if err != nil {
		return at(err, "open /proc")
	}
	defer unix.Close(to)
	return at(put(fs, to), "mount /proc")
}

// tmpfs returns a new file system in memory that is not yet mounted.
func tmpfs(size, inodes, mode string, attr int) (int, error) {
	return fsmount("tmpfs", attr, "size", size, "nr_inodes", inodes, "mode", mode)
}

func fsmount(kind string, attr int, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for i := 0; i < len(options); i += 2 {
		if err := unix.FsconfigSetString(fs, options[i], options[i+1]); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
}
