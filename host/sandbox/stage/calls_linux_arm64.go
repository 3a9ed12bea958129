package stage

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

// Calls that only this architecture has and no program needs.
var archForbidden []int
