//go:build (linux || darwin) && !rootfs_portable

package rootfs

import (
	"encoding/binary"
	"io/fs"
	"strings"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"
)

func unspeakable(string) bool { return false }

func isDrive(string) bool { return false }

func absolute(link string) (string, bool) { return link, strings.HasPrefix(link, "/") }

// errno translates an error of package unix.
func errno(err error) sys.Errno {
	switch err {
	case nil:
		return 0
	case unix.EXDEV, unix.EOPNOTSUPP:
		return sys.ENOTSUP
	case unix.ENXIO, unix.ENODEV: // a FIFO without a reader, a socket, a device
		return sys.EACCES
	}
	return sys.UnwrapOSError(err)
}

// dir is an open directory. Paths beneath it are clean and have no "..".
type dir struct {
	fd      int
	walking bool
}

func (d dir) close() { unix.Close(d.fd) }

// openDir opens the directory at an absolute real path.
func openDir(path string, walking bool) (dir, sys.Errno) {
	fd, err := unix.Open("/", pathOnly|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil || path == "/" {
		return dir{fd, walking}, errno(err)
	}
	top := dir{fd, walking}
	defer top.close()
	return top.sub(path[1:])
}

// sub opens the directory at rel.
func (d dir) sub(rel string) (dir, sys.Errno) {
	fd, e := d.openBeneath(rel, pathOnly|unix.O_DIRECTORY, 0)
	return dir{fd, d.walking}, e
}

// walk opens what is at rel name by name.
func (d dir) walk(rel string, flags int, perm uint32) (int, sys.Errno) {
	at := d
	for {
		name, rest, more := strings.Cut(rel, "/")
		how := flags
		if more {
			how = pathOnly | unix.O_DIRECTORY
		}
		fd, err := ignoringEINTR(func() (int, error) {
			return unix.Openat(at.fd, name, how|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
		})
		if err != nil && at.isLink(name) && how&unix.O_EXCL == 0 {
			err = unix.ELOOP
		}
		if at.fd != d.fd {
			at.close()
		}
		switch {
		case err == unix.ELOOP:
			return -1, metLink
		case err != nil:
			return -1, errno(err)
		case !more:
			return fd, 0
		}
		at.fd, rel = fd, rest
	}
}

func (d dir) isLink(name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// open opens what is at rel. It does not block.
func (d dir) open(rel string, flag sys.Oflag, perm fs.FileMode) (handle, sys.Errno) {
	flags := unix.O_NONBLOCK | unix.O_NOCTTY
	switch {
	case flag&sys.O_RDWR != 0:
		flags |= unix.O_RDWR
	case flag&sys.O_WRONLY != 0:
		flags |= unix.O_WRONLY
	}
	for _, m := range [...]struct {
		guest sys.Oflag
		host  int
	}{
		{sys.O_APPEND, unix.O_APPEND}, {sys.O_CREAT, unix.O_CREAT}, {sys.O_EXCL, unix.O_EXCL},
		{sys.O_DIRECTORY, unix.O_DIRECTORY}, {sys.O_DSYNC, unix.O_DSYNC}, {sys.O_SYNC | sys.O_RSYNC, unix.O_SYNC},
	} {
		if flag&m.guest != 0 {
			flags |= m.host
		}
	}
	fd, e := d.openBeneath(rel, flags, uint32(perm))
	return handle(fd), e
}

func (d dir) lstat(name string) (wsys.Stat_t, sys.Errno) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wsys.Stat_t{}, errno(err)
	}
	return stat(&st), 0
}

func (d dir) readlink(name string) (string, sys.Errno) {
	buf := make([]byte, maxPath+1)
	n, err := unix.Readlinkat(d.fd, name, buf)
	switch {
	case err != nil:
		return "", errno(err)
	case n > maxPath:
		return "", sys.ENAMETOOLONG
	}
	return string(buf[:n]), 0
}

func (d dir) mkdir(name string, perm fs.FileMode) sys.Errno {
	return errno(unix.Mkdirat(d.fd, name, uint32(perm)))
}

func (d dir) remove(name string, isDir bool) sys.Errno {
	flags := 0
	if isDir {
		flags = unix.AT_REMOVEDIR
	}
	return errno(unix.Unlinkat(d.fd, name, flags))
}

func (d dir) rename(name string, to dir, toName string) sys.Errno {
	return errno(unix.Renameat(d.fd, name, to.fd, toName))
}

func (d dir) link(name string, to dir, toName string) sys.Errno {
	return errno(unix.Linkat(d.fd, name, to.fd, toName, 0))
}

func (d dir) symlink(target, name string) sys.Errno {
	return errno(unix.Symlinkat(target, d.fd, name))
}

func (d dir) chtimes(name string, atim, mtim int64) sys.Errno {
	ts := [2]unix.Timespec{timespec(atim), timespec(mtim)}
	return errno(unix.UtimesNanoAt(d.fd, name, ts[:], unix.AT_SYMLINK_NOFOLLOW))
}

// chmod is ENOTSUP on a Linux before 6.6, which cannot do it without following.
func (d dir) chmod(name string, perm fs.FileMode) sys.Errno {
	return errno(unix.Fchmodat(d.fd, name, uint32(perm), unix.AT_SYMLINK_NOFOLLOW))
}

func sameFile(a dir, aName string, b dir, bName string) bool {
	x, e1 := a.lstat(aName)
	y, e2 := b.lstat(bName)
	return e1 == 0 && e2 == 0 && x.Dev == y.Dev && x.Ino == y.Ino
}

func timespec(nanos int64) unix.Timespec {
	if nanos == sys.UTIME_OMIT {
		var ts unix.Timespec
		ts.Nsec = utimeOmit
		return ts
	}
	return unix.NsecToTimespec(nanos)
}

func stat(st *unix.Stat_t) wsys.Stat_t {
	return wsys.Stat_t{
		Dev: uint64(st.Dev), Ino: st.Ino, Mode: mode(uint32(st.Mode)), Nlink: uint64(st.Nlink), Size: st.Size,
		Atim: st.Atim.Nano(), Mtim: st.Mtim.Nano(), Ctim: st.Ctim.Nano(),
	}
}

func mode(m uint32) fs.FileMode {
	perm := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
		return perm
	case unix.S_IFDIR:
		return perm | fs.ModeDir
	case unix.S_IFLNK:
		return perm | fs.ModeSymlink
	case unix.S_IFIFO:
		return perm | fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return perm | fs.ModeSocket
	case unix.S_IFCHR:
		return perm | fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		return perm | fs.ModeDevice
	}
	return perm | fs.ModeIrregular
}

// handle is an open file.
type handle int

const noHandle handle = -1

func ignoringEINTR(do func() (int, error)) (int, error) {
	for {
		if n, err := do(); err != unix.EINTR {
			return n, err
		}
	}
}

func (h handle) transfer(do func() (int, error)) (int, sys.Errno) {
	n, err := ignoringEINTR(do)
	return max(n, 0), errno(err)
}

func (h handle) read(b []byte) (int, sys.Errno) {
	return h.transfer(func() (int, error) { return unix.Read(int(h), b) })
}

func (h handle) pread(b []byte, off int64) (int, sys.Errno) {
	return h.transfer(func() (int, error) { return unix.Pread(int(h), b, off) })
}

func (h handle) write(b []byte) (int, sys.Errno) {
	return h.transfer(func() (int, error) { return unix.Write(int(h), b) })
}

func (h handle) pwrite(b []byte, off int64) (int, sys.Errno) {
	return h.transfer(func() (int, error) { return unix.Pwrite(int(h), b, off) })
}

func (h handle) seek(off int64, whence int) (int64, sys.Errno) {
	n, err := unix.Seek(int(h), off, whence)
	return n, errno(err)
}

func (h handle) truncate(size int64) sys.Errno { return errno(unix.Ftruncate(int(h), size)) }
func (h handle) sync() sys.Errno               { return errno(unix.Fsync(int(h))) }
func (h handle) close() sys.Errno              { return errno(unix.Close(int(h))) }

func (h handle) stat() (wsys.Stat_t, sys.Errno) {
	var st unix.Stat_t
	if err := unix.Fstat(int(h), &st); err != nil {
		return wsys.Stat_t{}, errno(err)
	}
	return stat(&st), 0
}

func (h handle) setAppend(on bool) sys.Errno {
	flags, err := unix.FcntlInt(uintptr(h), unix.F_GETFL, 0)
	if err != nil {
		return errno(err)
	}
	if flags &^= unix.O_APPEND; on {
		flags |= unix.O_APPEND
	}
	_, err = unix.FcntlInt(uintptr(h), unix.F_SETFL, flags)
	return errno(err)
}

// readdir returns some of the entries that follow, without "." and "..", and
// none at the end.
func (h handle) readdir(buf []byte) (out []sys.Dirent, _ sys.Errno) {
	for len(out) == 0 {
		n, err := ignoringEINTR(func() (int, error) { return unix.ReadDirent(int(h), buf) })
		if err != nil || n <= 0 {
			return nil, errno(err)
		}
		const header = int(unsafe.Offsetof(unix.Dirent{}.Name))
		for rec := buf[:n]; len(rec) >= header; {
			size := int(binary.NativeEndian.Uint16(rec[unsafe.Offsetof(unix.Dirent{}.Reclen):]))
			if size < header || size > len(rec) {
				return nil, sys.EIO
			}
			name := string(rec[header:size])
			if i := strings.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			d := sys.Dirent{Name: name, Ino: binary.NativeEndian.Uint64(rec), Type: mode(uint32(rec[unsafe.Offsetof(unix.Dirent{}.Type)]) << 12)}
			rec = rec[size:]
			if name == "." || name == ".." || name == "" || d.Ino == 0 {
				continue
			}
			if d.Type&fs.ModeIrregular != 0 { // a file system that does not tell
				st, _ := dir{fd: int(h)}.lstat(name)
				d.Type = st.Mode.Type()
			}
			out = append(out, d)
		}
	}
	return out, 0
}
