package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An attackCase is one attempt and what becomes of it at each level: "OK", or
// the errnos of which it must fail with one. free is what becomes of it without
// a cage, where that shows that the attack is one; "" if not.
type attackCase struct {
	do                     string
	strict, landlock, free string
}

// A target is what a hostile program is after: things of the host.
type target struct {
	*world
	pid      int     // of a process of the same user
	address  uintptr // of 8 bytes in it
	tcp, udp int     // ports
	stream   string  // Unix sockets in the directory that is granted for writing
	gram     string
	abstract string
}

func newTarget(t *testing.T) *target {
	w := &target{world: newWorld(t)}
	sibling := exec.Command("/proc/self/exe")
	sibling.Env = []string{roleEnv + "=idle", "SECRET=secret"}
	if err := sibling.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sibling.Process.Kill(); _ = sibling.Wait() })
	w.pid = sibling.Process.Pid
	w.address = textAddress()

	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.tcp, w.udp = tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	w.stream, w.gram = w.write+"/stream", w.write+"/gram"
	w.abstract = "@sandbox-test-" + strconv.Itoa(os.Getpid())
	closers := []interface{ Close() error }{tcp, udp}
	for _, name := range []string{w.stream, w.abstract} {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		closers = append(closers, l)
	}
	g, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: w.gram, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	closers = append(closers, g)
	t.Cleanup(func() {
		for _, c := range closers {
			c.Close()
		}
	})
	return w
}

// textAddress is an address that is mapped in every run of this binary.
func textAddress() uintptr {
	f := privileged
	return **(**uintptr)(unsafe.Pointer(&f))
}

func (w *target) matrix() []attackCase {
	f := fmt.Sprintf
	hidden := w.secret + "/file"
	cases := []attackCase{
		{"fds", "EBADF", "EBADF", ""}, // first: some others leave descriptors open
		{f("read %s/file", w.read), "OK", "OK", "OK"},
		{f("list %s", w.read), "OK", "OK", "OK"},
		{f("read %s/file", w.write), "OK", "OK", "OK"},
		{f("write %s/made", w.write), "OK", "OK", "OK"},
		{f("remove %s/made", w.write), "OK", "OK", ""},
		{"list /proc/self", "OK", "OK", "OK"},
		{"write /dev/null", "OK", "OK", "OK"},

		{"read " + hidden, "ENOENT", "EACCES", "OK"},
		{"list " + w.secret, "ENOENT", "EACCES", "OK"},
		{"stat " + hidden, "ENOENT", "OK", "OK"}, // Landlock hides no names
		{"read /etc/passwd", "ENOENT", "EACCES", "OK"},
		{"list /", "EACCES", "EACCES", "OK"},
		{f("symread %s %s", hidden, w.write), "ENOENT", "EACCES", "OK"},
		{f("read /proc/self/root%s", hidden), "ENOENT", "EACCES", "OK"},
		{f("read %s/../secret/file", w.read), "ENOENT", "EACCES", "OK"},
		{f("write %s/new", w.secret), "ENOENT", "EACCES", ""},
		{f("write %s/new", w.read), "EROFS EACCES", "EACCES", ""},
		{f("append %s/file", w.read), "EROFS EACCES", "EACCES", "OK"},
		{f("truncate %s/file", w.read), "EROFS EACCES", "EACCES", ""},
		{f("remove %s/file", w.read), "EROFS EACCES", "EACCES", ""},
		{f("link %s/file %s/linked", w.read, w.write), "EXDEV", "EXDEV EACCES", ""},
		{f("rename %s/file %s/moved", w.read, w.write), "EXDEV EACCES", "EXDEV EACCES", ""},
		{f("rename %s/file %s/moved", w.write, w.read), "EXDEV EROFS", "EXDEV EACCES", ""},
		{"mkdir /made", "EROFS EACCES", "EACCES", ""},
		{"mkdir /run/made", "EROFS EACCES", "EACCES", ""},
		{"chmod /dev/null", "EROFS", "EPERM", ""},
		{"append /proc/sys/kernel/core_pattern", "EROFS EACCES", "EACCES", ""},
		{"append /proc/sysrq-trigger", "EROFS EACCES ENOENT", "EACCES ENOENT", ""},
		{"append /proc/self/mem", "EROFS EACCES", "EACCES", "OK"},
		{"exec /usr/bin/env", "OK ECHILD", "OK ECHILD", ""}, // granted with the loader
		{"read /dev/mem", "ENOENT", "EACCES ENOENT", ""},
		{f("call %d 0 0 0 0", unix.SYS_OPEN_BY_HANDLE_AT), "EPERM", "EPERM", ""},

		{f("read /proc/%d/environ", w.pid), "ENOENT", "EACCES EPERM", "OK"},
		{f("stat /proc/%d", w.pid), "ENOENT", "OK", "OK"}, // there is one /proc
		{f("kill %d", w.pid), "ESRCH", "EPERM", "OK"},
		{f("kill %d", os.Getpid()), "ESRCH", "EPERM", "OK"},
		{f("ptrace %d", w.pid), "EPERM", "EPERM", ""},
		{f("vmread %d %d", w.pid, w.address), "EPERM", "EPERM", ""},
		{f("getfd %d", w.pid), "ESRCH EPERM", "EPERM", ""},

		{f("tcp %d", w.tcp), "EACCES", "EACCES", "OK"},
		{f("mptcp %d", w.tcp), "EACCES", "EACCES", ""},
		{f("udp %d", w.udp), "EACCES", "EACCES", "OK"},
		{"unix " + w.stream, "EACCES", "EACCES", "OK"},
		{"unixgram " + w.gram, "EACCES", "EACCES", "OK"},
		{"unix " + w.abstract, "EACCES", "EACCES", "OK"},
		{"pairgram " + w.gram, "EACCES", "EACCES", "OK"},
		{"pairconnect " + w.stream, "EACCES", "EACCES", "EISCONN"},
		{f("setuid"), "EPERM", "EPERM", "OK"},
		{f("unshare %d", unix.CLONE_NEWUSER), "EPERM", "EPERM", ""},
		{f("unshare %d", unix.CLONE_NEWNS), "EPERM", "EPERM", ""},
		{"clone 0", "OK", "OK", "OK"},
		{f("clone %d", unix.CLONE_NEWUSER), "EPERM", "EPERM", "OK"},
		{f("clone %d", unix.CLONE_NEWNET), "EPERM", "EPERM", ""},
		{f("clone %d", unix.CLONE_NEWTIME), "EPERM EINVAL", "EPERM EINVAL", ""},
		{f("call %d 0 88", unix.SYS_CLONE3), "ENOSYS", "ENOSYS", "EFAULT"},
		{"mount " + w.write, "EPERM", "EPERM", ""},
		{"umount " + w.write, "EPERM", "EPERM", ""},
		{"pivot /tmp", "EPERM", "EPERM", ""},
		{"chroot /tmp", "EPERM", "EPERM", ""},
		{"setns /proc/self/ns/user", "EPERM", "EPERM", "EINVAL"},
		{"tiocsti", "EPERM", "EPERM", "ENOTTY"},
		{"tiocl", "EPERM", "EPERM", "ENOTTY"},
	}
	for name, s := range map[string][3]int{ // none of which exists in either
		"vsock": {unix.AF_VSOCK, unix.SOCK_STREAM, 0}, "netlink": {unix.AF_NETLINK, unix.SOCK_RAW, 0}, "packet": {unix.AF_PACKET, unix.SOCK_RAW, 0},
		"alg": {unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, "raw": {unix.AF_INET, unix.SOCK_RAW, 1}, "inet6": {unix.AF_INET6, unix.SOCK_STREAM, 0},
		"smc": {43, unix.SOCK_STREAM, 0}, "bluetooth": {unix.AF_BLUETOOTH, unix.SOCK_RAW, 0},
	} {
		_ = name
		cases = append(cases, attackCase{f("socket %d %d %d", s[0], s[1], s[2]), "EACCES", "EACCES", ""})
	}
	for _, n := range []int{unix.SYS_IO_URING_SETUP, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
		unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_SYSLOG} {
		cases = append(cases, attackCase{f("call %d 0 0", n), "EPERM", "EPERM", ""})
	}
	cases = append(cases,
		attackCase{f("call %d 0x20000", unix.SYS_PERSONALITY), "EPERM", "EPERM", ""},
		attackCase{f("call %d 0xffffffff", unix.SYS_PERSONALITY), "OK", "OK", "OK"},
		attackCase{"call 500", "ENOSYS", "ENOSYS", "ENOSYS"})
	if runtime.GOARCH == "amd64" {
		cases = append(cases, attackCase{f("call %d", 0x40000000|unix.SYS_GETPPID), "ENOSYS", "ENOSYS", ""})
	}
	return append(cases,
		attackCase{"env", "ENOENT", "ENOENT", ""},
		attackCase{"stdin", "ENODATA", "ENODATA", ""})
}

// The whole matrix of docs/security.md, with and without the stage as process 1.
func TestAttacks(t *testing.T) {
	for _, level := range levels(t) {
		for _, init := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/init=%v/uid=%d", level, init, os.Geteuid()), func(t *testing.T) {
				w := newTarget(t)
				leak(t)
				t.Setenv("SECRET", "of the host")
				cases := w.matrix()
				var list, free []string
				for _, c := range cases {
					list = append(list, c.do)
					if c.free != "" {
						free = append(free, c.do)
					}
				}
				p := program(t, list...)
				p.Init = init
				out, state := w.run(t, w.cage(level), p)
				if state.Exit != 0 {
					t.Errorf("ended with %+v", state)
				}
				got := answers(out)
				for _, c := range cases {
					want := c.strict
					if level == Landlock {
						want = c.landlock
					}
					judge(t, c.do, got[c.do], want)
				}
				if init && level == Strict { // which is not among what can be reached
					w.attackInit(t)
				}
				got = answers(uncaged(t, free...))
				for _, c := range cases {
					if c.free != "" {
						judge(t, "without a cage: "+c.do, got[c.do], c.free)
					}
				}
			})
		}
	}
}

// attackInit reaches for the stage, which stays as process 1.
func (w *target) attackInit(t *testing.T) {
	p := program(t, "append /proc/1/mem", "read /proc/1/environ", "read /proc/1/maps", "ptrace 1", fmt.Sprintf("vmread 1 %d", w.address), "getfd 1")
	p.Init = true
	out, _ := w.run(t, w.cage(Strict), p)
	got := answers(out)
	if len(got) != 6 {
		t.Errorf("got %q", out)
	}
	for do, answer := range got {
		judge(t, do, answer, "EACCES EPERM EROFS")
	}
}

func judge(t *testing.T, do, got, want string) {
	t.Helper()
	if !slices.Contains(strings.Fields(want), got) {
		t.Errorf("%s: got %s, want %s", do, got, want)
	}
}

func answers(out string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(out) {
		if do, answer, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			m[do] = answer
		}
	}
	return m
}

// leak opens a file that every child inherits, as a careless parent of the
// host may have.
func leak(t *testing.T) {
	fd, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 200)
	unix.Close(fd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(high) })
}
