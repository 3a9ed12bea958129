package wasm

import (
	"io/fs"
	"testing"

	esys "github.com/tetratelabs/wazero/experimental/sys"
)

// open is a file system of one file that transfers anything.
type open struct{ esys.UnimplementedFS }

func (open) OpenFile(path string, _ esys.Oflag, _ fs.FileMode) (esys.File, esys.Errno) {
	if path != "a" {
		return nil, esys.EACCES
	}
	return &endless{}, 0
}

type endless struct{ esys.UnimplementedFile }

func (*endless) Read(b []byte) (int, esys.Errno)            { return len(b), 0 }
func (*endless) Pread(b []byte, _ int64) (int, esys.Errno)  { return len(b), 0 }
func (*endless) Write(b []byte) (int, esys.Errno)           { return len(b), 0 }
func (*endless) Pwrite(b []byte, _ int64) (int, esys.Errno) { return len(b), 0 }
func (*endless) Readdir(int) ([]esys.Dirent, esys.Errno)    { return nil, 0 }

// Every way to move data asks first, and does not happen after a no.
func TestFenceStopsTransfers(t *testing.T) {
	over := false
	f := &fence{FS: open{}, check: func() {
		if over {
			panic("over")
		}
	}}
	if _, errno := f.OpenFile("b", esys.O_RDONLY, 0); errno != esys.EACCES {
		t.Errorf("open: %v, want the error of what is behind", errno)
	}
	file, errno := f.OpenFile("a", esys.O_RDONLY, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	buf := make([]byte, 1)
	for name, transfer := range map[string]func(){
		"read":    func() { file.Read(buf) },
		"pread":   func() { file.Pread(buf, 0) },
		"write":   func() { file.Write(buf) },
		"pwrite":  func() { file.Pwrite(buf, 0) },
		"readdir": func() { file.Readdir(1) },
	} {
		over = false
		transfer()
		over = true
		func() {
			defer func() {
				if recover() != "over" {
					t.Errorf("%s went through", name)
				}
			}()
			transfer()
		}()
	}
}
