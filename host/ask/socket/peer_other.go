//go:build !linux && !darwin

package socket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
)

const supported = false

func peer(*net.UnixConn) (int, error) { return 0, errors.ErrUnsupported }

func place(dir *os.File, name string) string { return filepath.Join(dir.Name(), name) }

func private(*os.File) error { return errors.ErrUnsupported }
