package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/host/sandbox/view"
	"github.com/skillhost/skill/sdk"
)

func init() {
	attacks["nested"] = nested
	attacks["sockopt"] = func(a []string) error { return sockopt(unix.SYS_SETSOCKOPT, number(a[0]), number(a[1])) }
	attacks["getsockopt"] = func(a []string) error { return sockopt(unix.SYS_GETSOCKOPT, number(a[0]), number(a[1])) }
	attacks["ifup"] = func([]string) error { // of the loopback, which a new network has switched off
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		ifr, err := unix.NewIfreq("lo")
		if err != nil {
			return err
		}
		ifr.SetUint16(unix.IFF_UP)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
	}
	attacks["chrootread"] = chrootRead
}

// outcome is an errno by its name, as a nested program has printed it.
type outcome string

func (o outcome) Error() string { return string(o) }

// nested carries out an attack as user 0 of user, PID and network namespaces of
// its own, with every capability that there is in them.
func nested(a []string) error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"hostile", strings.Join(a, " ")}
	cmd.Env = os.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("no namespaces: %w", err)
	}
	if said := strings.TrimSpace(string(out[strings.LastIndexByte(string(out), ' ')+1:])); said != "OK" {
		return outcome(said)
	}
	return nil
}

// sockopt sets or asks an option of a TCP socket.
func sockopt(call uintptr, level, option int) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var buf [256]byte
	size := uint32(len(buf))
	last := uintptr(size)
	if call == unix.SYS_GETSOCKOPT {
		last = uintptr(unsafe.Pointer(&size))
	}
	_, _, errno := unix.Syscall6(call, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&buf[0])), last, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// chrootRead leaves a root that it has made itself, by a descriptor of the one
// before, and goes up from there.
func chrootRead(a []string) error {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		fd, err = unix.Open("/tmp", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll("/tmp/jail", 0o700); err != nil {
		return err
	}
	if err := unix.Chroot("/tmp/jail"); err != nil {
		return err
	}
	if err := unix.Fchdir(fd); err != nil {
		return err
	}
	for range 64 {
		if err := unix.Chdir(".."); err != nil {
			return err
		}
	}
	_, err = os.ReadFile(strings.TrimPrefix(a[0], "/"))
	return err
}

// nestCage is a cage whose programs may make namespaces.
func (w *world) nestCage() Cage {
	c := w.cage(Strict)
	c.Nest, c.Network, c.Serves = true, Proxy, w.write
	c.View.Rulesets[0].Rules = append(c.View.Rulesets[0].Rules, view.Rule{Path: "/", Rights: view.Exec})
	return c
}

// TestNest: who may make namespaces has all power in them, and none over what
// is outside of them.
func TestNest(t *testing.T) {
	need(t, Strict)
	w := newTarget(t)
	f := fmt.Sprintf
	hidden := w.secret + "/file"
	for _, tt := range []struct{ do, want string }{
		// What the sandbox of a browser needs.
		{f("unshare %d", unix.CLONE_NEWUSER), "EINVAL"}, // by the kernel, as the program has several threads: the filter says EPERM
		{"nested read /proc/self/status", "OK"},
		{"nested chroot /proc/self/fdinfo", "OK"},
		{"nested read " + w.read + "/file", "OK"},
		// What it does not.
		{f("unshare %d", unix.CLONE_NEWNS), "EPERM"},
		{f("unshare %d", unix.CLONE_NEWUSER|unix.CLONE_NEWNS), "EPERM"},
		{f("unshare %d", unix.CLONE_NEWNET), "EPERM"},
		{f("clone %d", unix.CLONE_NEWUSER|unix.CLONE_NEWNS), "EPERM"},
		{f("clone %d", unix.CLONE_NEWUSER|unix.CLONE_NEWCGROUP), "EPERM"},
		{f("clone %d", unix.CLONE_NEWIPC), "EPERM"},
		{"chroot /tmp", "EPERM"}, // without a namespace, for want of the capability
		{f("nested unshare %d", unix.CLONE_NEWNS), "EPERM"},
		{f("nested unshare %d", unix.CLONE_NEWUSER|unix.CLONE_NEWNS), "EPERM"},
		{"nested mount /tmp", "EPERM"},
		{"nested umount /proc", "EPERM"},
		{"nested pivot /tmp", "EPERM"},
		{"nested setns /proc/1/ns/net", "EPERM ENOENT EACCES"},
		// The network's configuration, which is a part of the kernel with a history.
		{f("nested socket %d %d 0", unix.AF_NETLINK, unix.SOCK_RAW), "EACCES"},
		{f("nested socket %d %d 0", unix.AF_PACKET, unix.SOCK_RAW), "EACCES"},
		{f("nested socket %d %d 1", unix.AF_INET, unix.SOCK_RAW), "EACCES"},
		{"nested ifup", "EPERM"},
		{f("nested sockopt %d 64", unix.SOL_IP), "EPERM"},
		{f("nested sockopt %d 96", unix.SOL_IP), "EPERM"},
		{f("nested sockopt %d 128", unix.SOL_IP), "EPERM"},
		{f("nested sockopt %d 64", unix.SOL_IPV6), "EPERM"},
		{f("nested sockopt %d 65", unix.SOL_IPV6), "EPERM"},
		{f("nested getsockopt %d 64", unix.SOL_IP), "EPERM"},
		{f("nested getsockopt %d 68", unix.SOL_IPV6), "EPERM"},
		{f("nested sockopt %d %d", unix.SOL_TCP, unix.TCP_REPAIR), "EPERM"},
		{f("nested getsockopt %d %d", unix.SOL_IPV6, unix.IPV6_TCLASS), "OK"},
		{f("nested getsockopt %d %d", unix.SOL_SOCKET, unix.SO_TYPE), "OK"},
		// Other doors of the kernel, for who has capabilities.
		{f("nested call %d 0 0", unix.SYS_BPF), "EPERM"},
		{f("nested call %d 0 0", unix.SYS_KEYCTL), "EPERM"},
		{f("nested call %d 0 0", unix.SYS_USERFAULTFD), "EPERM"},
		{f("nested call %d 0 0", unix.SYS_CLONE3), "ENOSYS"},
		// The host.
		{"nested read " + hidden, "ENOENT"},
		{"nested chrootread " + hidden, "ENOENT EACCES"},
		{"nested write " + w.read + "/file", "EROFS EACCES"},
		{"nested mkdir /planted", "EROFS EACCES"},
		{f("nested kill %d", w.pid), "ESRCH EPERM"},
		{f("nested ptrace %d", w.pid), "EPERM"},
		{f("nested tcp %d", w.tcp), "ENETUNREACH ECONNREFUSED EACCES"},
		{"nested unix " + w.stream, "EACCES"},
		{"nested unix " + w.abstract, "EACCES"},
		{"write /proc/sys/kernel/core_pattern", "ENOENT EACCES"},
		{"write /proc/sysrq-trigger", "ENOENT EACCES"},
		{"read /proc/kcore", "ENOENT"},
		{"read /proc/cpuinfo", "ENOENT"},
		{"nested write /proc/sys/kernel/core_pattern", "ENOENT EACCES"},
		{f("stat /proc/%d", w.pid), "ENOENT"},
	} {
		t.Run(tt.do, func(t *testing.T) {
			out, s := w.run(t, w.nestCage(), program(t, tt.do))
			got := strings.TrimSpace(strings.TrimPrefix(out, tt.do+": "))
			got = strings.Trim(got, `"`)
			if !strings.Contains(" "+tt.want+" ", " "+got+" ") || s.Exit != 0 {
				t.Errorf("%q (%+v), want %s", out, s, tt.want)
			}
		})
	}
}

// TestNestRefused: namespaces are for level strict, whoever asks.
func TestNestRefused(t *testing.T) {
	w := newWorld(t)
	for _, level := range []Level{Landlock, None} {
		c := w.cage(level)
		c.Nest = true
		if _, err := w.Start(t.Context(), c, program(t, "read /")); sdk.KindOf(err) != sdk.Unavailable {
			t.Errorf("%s: %v", level, err)
		}
	}
}
