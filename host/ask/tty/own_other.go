//go:build !linux && !darwin

package tty

import (
	"errors"
	"os"
)

func open() (*os.File, error) { return nil, errors.ErrUnsupported }

// Owned is false: this system does not say whose the terminal is.
func (*Own) Owned() bool { return false }

func flush(*os.File) error { return nil }
