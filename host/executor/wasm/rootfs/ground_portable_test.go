//go:build !(linux || darwin) || rootfs_portable

package rootfs

import "errors"

const portable, isDarwin = true, false

// whereIs is not known here.
func whereIs(*file) (string, error) { return "", errors.ErrUnsupported }
