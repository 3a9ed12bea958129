package load

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory returns a value of a process's memory in bytes, such as VmRSS. Where
// there is no /proc it is 0.
func Memory(pid int, key string) (int64, error) {
	v, err := status(pid, key)
	return v << 10, err
}

// Threads returns how many threads a process has; 0 where there is no /proc.
func Threads(pid int) (int64, error) { return status(pid, "Threads") }

func status(pid int, key string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, nil // not Linux: not measured
	}
	for l := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(l, key+":"); ok {
			return strconv.ParseInt(strings.Fields(v)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s of process %d", key, pid)
}

// Descriptors returns how many files a process has open; 0 where there is no
// /proc.
func Descriptors(pid int) int64 {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0
	}
	return int64(len(all))
}

// CPU returns what a process has used, in user and kernel mode; 0 where there
// is no /proc. The kernel counts exactly and tells hundredths of a second.
func CPU(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // from the state, field 3, on
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
