package rootfs

import (
	"hash/fnv"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/skillhost/skill/host/capability"
)

const direntBuffer = 8 << 10 // bytes of directory read at once

// position is int64 by another name, because go vet takes a Seek with an int64
// for that of io.Seeker, which wazero's is not.
type position = int64

// file is an open regular file or directory of the host.
type file struct {
	sys.UnimplementedFile
	fs     *FS
	h      handle
	target string
	dev    uint64
	ino    wsys.Inode
	dir    bool
	write  bool // the guest opened it for writing; h may be writable without
	append bool
	slot   int // in fs.files; -1 if closed
	list   *listing
}

// A listing is the state of reading a directory.
type listing struct {
	buf   []byte
	ahead []sys.Dirent // read but not returned
	hide  []string     // names that are left out
}

// adopt makes h the guest's file, if it is of a kind that it may open. It
// closes h if not.
func (f *FS) adopt(h handle, target string, flag sys.Oflag) (sys.File, sys.Errno) {
	st, errno := h.stat()
	switch {
	case errno != 0:
	case !st.Mode.IsRegular() && !st.Mode.IsDir():
		errno = sys.EACCES
	case st.Mode.IsDir() && flag&writing != 0:
		errno = sys.EISDIR
	case flag&sys.O_TRUNC != 0:
		errno = h.truncate(0)
	}
	if errno != 0 {
		h.close()
		return nil, errno
	}
	x := &file{
		fs: f, h: h, target: target, dev: st.Dev, ino: st.Ino, dir: st.Mode.IsDir(),
		write: flag&(sys.O_RDWR|sys.O_WRONLY) != 0, append: flag&sys.O_APPEND != 0, slot: len(f.files),
	}
	f.files = append(f.files, x)
	f.open++
	return x, 0
}

// Close is idempotent.
func (x *file) Close() sys.Errno {
	if x.slot < 0 {
		return 0
	}
	files := x.fs.files
	end := len(files) - 1
	files[x.slot] = files[end]
	files[x.slot].slot = x.slot
	files[end] = nil
	x.fs.files = files[:end]
	x.fs.open--
	x.slot = -1
	return x.h.close()
}

// usable returns the error of an operation on a closed file, or of one that
// writes to a file which was not opened for it.
func (x *file) usable(write bool) sys.Errno {
	switch {
	case x.slot < 0:
		return sys.EBADF
	case x.dir && write:
		return sys.EISDIR
	case write && !x.write:
		return sys.EBADF
	}
	return 0
}

func (x *file) Dev() (uint64, sys.Errno)     { return x.dev, x.usable(false) }
func (x *file) Ino() (wsys.Inode, sys.Errno) { return x.ino, x.usable(false) }
func (x *file) IsDir() (bool, sys.Errno)     { return x.dir, x.usable(false) }
func (x *file) IsAppend() bool               { return x.append }

func (x *file) SetAppend(on bool) sys.Errno {
	if errno := x.usable(false); errno != 0 || on == x.append {
		return errno
	}
	if x.dir {
		return sys.EISDIR
	}
	errno := x.h.setAppend(on)
	if errno == 0 {
		x.append = on
	}
	return errno
}

func (x *file) Stat() (wsys.Stat_t, sys.Errno) {
	if errno := x.usable(false); errno != 0 {
		return wsys.Stat_t{}, errno
	}
	return x.h.stat()
}

// readable returns the error of reading n bytes at off.
func (x *file) readable(off int64) sys.Errno {
	if errno := x.usable(false); errno != 0 {
		return errno
	}
	if x.dir {
		return sys.EISDIR
	}
	if off < 0 {
		return sys.EINVAL
	}
	return 0
}

func (x *file) Read(b []byte) (int, sys.Errno) {
	if errno := x.readable(0); errno != 0 || len(b) == 0 {
		return 0, errno
	}
	return x.h.read(b)
}

func (x *file) Pread(b []byte, off int64) (int, sys.Errno) {
	if errno := x.readable(off); errno != 0 || len(b) == 0 {
		return 0, errno
	}
	return x.h.pread(b, off)
}

func (x *file) Write(b []byte) (int, sys.Errno) { return x.put(b, x.h.write) }

func (x *file) Pwrite(b []byte, off int64) (int, sys.Errno) {
	if off < 0 {
		return 0, sys.EINVAL
	}
	return x.put(b, func(b []byte) (int, sys.Errno) {
		n, errno := x.h.pwrite(b, off)
		off += int64(n)
		return n, errno
	})
}

// put writes all of b, as wazero does not try again after a short write.
func (x *file) put(b []byte, write func([]byte) (int, sys.Errno)) (n int, errno sys.Errno) {
	if errno := x.usable(true); errno != 0 {
		return 0, errno
	}
	for n < len(b) {
		m, errno := write(b[n:])
		if n += m; errno != 0 || m == 0 {
			return n, errno
		}
	}
	return n, 0
}

func (x *file) Seek(off position, whence int) (position, sys.Errno) {
	switch errno := x.usable(false); {
	case errno != 0:
		return 0, errno
	case whence < io.SeekStart || whence > io.SeekEnd:
		return 0, sys.EINVAL
	case !x.dir:
		return x.h.seek(off, whence)
	case off != 0 || whence != io.SeekStart:
		return 0, sys.EISDIR
	}
	x.list = nil
	return x.h.seek(0, io.SeekStart)
}

// Readdir returns n entries unless fewer are left, or all if n ≤ 0. The dot
// entries are wazero's to add.
func (x *file) Readdir(n int) ([]sys.Dirent, sys.Errno) {
	if x.slot < 0 || !x.dir {
		return nil, sys.EBADF
	}
	if x.list == nil {
		x.list = &listing{buf: make([]byte, direntBuffer), hide: x.fs.hides(x.target)}
		if x.target == "/" { // the aliases shadow what the host has
			x.list.ahead = x.fs.aliases()
			for _, name := range [...]string{"skill", "tmp", "workspace"} {
				if _, ok := x.fs.alias(name); ok {
					x.list.hide = append(x.list.hide, name)
				}
			}
		}
	}
	l := x.list
	var out []sys.Dirent
	for n <= 0 || len(out) < n {
		if len(l.ahead) == 0 {
			batch, errno := x.h.readdir(l.buf)
			if errno != 0 {
				return out, errno
			}
			if len(batch) == 0 {
				break
			}
			l.ahead = slices.DeleteFunc(batch, x.hidden)
		}
		take := len(l.ahead)
		if n > 0 {
			take = min(take, n-len(out))
		}
		out = append(out, l.ahead[:take]...)
		l.ahead = l.ahead[take:]
	}
	return out, 0
}

// hidden reports whether a listing leaves out d: what is denied, under whatever
// spelling the host has it, and what an alias shadows.
func (x *file) hidden(d sys.Dirent) bool {
	if len(x.list.hide) == 0 {
		return false
	}
	if slices.Contains(x.list.hide, d.Name) {
		return true
	}
	target := child(x.target, d.Name)
	return x.fs.named(target, false) != target
}

func (x *file) Truncate(size int64) sys.Errno {
	if errno := x.usable(true); errno != 0 {
		return errno
	}
	if size < 0 {
		return sys.EINVAL
	}
	return x.h.truncate(size)
}

func (x *file) Sync() sys.Errno {
	if errno := x.usable(false); errno != 0 {
		return errno
	}
	return x.h.sync()
}

func (x *file) Datasync() sys.Errno {
	if errno := x.usable(false); errno != 0 {
		return errno
	}
	return x.h.datasync()
}

// Utimens is EPERM on what is not open for writing: wazero then asks FS.Utimens
// by the name, which is checked.
func (x *file) Utimens(atim, mtim int64) sys.Errno {
	if errno := x.usable(false); errno != 0 {
		return errno
	}
	if !x.write {
		return sys.EPERM
	}
	return x.h.chtimes(atim, mtim)
}

// ancestorDir is a directory above what is granted. It shows only the ways to
// there, and holds nothing of the host.
type ancestorDir struct {
	sys.DirFile
	fs      *FS
	target  string
	entries []sys.Dirent
	read    bool // entries is computed
	closed  bool
}

func (f *FS) openAncestor(target string) sys.File {
	f.open++
	return &ancestorDir{fs: f, target: target}
}

func (x *ancestorDir) Dev() (uint64, sys.Errno)       { return 0, 0 }
func (x *ancestorDir) Ino() (wsys.Inode, sys.Errno)   { return number(x.target), 0 }
func (x *ancestorDir) Stat() (wsys.Stat_t, sys.Errno) { return ancestorStat(x.target), 0 }
func (x *ancestorDir) Sync() sys.Errno                { return 0 }
func (x *ancestorDir) Datasync() sys.Errno            { return 0 }
func (x *ancestorDir) Utimens(int64, int64) sys.Errno { return sys.EPERM }

func (x *ancestorDir) Close() sys.Errno {
	if !x.closed {
		x.closed = true
		x.fs.open--
	}
	return 0
}

func (x *ancestorDir) Seek(off position, whence int) (position, sys.Errno) {
	if off != 0 || whence != io.SeekStart {
		return 0, sys.EISDIR
	}
	x.read = false
	return 0, 0
}

func (x *ancestorDir) Readdir(n int) ([]sys.Dirent, sys.Errno) {
	if x.closed {
		return nil, sys.EBADF
	}
	if !x.read {
		x.entries, x.read = x.fs.ways(x.target), true
	}
	if n <= 0 || n > len(x.entries) {
		n = len(x.entries)
	}
	out := x.entries[:n:n]
	x.entries = x.entries[n:]
	return out, 0
}

// ways lists the names that lead from the ancestor target to a granted root.
func (f *FS) ways(target string) (out []sys.Dirent) {
	if target == "/" {
		out = f.aliases()
	}
	for _, r := range f.granted() {
		if !isAbove(target, r.Path) {
			continue
		}
		name, _, more := strings.Cut(beyond(r.Path, target), "/")
		if target == "/" {
			if _, shadowed := f.alias(name); shadowed {
				continue
			}
		}
		if slices.ContainsFunc(out, func(d sys.Dirent) bool { return d.Name == name }) {
			continue
		}
		kind := fs.ModeDir
		if !more {
			var errno sys.Errno
			if kind, _, errno = f.look(r.Path); errno != 0 {
				continue
			}
		}
		out = append(out, sys.Dirent{Name: name, Ino: number(child(target, name)), Type: kind.Type()})
	}
	return out
}

func isAbove(dir, target string) bool {
	if dir == "/" { // above drives too, but not above ${tmp}
		return target != "/" && !capability.Beneath(target, capability.VarTmp)
	}
	return dir != target && capability.Beneath(target, dir)
}

// aliases lists those aliases behind which something is granted.
func (f *FS) aliases() (out []sys.Dirent) {
	for _, name := range [...]string{"skill", "tmp", "workspace"} {
		if target, ok := f.alias(name); ok && f.area(target) != outside {
			out = append(out, sys.Dirent{Name: name, Ino: number(target), Type: fs.ModeDir})
		}
	}
	return out
}

func ancestorStat(target string) wsys.Stat_t {
	return wsys.Stat_t{Ino: number(target), Mode: fs.ModeDir | 0o555, Nlink: 1}
}

// number returns an inode number for what has none.
func number(target string) wsys.Inode {
	h := fnv.New64a()
	io.WriteString(h, target)
	return h.Sum64() | 1
}
