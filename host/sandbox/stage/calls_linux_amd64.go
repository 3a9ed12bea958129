package stage

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// Calls that only this architecture has and no program needs.
var archForbidden = []int{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB}
