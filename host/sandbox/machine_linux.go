package sandbox

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// pidMaxIsPrivate reports whether each PID namespace has a kernel.pid_max of
// its own. Before Linux 6.14 there is one, and root would change the machine's.
func pidMaxIsPrivate() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	return kernelAtLeast(unix.ByteSliceToString(u.Release[:]), 6, 14)
}

func kernelAtLeast(release string, major, minor int) bool {
	a, rest, _ := strings.Cut(release, ".")
	b := rest
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		b = rest[:i]
	}
	x, err1 := strconv.Atoi(a)
	y, err2 := strconv.Atoi(b)
	return err1 == nil && err2 == nil && (x > major || x == major && y >= minor)
}

// tasksOf counts the threads of a user on the machine: outside of a user
// namespace, RLIMIT_NPROC counts them all.
func tasksOf(uid int) (n uint64) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, p := range procs {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		st, err := os.Stat("/proc/" + p.Name())
		if err != nil || st.Sys().(*syscall.Stat_t).Uid != uint32(uid) {
			continue
		}
		if tasks, err := os.Stat("/proc/" + p.Name() + "/task"); err == nil {
			n += uint64(tasks.Sys().(*syscall.Stat_t).Nlink) - 2
		}
	}
	return n
}
