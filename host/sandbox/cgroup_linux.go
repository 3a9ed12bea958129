package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// groups is a directory of the cgroup v2 tree in which a launcher makes one
// group for each cage. nil makes none.
type groups struct {
	dir    string
	limits bool // with the controllers for memory and processes
	next   atomic.Int64
}

// A group holds one cage's processes, wherever they have gone. nil is none.
type group struct {
	path   string
	dir    *os.File
	limits bool
}

// ownGroups makes a groups beneath the host's own cgroup, if that was
// delegated to it, as "systemd-run --user --scope -p Delegate=yes" does. It
// returns nil if not.
func ownGroups() *groups {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return delegated(filepath.Join("/sys/fs/cgroup", own), os.Getpid())
		}
	}
	return nil
}

// delegated returns the groups in dir, the cgroup of process pid, or nil if
// dir lacks a controller, may not be written to, or has other processes in it:
// a cgroup that has processes of its own cannot limit those of others, so the
// host moves into one beneath.
func delegated(dir string, pid int) *groups {
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil
	}
	controllers := strings.Fields(string(has))
	if !slices.Contains(controllers, "memory") || !slices.Contains(controllers, "pids") {
		return nil
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(procs)) != strconv.Itoa(pid) {
		return nil
	}
	self := filepath.Join(dir, "skill-host")
	if err := os.Mkdir(self, 0o755); err != nil && !os.IsExist(err) {
		return nil
	}
	if write(self, "cgroup.procs", strconv.Itoa(pid)) != nil || write(dir, "cgroup.subtree_control", "+memory +pids") != nil {
		_ = write(dir, "cgroup.procs", strconv.Itoa(pid))
		_ = os.Remove(self)
		return nil
	}
	return &groups{dir: dir, limits: true}
}

func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// make makes a group with limits.
func (g *groups) make(l Limits) (*group, error) {
	if g == nil {
		return nil, nil
	}
	path := filepath.Join(g.dir, "skill-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(g.next.Add(1), 10))
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	c := &group{path: path, limits: g.limits}
	var err error
	if g.limits {
		for _, v := range [][2]string{
			{"memory.max", strconv.FormatInt(l.Memory, 10)},
			{"memory.oom.group", "1"},
			{"pids.max", strconv.Itoa(l.Processes)},
		} {
			if err = write(path, v[0], v[1]); err != nil {
				break
			}
		}
		_ = write(path, "memory.swap.max", "0") // absent where there is no swap accounting
	}
	if err == nil {
		c.dir, err = os.Open(path)
	}
	if err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	return c, nil
}

// bounds reports whether the group limits memory and processes.
func (c *group) bounds() bool { return c != nil && c.limits }

// kill ends every process of the group.
func (c *group) kill() {
	if c != nil {
		_ = write(c.path, "cgroup.kill", "1")
	}
}

// remove removes the group and reports whether it ran out of memory. Processes
// that were killed are gone shortly.
func (c *group) remove() (oom bool) {
	if c == nil {
		return false
	}
	c.dir.Close()
	if b, err := os.ReadFile(filepath.Join(c.path, "memory.events")); err == nil {
		for line := range strings.Lines(string(b)) {
			n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill ")
			oom = oom || ok && n != "0"
		}
	}
	for range 100 {
		if err := unix.Rmdir(c.path); err != unix.EBUSY {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return oom
}
