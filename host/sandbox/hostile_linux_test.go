package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hostile carries out attacks, each given as one argument "NAME ARG ARG…", and
// prints how each one went: "OK" if it did what it must not, else an errno.
func hostile(list []string) int {
	for _, a := range list {
		words := strings.Split(a, " ")
		f, ok := attacks[words[0]]
		if !ok {
			fmt.Printf("%s: no such attack\n", a)
			return 2
		}
		fmt.Printf("%s: %s\n", a, reason(f(words[1:])))
	}
	return 0
}

type attackFunc = func(args []string) error

var attacks map[string]attackFunc

func init() {
	attacks = map[string]attackFunc{
		"read":  func(a []string) error { _, err := os.ReadFile(a[0]); return err },
		"list":  func(a []string) error { _, err := os.ReadDir(a[0]); return err },
		"stat":  func(a []string) error { _, err := os.Lstat(a[0]); return err },
		"write": func(a []string) error { return os.WriteFile(a[0], []byte("x"), 0o600) },
		"append": func(a []string) error {
			fd, err := unix.Open(a[0], unix.O_WRONLY, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		},
		"truncate": func(a []string) error { return os.Truncate(a[0], 0) },
		"mkdir":    func(a []string) error { return unix.Mkdir(a[0], 0o700) },
		"remove":   func(a []string) error { return unix.Unlink(a[0]) },
		"rename":   func(a []string) error { return unix.Rename(a[0], a[1]) },
		"link":     func(a []string) error { return unix.Link(a[0], a[1]) },
		"chmod":    func(a []string) error { return unix.Chmod(a[0], 0o777) },
		"symread":  symread,
		"exec":     func(a []string) error { return run(a[0], "-c", "true") },
		"kill":     func(a []string) error { return unix.Kill(number(a[0]), unix.Signal(0)) },
		"ptrace":   func(a []string) error { return unix.PtraceSeize(number(a[0])) },
		"vmread":   vmread,
		"getfd":    getfd,
		"tcp":      func(a []string) error { return dialTCP(a[0], 0) },
		"mptcp":    func(a []string) error { return dialTCP(a[0], 262) },
		"udp":      func(a []string) error { return dialUDP(a[0]) },
		"unix":     func(a []string) error { return dialUnix(unix.SOCK_STREAM, a[0]) },
		"unixgram": func(a []string) error { return dialUnix(unix.SOCK_DGRAM, a[0]) },
		"pairgram": pairgram,
		"pairconnect": func(a []string) error {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			unix.Close(fds[1])
			return unix.Connect(fds[0], &unix.SockaddrUnix{Name: a[0]})
		},
		"tcpblocking": blockingTCP,
		"tcpfamily": func(a []string) error { // the address of another family
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Connect(fd, &unix.SockaddrUnix{Name: "/0123456789012345678901234"})
		},
		"unixshort":  unixShort,
		"unixrace":   unixRace,
		"sendstream": sendStream,
		"socket":     func(a []string) error { return socket(number(a[0]), number(a[1]), number(a[2])) },
		"unshare":    func(a []string) error { return unix.Unshare(number(a[0])) },
		"clone":      clone,
		"mount":      func(a []string) error { return unix.Mount("none", a[0], "tmpfs", 0, "") },
		"umount":     func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) },
		"pivot":      func(a []string) error { return unix.PivotRoot(a[0], a[0]) },
		"chroot":     func(a []string) error { return unix.Chroot(a[0]) },
		"setns": func(a []string) error {
			fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return unix.Setns(fd, 0)
		},
		"tiocsti": func([]string) error { return ioctlTTY(unix.TIOCSTI) },
		"tiocl":   func([]string) error { return ioctlTTY(0x541c) },
		"call": func(a []string) error { // a system call with small arguments
			var n [6]uintptr
			for i, s := range a[1:] {
				n[i] = uintptr(number(s))
			}
			return call(uintptr(number(a[0])), n)
		},
		"setuid": func(a []string) error { return privileged() },
		"fds":    openFDs,
		"env":    environment,
		"stdin":  stdin,
		"files": func(a []string) error {
			var err error
			for range number(a[0]) {
				if _, err = unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
					return err
				}
			}
			return nil
		},
		"forkbomb": forkBomb,
		"memory":   memoryBomb,
		"fill":     fill,
		"orphans":  orphans,
		"children": func(a []string) error { return spawn(number(a[0]), false) },
		"sleep":    func(a []string) error { time.Sleep(time.Duration(number(a[0])) * time.Millisecond); return nil },
		"exit":     func(a []string) error { os.Exit(number(a[0])); return nil },
		"serve":    serve,
		"term":     term,
	}
}

func number(s string) int {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return int(n)
}

func call(nr uintptr, a [6]uintptr) error {
	_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	return nil
}

func run(name string, args ...string) error {
	p, err := os.StartProcess(name, append([]string{name}, args...), &os.ProcAttr{})
	if err != nil {
		return err
	}
	s, err := p.Wait()
	if err == nil && !s.Success() {
		return unix.ECHILD
	}
	return err
}

// symread makes a link in a writable directory and reads through it.
func symread(a []string) error {
	link := a[1] + "/link-" + strconv.Itoa(os.Getpid())
	if err := os.Symlink(a[0], link); err != nil {
		return nil // then it cannot be told: count it as a success
	}
	defer os.Remove(link)
	_, err := os.ReadFile(link)
	return err
}

func vmread(a []string) error {
	b := make([]byte, 8)
	local := []unix.Iovec{{Base: &b[0], Len: 8}}
	_, err := unix.ProcessVMReadv(number(a[0]), local, []unix.RemoteIovec{{Base: uintptr(number(a[1])), Len: 8}}, 0)
	return err
}

func getfd(a []string) error {
	p, err := unix.PidfdOpen(number(a[0]), 0)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdGetfd(p, 0, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func clone(a []string) error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(number(a[0]))|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

// ioctlTTY reaches for a terminal: what the call says does not depend on
// whether there is one.
func ioctlTTY(request uint) error {
	b := byte('x')
	return call(unix.SYS_IOCTL, [6]uintptr{0, uintptr(request), uintptr(unsafe.Pointer(&b))})
}

// privileged reports whether the program could ever gain privileges: by a
// setuid file or by a capability that it has.
func privileged() error {
	n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil || n != 1 {
		return nil
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if name, v, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Cap") && name != "CapBnd" && strings.Trim(v, " \t\n0") != "" {
			return nil
		}
	}
	return unix.EPERM
}

// openFDs succeeds if a descriptor is open that nobody gave.
func openFDs([]string) error {
	for fd := 3; fd < 300; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue
		}
		name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if !strings.Contains(name, "anon_inode") && !strings.Contains(name, "/sys/") && !strings.HasPrefix(name, "/sys") { // the Go runtime's own
			return errors.New("open: " + name)
		}
	}
	return unix.EBADF
}

func environment([]string) error {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, roleEnv) && !strings.HasPrefix(v, "GOMAXPROCS") && !strings.HasPrefix(v, "GORACE") {
			return errors.New("inherited: " + v)
		}
	}
	return unix.ENOENT
}

func stdin([]string) error {
	b := make([]byte, 1)
	n, _ := unix.Read(0, b)
	if n > 0 {
		return errors.New("read from the host's input")
	}
	return unix.ENODATA
}

// forkBomb starts processes until it cannot, and prints how many there were.
func forkBomb([]string) error {
	var pids []int
	defer func() {
		fmt.Println("processes:", len(pids))
		for _, p := range pids {
			_ = unix.Kill(p, unix.SIGKILL)
		}
	}()
	for len(pids) < 2000 {
		pid, err := syscall.ForkExec("/proc/self/exe", []string{"hostile", "sleep 5000"}, &syscall.ProcAttr{Env: append(os.Environ(), "GOMAXPROCS=1")})
		if err != nil {
			return err
		}
		pids = append(pids, pid)
	}
	return nil
}

func memoryBomb(a []string) error {
	b := make([]byte, number(a[0])<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	runtime.KeepAlive(b)
	return nil
}

func fill(a []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	f, err := os.Create(a[0])
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1<<20)
	for range number(a[1]) {
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// orphans leaves processes behind, each in a session of its own.
func orphans(a []string) error { return spawn(number(a[0]), true) }

func spawn(n int, session bool) error {
	for range n {
		_, err := syscall.ForkExec("/proc/self/exe", []string{"hostile", "sleep 60000"},
			&syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: session}})
		if err != nil {
			return err
		}
	}
	return nil
}

// term waits for SIGTERM.
func term([]string) error {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTERM)
	fmt.Println("waiting")
	select {
	case <-ch:
		return unix.EINTR
	case <-time.After(5 * time.Second):
		return nil
	}
}
