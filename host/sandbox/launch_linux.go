package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/host/sandbox/stage"
	"github.com/skillhost/skill/sdk"
)

// proxyLevel is the lowest level at which a program cannot go around a proxy:
// the others have no network namespace.
const proxyLevel = Strict

// A spawner forks. All its children are those of one thread, which lives as
// long as the Launcher: a child's parent-death signal is sent when the thread
// that forked it ends, and Go ends threads as it likes.
type spawner struct {
	once   sync.Once
	shut   sync.Once
	work   chan func()
	ended  chan struct{}
	groups *groups
}

// begin starts the thread. It is never unlocked, so that no other goroutine
// ever runs on it, and it ends with its goroutine.
func (s *spawner) begin() {
	s.once.Do(func() {
		if s.groups == nil {
			s.groups = ownGroups()
		}
		s.work, s.ended = make(chan func()), make(chan struct{})
		go func() {
			runtime.LockOSThread()
			defer close(s.ended)
			for f := range s.work {
				f()
			}
		}()
	})
}

// stop ends the thread. Nothing may start any more, and no child be left.
func (s *spawner) stop() error {
	s.once.Do(func() {}) // of a Launcher that was never used
	if s.work != nil {
		s.shut.Do(func() { close(s.work) })
		<-s.ended
	}
	return nil
}

// start runs the stage and waits until it has become the program.
func (s *spawner) start(ctx context.Context, c Cage, p Program) (Process, error) {
	if os.Geteuid() == 0 && c.Level != Strict {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "level " + string(c.Level) + " as root",
			Hint: "root owns the host's files whatever Landlock says: run as an ordinary user, or at level strict"}
	}
	s.begin()
	group, err := s.groups.make(c.Limits)
	if err != nil {
		return nil, failed(sdk.Unavailable, "cgroup", err)
	}
	proc, err := s.launch(ctx, &c, &p, group)
	if err != nil {
		group.remove()
		return nil, err
	}
	return proc, nil
}

// launch does start's work, but for the group, which is not its own.
func (s *spawner) launch(ctx context.Context, c *Cage, p *Program, group *group) (*process, error) {
	spec, err := seal(specOf(c, p, group.bounds()).Encode())
	if err != nil {
		return nil, failed(sdk.Unavailable, "spec", err)
	}
	defer unix.Close(spec)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, failed(sdk.Unavailable, "open "+os.DevNull, err)
	}
	defer null.Close()
	status, child, err := pair()
	if err != nil {
		return nil, failed(sdk.Unavailable, "status socket", err)
	}
	std := func(f *os.File) uintptr {
		if f == nil {
			f = null
		}
		return f.Fd()
	}
	attr := syscall.ProcAttr{
		Env: stageEnv,
		Files: []uintptr{std(p.Stdin), std(p.Out), std(p.Err),
			stage.SpecFD: uintptr(spec), stage.StatusFD: child.Fd(), stage.ProgramFD: p.File.Fd()},
		Sys: sysProcAttr(c, group),
	}
	pid, pidfd, err := s.fork(ctx, &attr)
	runtime.KeepAlive(p) // its files are used by number
	child.Close()        // only the stage has it now: when it is closed there, we see it
	if err != nil {
		status.Close()
		return nil, err
	}
	proc := newProcess(pid, pidfd, c, p, status, group)
	err = proc.await(ctx)
	close(proc.settled)
	if err != nil {
		proc.Kill()
		<-proc.done
		return nil, err
	}
	return proc, nil
}

// fork runs the stage in a new process, from the spawner's thread.
func (s *spawner) fork(ctx context.Context, attr *syscall.ProcAttr) (pid, pidfd int, err error) {
	pidfd = -1
	attr.Sys.PidFD = &pidfd
	done := make(chan struct{})
	run := func() {
		pid, err = syscall.ForkExec("/proc/self/exe", []string{stage.Name}, attr)
		close(done)
	}
	select {
	case s.work <- run:
		<-done
	case <-ctx.Done():
		return 0, -1, ctx.Err()
	}
	switch {
	case err == nil && pidfd < 0: // Linux before 5.2
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return 0, -1, failed(sdk.Unavailable, "this kernel has no process descriptors", nil)
	case attr.Sys.Cloneflags != 0 && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS) || errors.Is(err, unix.EINVAL)):
		return 0, -1, &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "make namespaces", Err: err,
			Hint: "unprivileged user namespaces are switched off here, or all are in use"}
	case err != nil:
		return 0, -1, failed(sdk.Unavailable, "fork", err)
	}
	return pid, pidfd, nil
}

// nestedID is the user and the group that root is called in a cage with
// namespaces of its own: whoever is called 0 cannot be given to another
// namespace without a capability that no cage has.
const nestedID = 1000

// sysProcAttr says how the stage is forked. In a user namespace it has the
// capabilities that it needs, the caller's own user and group, and no other.
func sysProcAttr(c *Cage, g *group) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if c.Level == Strict {
		uid, gid := os.Geteuid(), os.Getegid()
		insideUID, insideGID := uid, gid
		if c.Nest && uid == 0 {
			insideUID = nestedID
		}
		if c.Nest && gid == 0 {
			insideGID = nestedID
		}
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: insideUID, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: insideGID, HostID: gid, Size: 1}}
		if insideUID != 0 {
			a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
		}
	}
	if g != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(g.dir.Fd())
	}
	return a
}

// pair returns a socket pair that keeps messages apart. Reads of the host's end
// wait in the runtime.
func pair() (host, child *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	err = unix.SetNonblock(fds[0], true)
	host, child = os.NewFile(uintptr(fds[0]), "status"), os.NewFile(uintptr(fds[1]), "stage")
	if err != nil {
		host.Close()
		child.Close()
	}
	return host, child, err
}

// seal returns a file in memory that holds b and can never be changed.
func seal(b []byte) (int, error) {
	fd, err := unix.MemfdCreate(stage.Name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // Linux before 6.3
		fd, err = unix.MemfdCreate(stage.Name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return -1, err
	}
	for len(b) > 0 && err == nil {
		var n int
		n, err = unix.Write(fd, b)
		b = b[max(n, 0):]
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// await reads what the stage says until it is the program.
func (p *process) await(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	for prepared := false; ; {
		m, err := receive(p.status)
		if err != nil {
			return failed(sdk.Unavailable, "stage", err)
		}
		if len(m.b) == 0 { // the socket was closed: by execve, or with a stage that died
			if prepared {
				return nil
			}
			return failed(sdk.Unavailable, "the stage ended before the program began", nil)
		}
		switch m.b[0] {
		case stage.Ready:
			_, _ = p.status.Write([]byte{stage.Go}) // a stage that has ended meanwhile has said why
		case stage.Prepared:
			prepared = true
		case stage.Started:
			return nil
		case stage.Listener:
			if p.listener, err = listener(m.take()); err != nil {
				return failed(sdk.Unavailable, "proxy listener", err)
			}
		case stage.Connects:
			p.connector = newConnector(m.take())
		case stage.Failed:
			return stageError(string(m.b[1:]))
		}
		m.close()
	}
}

// stageError is the error of a step that the stage could not do.
func stageError(s string) error {
	step, reason, _ := strings.Cut(s, "\x00")
	e := &sdk.Error{Kind: sdk.Unavailable, Op: op, What: step, Err: errors.New(reason)}
	switch {
	case strings.HasPrefix(step, "execute "), strings.HasPrefix(step, "chdir "):
		e.Kind = sdk.Invalid
	case reason == unix.ELOOP.Error():
		e.Hint = "a part of this path has become a symbolic link"
	case step == "landlock" && reason == unix.E2BIG.Error():
		e.Kind = sdk.Limit
	}
	return e
}

func listener(fd int) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), "proxy")
	if f == nil {
		return nil, unix.EBADF
	}
	defer f.Close()
	return net.FileListener(f)
}
