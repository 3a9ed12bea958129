package wasm

import (
	"io/fs"

	esys "github.com/tetratelabs/wazero/experimental/sys"
)

// A fence stands before the file system of a call, and lets no data through
// after the deadline: one import of WASI may read or write a million buffers
// without coming back to the guest, where a tick would see it.
type fence struct {
	esys.FS
	check func() // panics if the guest must not go on
}

// OpenFile opens a file of the file system behind the fence.
func (f *fence) OpenFile(path string, flag esys.Oflag, perm fs.FileMode) (esys.File, esys.Errno) {
	opened, errno := f.FS.OpenFile(path, flag, perm)
	if errno != 0 {
		return nil, errno
	}
	return &fenced{opened, f.check}, 0
}

// A fenced file is open behind a fence.
type fenced struct {
	esys.File
	check func()
}

func (f *fenced) Read(buf []byte) (int, esys.Errno) {
	f.check()
	return f.File.Read(buf)
}

func (f *fenced) Pread(buf []byte, off int64) (int, esys.Errno) {
	f.check()
	return f.File.Pread(buf, off)
}

func (f *fenced) Readdir(n int) ([]esys.Dirent, esys.Errno) {
	f.check()
	return f.File.Readdir(n)
}

func (f *fenced) Write(buf []byte) (int, esys.Errno) {
	f.check()
	return f.File.Write(buf)
}

func (f *fenced) Pwrite(buf []byte, off int64) (int, esys.Errno) {
	f.check()
	return f.File.Pwrite(buf, off)
}
