//go:build !linux

package host

import "runtime"

// files says what keeps an opened file beneath its root.
func files() string {
	if runtime.GOOS == "darwin" {
		return "single steps without links"
	}
	return "os.Root"
}
