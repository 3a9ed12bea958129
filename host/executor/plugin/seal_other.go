//go:build !linux

package plugin

import (
	"errors"
	"os"
)

// memory makes a file that only the host's user can find.
func memory(string) (*os.File, error) {
	f, err := os.CreateTemp("", "skill-plugin-*")
	if err == nil {
		err = os.Chmod(f.Name(), 0o500)
	}
	return f, err
}

// freeze has nothing to do: nobody else can open the file.
func freeze(*os.File) error { return nil }

// forget ends a file of memory.
func forget(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }
