//go:build linux || darwin

package socket

import (
	"fmt"
	"os"
	"syscall"
)

// private fails unless dir is the user's, and nobody else can enter it.
func private(dir *os.File) error {
	st, err := dir.Stat()
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || int(sys.Uid) != os.Getuid() || st.Mode().Perm()&0o077 != 0 || !st.IsDir() {
		return fmt.Errorf("%s is not a directory of the user's alone (chmod 700 it)", dir.Name())
	}
	return nil
}
