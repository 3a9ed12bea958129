//go:build !unix

package plugin

import "errors"

// readFD refuses: no plugin runs here.
func readFD(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
