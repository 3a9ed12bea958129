//go:build unix

package config

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// exposed says why others may know what is in f, or "". Root's files may be
// readable by a group: that is how a system hands a key to a server.
func exposed(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "its owner is not known"
	}
	others := fs.FileMode(0o077)
	if st.Uid == 0 {
		others = 0o037
	}
	switch {
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Sprintf("it belongs to another user, %d", st.Uid)
	case info.Mode().Perm()&others != 0:
		return fmt.Sprintf("others can read or change it (mode %04o)", info.Mode().Perm())
	}
	return ""
}

// distrust says why f may hold what others wrote, or "". Whom mode stands for
// must not be able to write it, and this user or root must own it. Others may
// write to a sticky directory, where they cannot replace what is not theirs.
func distrust(f *os.File, mode fs.FileMode) string {
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return "its owner is not known"
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Sprintf("it belongs to another user, %d", st.Uid)
	case info.Mode().Perm()&mode != 0 && (mode == 0o022 || info.Mode()&fs.ModeSticky == 0):
		return fmt.Sprintf("others can write to it (mode %04o)", info.Mode().Perm())
	}
	return ""
}
