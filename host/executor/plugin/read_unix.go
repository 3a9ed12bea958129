//go:build unix

package plugin

import "syscall"

// readFD reads from a descriptor that does not block.
func readFD(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }
