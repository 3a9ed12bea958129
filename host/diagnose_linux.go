package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// files says what keeps an opened file beneath its root: it asks the kernel to
// open ".." of a directory, which must not succeed.
func files() string {
	const without = "single steps without links, because openat2 "
	dir, err := os.Open(os.TempDir())
	if err != nil {
		return without + fmt.Sprintf("could not be tried (%v)", err)
	}
	defer dir.Close()
	beneath := func(name string) error {
		fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
	if err := beneath("."); err != nil {
		return without + fmt.Sprintf("does not work here (%v)", err)
	}
	if err := beneath(".."); err != unix.EXDEV {
		return without + fmt.Sprintf("let \"..\" through (%v)", err)
	}
	return "openat2 beneath their root"
}
