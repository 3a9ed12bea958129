//go:build !linux

package journal

import (
	"errors"
	"os"
)

// allocate sets aside file[from:to] by writing to it; records then go there
// with pwrite.
func allocate(file *os.File, from, to int64) (mappable bool, err error) {
	return false, zeroFill(file, from, to)
}

func mapSpace(*os.File, int64, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapSpace([]byte) {}

func Datasync(file *os.File) error { return file.Sync() }
