//go:build unix

package codedir

import (
	"io/fs"
	"os"
	"syscall"
)

// Checked says whether the owner and the mode of a directory tell who else
// could write to it.
const Checked = true

// exposed says who else could write to the directory of info; "" is nobody.
func exposed(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return "its owner cannot be found out"
	case int(st.Uid) != os.Geteuid():
		return "belongs to another user"
	case info.Mode().Perm()&0o077 != 0:
		return "is open to other users"
	}
	return ""
}
