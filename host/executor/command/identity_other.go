//go:build !linux && !darwin

package command

import (
	"errors"
	"os"
)

const nonblock = 0

// An identity is nothing here: no command is run.
type identity struct{}

var errPlatform = errors.New("commands are not run on this platform")

func identify(*os.File) (identity, error)   { return identity{}, errPlatform }
func identifyPath(string) (identity, error) { return identity{}, errPlatform }
func (identity) trusted() bool              { return false }
func duplicate(*os.File) (*os.File, error)  { return nil, errPlatform }
