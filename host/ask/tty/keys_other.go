//go:build !linux && !darwin

package tty

import (
	"errors"
	"io"
	"os"
)

type keys struct{ io.Reader }

func newKeys(*os.File) (*keys, error) { return nil, errors.ErrUnsupported }

func (*keys) stop() {}
