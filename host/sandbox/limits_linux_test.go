package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLimits(t *testing.T) {
	if raced {
		t.Skip("LEFT OUT: memory limits of a program with a race detector")
	}
	for _, level := range levels(t) {
		for _, init := range []bool{false, true} {
			for _, tt := range []struct {
				name   string
				limits Limits
				do     string
				ok     bool   // the program lives and succeeds
				want   string // else its answer, if it lives
			}{
				{"a Go program at the default", Limits{}, "memory 32", true, ""},
				{"as much as the default", Limits{}, "memory 100", true, ""},
				{"more than the default", Limits{}, "memory 300", false, ""},
				{"more when allowed", Limits{Memory: 1 << 30}, "memory 300", true, ""},
				{"file within", Limits{FileSize: 4 << 20}, "fill WRITE/f 4", true, ""},
				{"file too large", Limits{FileSize: 4 << 20}, "fill WRITE/f 16", false, "EFBIG"},
				{"files within", Limits{Files: 64}, "files 20", true, ""},
				{"too many files", Limits{Files: 64}, "files 100", false, "EMFILE"},
				{"shared memory", Limits{Memory: 1 << 30}, "fill /dev/shm/f 200", false, "ENOSPC"},
				{"private tmp", Limits{Memory: 1 << 30}, "fill /tmp/f 200", false, "ENOSPC"},
			} {
				if level != Strict && strings.Contains(tt.want, "ENOSPC") {
					continue // there are the host's
				}
				t.Run(fmt.Sprintf("%s/%s/init=%v", level, tt.name, init), func(t *testing.T) {
					w := newWorld(t)
					c := w.cage(level)
					c.Limits = tt.limits
					do := strings.ReplaceAll(tt.do, "WRITE", w.write)
					p := program(t, do)
					p.Init = init
					out, s := w.run(t, c, p)
					got := answers(out)[do]
					if tt.ok != (got == "OK") || tt.want != "" && got != tt.want {
						t.Errorf("got %q, %+v\n%.500s", got, s, out)
					}
				})
			}
		}
	}
}

func TestForkBomb(t *testing.T) {
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			w := newWorld(t)
			c := w.cage(level)
			c.Limits.Processes = 48
			p := program(t, "forkbomb")
			p.Init = true
			out, _ := w.run(t, c, p)
			_, n, _ := strings.Cut(out, "processes: ")
			n, _, _ = strings.Cut(n, "\n")
			started, err := strconv.Atoi(n)
			most := 48
			if os.Geteuid() == 0 { // whom RLIMIT_NPROC does not bind
				if most = minPidMax; !pidMaxIsPrivate() {
					t.Skip("LEFT OUT: root's processes are not bounded by this kernel")
				}
			}
			if err != nil || started == 0 || started > most {
				t.Errorf("%d processes were started, want at most %d\n%.500s", started, most, out)
			}
			t.Logf("%d processes under a limit of %d tasks", started, c.Limits.Processes)
		})
	}
}

func TestKernelAtLeast(t *testing.T) {
	for release, want := range map[string]bool{
		"6.14": true, "6.14.0-rc1": true, "6.18.44-fc": true, "7.0": true, "10.1.2": true, "6.13.9": false, "5.15.0-100-generic": false, "": false, "x.y": false, "6": false,
	} {
		if got := kernelAtLeast(release, 6, 14); got != want {
			t.Errorf("%q: got %v", release, got)
		}
	}
}

// delegated makes use of a cgroup only if that is the host's alone.
func TestDelegated(t *testing.T) {
	const pid = 4711
	for name, tt := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"delegated":     {map[string]string{"cgroup.controllers": "cpu memory pids\n", "cgroup.procs": "4711\n", "cgroup.subtree_control": ""}, true},
		"no memory":     {map[string]string{"cgroup.controllers": "cpu pids\n", "cgroup.procs": "4711\n", "cgroup.subtree_control": ""}, false},
		"no controller": {map[string]string{"cgroup.controllers": "\n", "cgroup.procs": "4711\n", "cgroup.subtree_control": ""}, false},
		"shared":        {map[string]string{"cgroup.controllers": "memory pids\n", "cgroup.procs": "1\n4711\n", "cgroup.subtree_control": ""}, false},
		"version 1":     {map[string]string{"tasks": "4711\n"}, false},
		"no control":    {map[string]string{"cgroup.controllers": "memory pids\n", "cgroup.procs": "4711\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for f, b := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, f), []byte(b), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			// The kernel makes the files of a cgroup that is made.
			if err := os.Mkdir(dir+"/skill-host", 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+"/skill-host/cgroup.procs", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			g := delegated(dir, pid)
			if (g != nil) != tt.want {
				t.Fatalf("got %+v", g)
			}
			if g == nil {
				return
			}
			for f, want := range map[string]string{"cgroup.subtree_control": "+memory +pids", "skill-host/cgroup.procs": "4711"} {
				if b, _ := os.ReadFile(filepath.Join(dir, f)); string(b) != want {
					t.Errorf("%s is %q", f, b)
				}
			}
		})
	}
}

// A real cgroup holds all of a cage, here without a PID namespace's help.
func TestGroup(t *testing.T) {
	root := "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.procs"); err != nil {
		root += "/unified"
	}
	dir := filepath.Join(root, "skill-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("LEFT OUT: no cgroup v2 that may be written to: %v", err)
	}
	defer os.Remove(dir)
	w := newWorld(t)
	w.groups = &groups{dir: dir}
	c := w.cage(levels(t)[0])
	p := program(t, "orphans 2", "sleep 60000")
	p.Init = true
	proc, err := w.Start(t.Context(), c, p)
	if err != nil {
		t.Fatal(err)
	}
	children, err := filepath.Glob(dir + "/skill-*/cgroup.procs")
	if err != nil || len(children) != 1 {
		t.Fatalf("groups: %q, %v", children, err)
	}
	within(t, "all processes to be in the group", func() bool {
		b, _ := os.ReadFile(children[0])
		return len(strings.Fields(string(b))) == 4 // the stage, the program and two
	})
	proc.(*process).group.kill() // and nothing else
	if s, _ := proc.Wait(); s.Signal != "SIGKILL" {
		t.Errorf("ended with %+v", s)
	}
	if err := unix.Access(filepath.Dir(children[0]), unix.F_OK); err != unix.ENOENT {
		t.Errorf("the group is still there: %v", err)
	}
}
