//go:build (linux || darwin) && !rootfs_portable

package rootfs

import (
	"os"
	"runtime"
	"strconv"
)

const (
	portable = false
	isDarwin = runtime.GOOS == "darwin"
)

// whereIs returns the path of an open file as the kernel knows it.
func whereIs(x *file) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(int(x.h)))
}
