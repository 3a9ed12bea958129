package shell

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func lockThread()   { runtime.LockOSThread() }
func unlockThread() { runtime.UnlockOSThread() }

// ownSession keeps a command from our terminal, if we have one, and from our
// signals. It ends with us.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// caged reports whether this process is the first of a pid namespace that the
// host made for it: then everything else in there was started by it.
func caged() bool { return os.Getpid() == 1 && os.Getppid() == 0 }

// begin counts a command. With the first one, this process adopts what its
// descendants leave behind, and waits for it when it ends.
func (s *shell) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs++; s.runs > 1 {
		return
	}
	if s.roots == nil {
		s.roots = map[int]bool{}
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // pid 1 is one anyway
	s.stray = reaper{make(chan struct{}), make(chan struct{})}
	go s.reapStrays(s.stray)
}

func (s *shell) end() {
	s.mu.Lock()
	s.runs--
	last, r := s.runs == 0, s.stray
	s.mu.Unlock()
	if last {
		close(r.stop)
		<-r.done
	}
}

// reapStrays is the reaper r. Who ends and is not waited for counts against the
// limit of processes.
func (s *shell) reapStrays(r reaper) {
	defer close(r.done)
	child := make(chan os.Signal, 1)
	signal.Notify(child, syscall.SIGCHLD)
	defer signal.Stop(child)
	for {
		select {
		case <-r.stop:
			return
		case <-child:
		}
		select { // most often it was the shell, and a server may have many children
		case <-r.stop:
			return
		case <-time.After(50 * time.Millisecond):
			s.reap()
		}
	}
}

// reap waits for the adopted processes that have ended, and for none that was
// started here.
func (s *shell) reap() {
	s.mu.Lock() // so that no process is started and not yet in roots
	defer s.mu.Unlock()
	for _, p := range processes() {
		if p.parent == os.Getpid() && p.ended && !s.roots[p.pid] {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// start starts p.
func (s *shell) start(p *process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := p.cmd.Start()
	if err == nil {
		s.roots[p.cmd.Process.Pid] = true
	}
	return err
}

// waited says that p was waited for: its pid may be another's now.
func (s *shell) waited(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.roots, p.cmd.Process.Pid)
}

// only reports whether one command is being run: then whatever this process
// has adopted is that command's.
func (s *shell) only() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs == 1
}

// alone reports whether nothing is left of the command. The shell itself has
// ended.
func (p *process) alone() bool {
	// Without children there are no descendants: they would be ours by now.
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); errors.Is(err, unix.ECHILD) {
		return true
	}
	p.shell.reap()
	return len(p.members()) == 0
}

// signalAll sends sig to everything that the command has started.
func (p *process) signalAll(sig syscall.Signal) {
	if caged() && p.shell.only() {
		_ = syscall.Kill(-1, sig) // all but us
		return
	}
	for _, m := range p.members() {
		m.signal(sig)
	}
}

// killAll ends everything that the command has started, and waits until it is
// gone.
func (p *process) killAll() {
	for end := time.Now().Add(2 * time.Second); !p.alone() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		p.signalAll(syscall.SIGKILL) // again: it may have forked meanwhile
	}
}

// A task is a process as /proc shows it.
type task struct {
	pid, parent, group, session int
	ended                       bool
	start                       string // what tells it from another with the same pid
}

// processes lists those that are visible.
func processes() []task {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	all := make([]task, 0, len(stats))
	for _, name := range stats {
		if t, ok := readTask(name); ok {
			all = append(all, t)
		}
	}
	return all
}

// readTask reads a /proc/PID/stat (proc_pid_stat(5)).
func readTask(name string) (t task, ok bool) {
	b, err := os.ReadFile(name)
	if err != nil {
		return t, false
	}
	pid, rest, _ := bytes.Cut(b, []byte(" "))
	f := bytes.Fields(rest[bytes.LastIndexByte(rest, ')')+1:]) // the name may hold anything
	if len(f) < 20 {
		return t, false
	}
	number := func(b []byte) int { n, _ := strconv.Atoi(string(b)); return n }
	return task{number(pid), number(f[1]), number(f[2]), number(f[3]), f[0][0] == 'Z' || f[0][0] == 'X', string(f[19])}, true
}

// members lists what runs of the command: its session, its descendants, and,
// if no other command is being run, all that this process has adopted. Never
// anything that is not a descendant of this process.
func (p *process) members() []task {
	all := processes()
	parents := make(map[int]int, len(all))
	for _, t := range all {
		parents[t.pid] = t.parent
	}
	self, root, only := os.Getpid(), p.cmd.Process.Pid, p.shell.only()
	return slices.DeleteFunc(all, func(t task) bool {
		if t.ended {
			return true
		}
		ours, theirs := false, t.session == root || t.group == root
		for pid, depth := t.pid, 0; pid != 0 && depth < len(all); pid, depth = parents[pid], depth+1 {
			theirs = theirs || pid == root
			if parents[pid] == self {
				ours = true
				break
			}
		}
		return !ours || !theirs && !only
	})
}

// signal sends sig to t, and to no process that has got its pid since.
func (t task) signal(sig syscall.Signal) {
	fd, err := unix.PidfdOpen(t.pid, 0)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			return
		}
		fd = -1 // an old kernel
	} else {
		defer unix.Close(fd)
	}
	if now, ok := readTask("/proc/" + strconv.Itoa(t.pid) + "/stat"); !ok || now.start != t.start {
		return
	}
	if fd < 0 || unix.PidfdSendSignal(fd, sig, nil, 0) != nil {
		_ = syscall.Kill(t.pid, sig)
	}
}
