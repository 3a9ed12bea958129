package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// MinLandlock is the lowest Landlock ABI that is enough: the first that keeps
// signals and abstract Unix sockets within the cage (Linux 6.12).
const MinLandlock = 6

// maxRulesets is how many rule sets the kernel stacks.
const maxRulesets = 16

// What the rights of a view are to Landlock. Every file system right of ABI 9
// is in one of them, but REFER, which Landlock denies unless it is granted.
const (
	fsRead   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fsExec   = unix.LANDLOCK_ACCESS_FS_EXECUTE
	fsSocket = unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	fsWrite  = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	fsRefer = unix.LANDLOCK_ACCESS_FS_REFER

	// What a rule on a file, not a directory, may grant.
	fsFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
)

// Later than ABI 6: not to be asked of a kernel that does not know it.
const fsResolveUnixABI = 9

func accesses(r uint8) (a uint64) {
	for _, m := range [...]struct {
		right  uint8
		access uint64
	}{{Read, fsRead}, {Write, fsWrite | fsRefer}, {Exec, fsExec}, {Socket, fsSocket}} {
		if r&m.right != 0 {
			a |= m.access
		}
	}
	return a
}

// LandlockABI returns the version of Landlock that the kernel offers; 0 is none.
func LandlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// rulesetAttr is struct landlock_ruleset_attr of ABI 6.
type rulesetAttr struct{ fs, net, scoped uint64 }

// pathAttr is struct landlock_path_beneath_attr, which C packs to 12 bytes.
type pathAttr struct {
	allowed uint64
	parent  int32
}

// ruleset returns the ith rule set that s comes to. There is at least one,
// which may handle no files at all: what is not about files is in each.
func ruleset(s *Spec, i int) Ruleset {
	if len(s.Rulesets) == 0 {
		return Ruleset{Name: "host"}
	}
	return s.Rulesets[i]
}

// landlock makes the rule sets of s, one per layer. Stacked, the kernel
// intersects them.
func landlock(s *Spec) ([]int, *fault) {
	abi := LandlockABI()
	if abi < MinLandlock {
		return nil, at(unix.ENOSYS, "landlock")
	}
	n := max(1, len(s.Rulesets))
	if n > maxRulesets {
		return nil, at(unix.E2BIG, "landlock")
	}
	sets := make([]int, n)
	for i := range sets {
		fd, f := newRuleset(s, ruleset(s, i), abi)
		if f != nil {
			return nil, f
		}
		sets[i] = fd
	}
	return sets, nil
}

func newRuleset(s *Spec, set Ruleset, abi int) (int, *fault) {
	attr := rulesetAttr{fs: accesses(set.Handles), scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	if attr.fs != 0 {
		attr.fs |= fsRefer
	}
	if abi < fsResolveUnixABI {
		attr.fs &^= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	if !s.has(Proxy) { // with it, all there is to connect to is the cage's own loopback
		attr.net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, at(errno, "landlock "+set.Name)
	}
	fd := int(r)
	for _, rule := range set.Rules {
		if err := addPath(fd, rule, attr.fs); err != nil {
			return -1, at(err, "landlock "+set.Name+" "+rule.Path)
		}
	}
	return fd, at(addOwn(fd, s, set, attr.fs), "landlock "+set.Name)
}

// addOwn adds what every rule set has: the program, the directory for its
// sockets, the processes of who may make namespaces, and moving files between directories if the set says nothing of
// writing, because Landlock alone does not abstain from that.
func addOwn(set int, s *Spec, said Ruleset, handled uint64) error {
	if handled == 0 {
		return nil
	}
	err := add(set, ProgramFD, accesses(Read|Exec)&handled)
	if err != nil && err != unix.EBADFD { // a file in memory, which Landlock has no rules for
		return err
	}
	if s.Serves != "" {
		rule := Rule{Path: s.Serves, Rights: Read | Write | Socket}
		if err := addPath(set, rule, handled); err != nil {
			return err
		}
	}
	if s.has(Nest) {
		if err := addPath(set, Rule{Path: "/proc", Rights: Read | Write}, handled); err != nil {
			return err
		}
	}
	if said.Handles&Write != 0 {
		return nil
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	return add(set, root, fsRefer)
}

// addPath adds a rule for what is at a path, no part of which may be a link.
func addPath(set int, r Rule, handled uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, r.Path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err == unix.ENOENT && r.Maybe {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return add(set, fd, accesses(r.Rights)&handled)
}

func add(set, fd int, allowed uint64) error {
	dir, err := isDir(fd)
	if err != nil {
		return err
	}
	if !dir {
		allowed &= fsFile
	}
	if allowed == 0 { // which Landlock calls an error
		return nil
	}
	attr := pathAttr{allowed: allowed, parent: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// restrict puts the calling thread under the rule set and closes it.
func restrict(set int) error {
	var flags uintptr
	if LandlockABI() >= 7 {
		flags = unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON // the program's denials are worth a record
	}
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), flags, 0)
	unix.Close(set)
	if errno != 0 {
		return errno
	}
	return nil
}
