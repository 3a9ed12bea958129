//go:build !(linux || darwin) || rootfs_portable

package rootfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
)

// This file stands on os.Root, which keeps every step beneath a directory but
// follows links there. So each step looks first and then proves that what it
// opened is what it saw. Rename, Link and the setting of times and modes cannot
// prove that: a host program that swaps a directory for a link at the right
// moment can redirect them within the granted root. The build tag
// rootfs_portable selects this file elsewhere, so that it can be tested there.

func unspeakable(p string) bool {
	if runtime.GOOS != "windows" {
		return false
	}
	for i, name := range strings.Split(strings.Trim(p, "/"), "/") {
		if i == 0 && isDrive(name) || name == "." || name == ".." {
			continue
		}
		if strings.ContainsAny(name, `\:*?"<>|`) || strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") {
			return true // another spelling of a name, a stream of it, or a device
		}
	}
	return false
}

func isDrive(name string) bool {
	return runtime.GOOS == "windows" && len(name) == 2 && name[1] == ':'
}

func absolute(link string) (string, bool) {
	return link, strings.HasPrefix(link, "/") || len(link) > 1 && isDrive(link[:2])
}

func errno(err error) sys.Errno {
	if e, ok := err.(sys.Errno); ok {
		return e
	}
	var inner interface{ Unwrap() error }
	switch {
	case err == nil, err == io.EOF:
		return 0
	case errors.Is(err, fs.ErrNotExist):
		return sys.ENOENT
	case errors.Is(err, fs.ErrExist):
		return sys.EEXIST
	case errors.Is(err, fs.ErrPermission):
		return sys.EACCES
	case errors.As(err, &inner):
		if inner.Unwrap().Error() == "path escapes from parent" {
			return metLink
		}
		return sys.UnwrapOSError(inner.Unwrap())
	}
	return sys.EIO
}

// dir is an open directory.
type dir struct {
	root *os.Root
	top  *os.Root // the directory that it was reached from, for moving between two
	rel  string   // and the way
}

func (d dir) close() { d.root.Close() }

// openDir opens the directory at an absolute real path.
func openDir(path string, _ bool) (dir, sys.Errno) {
	for at := path; ; at = parent(at) {
		st, err := os.Lstat(filepath.FromSlash(at))
		switch {
		case err != nil:
			return dir{}, errno(err)
		case isLink(st):
			return dir{}, metLink
		case !st.IsDir():
			return dir{}, sys.ENOTDIR
		}
		if up := parent(at); up == "/" || isDrive(up) {
			break
		}
	}
	seen, err := os.Lstat(filepath.FromSlash(path))
	if err != nil {
		return dir{}, errno(err)
	}
	root, err := os.OpenRoot(filepath.FromSlash(path))
	if err != nil {
		return dir{}, errno(err)
	}
	if st, err := root.Stat("."); err != nil || !os.SameFile(seen, st) {
		root.Close()
		return dir{}, metLink
	}
	return dir{root: root, top: root, rel: "."}, 0
}

func isLink(st fs.FileInfo) bool { return st.Mode()&fs.ModeSymlink != 0 }

// sub opens the directory at rel, name by name.
func (d dir) sub(rel string) (dir, sys.Errno) {
	at := d.root
	for name := range strings.SplitSeq(rel, "/") {
		next, e := enterDir(at, name)
		if at != d.root {
			at.Close()
		}
		if e != 0 {
			return dir{}, e
		}
		at = next
	}
	return dir{root: at, top: d.top, rel: d.rel + "/" + rel}, 0
}

func enterDir(at *os.Root, name string) (*os.Root, sys.Errno) {
	seen, err := at.Lstat(name)
	switch {
	case err != nil:
		return nil, errno(err)
	case isLink(seen):
		return nil, metLink
	case !seen.IsDir():
		return nil, sys.ENOTDIR
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, errno(err)
	}
	if st, err := next.Stat("."); err != nil || !os.SameFile(seen, st) {
		next.Close()
		return nil, metLink
	}
	return next, 0
}

// open opens what is at rel. It does not block.
func (d dir) open(rel string, flag sys.Oflag, perm fs.FileMode) (handle, sys.Errno) {
	name := rel
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		sub, e := d.sub(rel[:i])
		if e != 0 {
			return nil, e
		}
		defer sub.close()
		d, name = sub, rel[i+1:]
	}
	flags := os.O_RDONLY
	switch {
	case flag&sys.O_RDWR != 0:
		flags = os.O_RDWR
	case flag&sys.O_WRONLY != 0:
		flags = os.O_WRONLY
	}
	if flag&(sys.O_SYNC|sys.O_DSYNC) != 0 {
		flags |= os.O_SYNC
	}
	if flag&sys.O_CREAT != 0 {
		f, err := d.root.OpenFile(name, flags|os.O_CREATE|os.O_EXCL, perm)
		if err != nil {
			return nil, errno(err)
		}
		return &hostFile{f, flag&sys.O_APPEND != 0}, 0
	}
	seen, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return nil, errno(err)
	case isLink(seen):
		return nil, metLink
	case seen.IsDir() && flags&(os.O_RDWR|os.O_WRONLY) != 0:
		return nil, sys.EISDIR
	case !seen.IsDir() && flag&sys.O_DIRECTORY != 0:
		return nil, sys.ENOTDIR
	case !seen.IsDir() && !seen.Mode().IsRegular():
		return nil, sys.EACCES
	}
	f, err := d.root.OpenFile(name, flags, 0)
	if err != nil {
		return nil, errno(err)
	}
	if st, err := f.Stat(); err != nil || !os.SameFile(seen, st) {
		f.Close()
		return nil, metLink
	}
	return &hostFile{f, flag&sys.O_APPEND != 0}, 0
}

func (d dir) lstat(name string) (wsys.Stat_t, sys.Errno) {
	st, err := d.root.Lstat(name)
	if err != nil {
		return wsys.Stat_t{}, errno(err)
	}
	return wsys.NewStat_t(st), 0
}

func (d dir) readlink(name string) (string, sys.Errno) {
	link, err := d.root.Readlink(name)
	return strings.TrimPrefix(filepath.ToSlash(link), "//?/"), errno(err)
}

func (d dir) mkdir(name string, perm fs.FileMode) sys.Errno { return errno(d.root.Mkdir(name, perm)) }

func (d dir) remove(name string, _ bool) sys.Errno { return errno(d.root.Remove(name)) }

// rename is ENOTSUP between two roots, as is link.
func (d dir) rename(name string, to dir, toName string) sys.Errno {
	if d.top != to.top {
		return sys.ENOTSUP
	}
	return errno(d.top.Rename(d.rel+"/"+name, to.rel+"/"+toName))
}

func (d dir) link(name string, to dir, toName string) sys.Errno {
	if d.top != to.top {
		return sys.ENOTSUP
	}
	return errno(d.top.Link(d.rel+"/"+name, to.rel+"/"+toName))
}

func (d dir) symlink(target, name string) sys.Errno {
	return errno(d.root.Symlink(filepath.FromSlash(target), name))
}

func (d dir) chtimes(name string, atim, mtim int64) sys.Errno {
	return errno(d.root.Chtimes(name, moment(atim), moment(mtim)))
}

func (d dir) chmod(name string, perm fs.FileMode) sys.Errno { return errno(d.root.Chmod(name, perm)) }

// moment returns the zero Time, which leaves a time as it is, for UTIME_OMIT.
func moment(nanos int64) time.Time {
	if nanos == sys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

func sameFile(a dir, aName string, b dir, bName string) bool {
	x, err1 := a.root.Lstat(aName)
	y, err2 := b.root.Lstat(bName)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// handle is an open file; noHandle is none.
type handle = *hostFile

const direntBatch = 128 // entries read at once

var noHandle handle // always nil

// hostFile appends by itself, since os.File cannot change its mind about that.
type hostFile struct {
	f      *os.File
	append bool
}

func (h *hostFile) read(b []byte) (int, sys.Errno) {
	n, err := h.f.Read(b)
	return n, errno(err)
}

func (h *hostFile) pread(b []byte, off int64) (int, sys.Errno) {
	n, err := h.f.ReadAt(b, off)
	return n, errno(err)
}

func (h *hostFile) write(b []byte) (int, sys.Errno) {
	if h.append {
		if _, err := h.f.Seek(0, io.SeekEnd); err != nil {
			return 0, errno(err)
		}
	}
	n, err := h.f.Write(b)
	return n, errno(err)
}

func (h *hostFile) pwrite(b []byte, off int64) (int, sys.Errno) {
	if h.append { // as Linux has it
		st, err := h.f.Stat()
		if err != nil {
			return 0, errno(err)
		}
		off = st.Size()
	}
	n, err := h.f.WriteAt(b, off)
	return n, errno(err)
}

func (h *hostFile) seek(off int64, whence int) (int64, sys.Errno) {
	n, err := h.f.Seek(off, whence)
	return n, errno(err)
}

func (h *hostFile) stat() (wsys.Stat_t, sys.Errno) {
	st, err := h.f.Stat()
	if err != nil {
		return wsys.Stat_t{}, errno(err)
	}
	return wsys.NewStat_t(st), 0
}

func (h *hostFile) setAppend(on bool) sys.Errno    { h.append = on; return 0 }
func (h *hostFile) truncate(size int64) sys.Errno  { return errno(h.f.Truncate(size)) }
func (h *hostFile) sync() sys.Errno                { return errno(h.f.Sync()) }
func (h *hostFile) datasync() sys.Errno            { return h.sync() }
func (h *hostFile) close() sys.Errno               { return errno(h.f.Close()) }
func (h *hostFile) chtimes(int64, int64) sys.Errno { return sys.EPERM } // by the name instead

// readdir returns some of the entries that follow, and none at the end.
func (h *hostFile) readdir([]byte) (out []sys.Dirent, _ sys.Errno) {
	entries, err := h.f.ReadDir(direntBatch)
	for _, e := range entries {
		out = append(out, sys.Dirent{Name: e.Name(), Type: e.Type()})
	}
	return out, errno(err)
}
