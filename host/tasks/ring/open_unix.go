//go:build unix

package ring

import "syscall"

// noFollow makes opening a symbolic link fail, and a pipe not wait.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
