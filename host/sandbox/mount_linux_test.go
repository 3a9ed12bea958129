package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/host/sandbox/view"
	"github.com/skillhost/skill/sdk"
)

// allFiles is a rule set that restricts nothing, so that what holds is the mount.
func allFiles() []view.Ruleset {
	all := view.Read | view.Write | view.Exec | view.Socket
	return []view.Ruleset{{Name: "all", Handles: all, Rules: []view.Rule{{Path: "/", Rights: all}}}}
}

func make3(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		var err error
		if strings.HasSuffix(n, "/") {
			err = os.MkdirAll(n, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(n), 0o755); err == nil {
			err = os.WriteFile(n, []byte("host"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMounts(t *testing.T) {
	level := need(t, Strict)
	type answer struct{ do, want string }
	for _, tt := range []struct {
		name   string
		make   []string // in the writable directory W
		mounts []view.Mount
		links  []view.Link
		want   []answer
	}{
		{"hidden", []string{"W/s/key", "W/one"},
			[]view.Mount{{Path: "W/s", Kind: view.Hidden}, {Path: "W/one", Kind: view.Hidden}, {Path: "W/absent", Kind: view.Hidden}}, nil,
			[]answer{{"read W/s/key", "ENOENT EACCES"}, {"list W/s", "EACCES"}, {"read W/one", "EACCES"}, {"write W/one", "EACCES EROFS"}, {"chmod W/one", "EROFS"},
				{"chmod W/s", "EROFS"}, {"mkdir W/s/x", "EACCES EROFS ENOENT"}, {"remove W/one", "EBUSY"}, {"rename W/s W/t", "EBUSY"}, {"write W/other", "OK"}, {"umount W/s", "EPERM"}}},
		{"read-only inside", []string{"W/a/b/hooks/h"},
			[]view.Mount{{Path: "W/a", Kind: view.Pinned}, {Path: "W/a/b", Kind: view.Pinned}, {Path: "W/a/b/hooks", Kind: view.ReadOnly}}, nil,
			[]answer{{"read W/a/b/hooks/h", "OK"}, {"append W/a/b/hooks/h", "EROFS"}, {"write W/a/b/hooks/n", "EROFS"}, {"remove W/a/b/hooks/h", "EROFS"},
				{"rename W/a/b/hooks W/a/b/x", "EBUSY"}, {"rename W/a/b W/a/x", "EBUSY"}, {"rename W/a W/x", "EBUSY"}, {"write W/a/b/new", "OK"}, {"write W/a/new", "OK"}}},
		{"without pins an ancestor can be moved", []string{"W/a/b/hooks/h"},
			[]view.Mount{{Path: "W/a/b/hooks", Kind: view.ReadOnly}}, nil,
			[]answer{{"rename W/a/b W/x", "OK"}}},
		{"hard link and rename out of read-only", []string{"W/ro/f"},
			[]view.Mount{{Path: "W/ro", Kind: view.ReadOnly}}, nil,
			[]answer{{"link W/ro/f W/f", "EXDEV"}, {"rename W/ro/f W/f", "EXDEV"}, {"rename W/file W/ro/f", "EXDEV EROFS"}}},
		{"elsewhere", []string{"W/home/f", "W/tmp/f"},
			[]view.Mount{{Path: "/run/home", Source: "W/home", Kind: view.Writable}, {Path: "/deep/er/ro", Source: "W/home", Kind: view.ReadOnly}}, nil,
			[]answer{{"read /run/home/f", "OK"}, {"write /run/home/n", "OK"}, {"read /deep/er/ro/f", "OK"}, {"write /deep/er/ro/n", "EROFS"}, {"write /run/n", "EROFS"}, {"write /deep/n", "EROFS"}}},
		{"tmp", []string{"W/tmp/"},
			[]view.Mount{{Path: "/tmp", Source: "W/tmp", Kind: view.Writable}, {Path: "/tmp/in/side", Source: "W", Kind: view.ReadOnly}}, nil,
			[]answer{{"write /tmp/mine", "OK"}, {"stat W/file", "ENOENT"}, {"read /tmp/in/side/file", "OK"}}},
		{"maybe", nil, []view.Mount{{Path: "W/none", Kind: view.ReadOnly, Maybe: true}, {Path: "/etc/none", Kind: view.ReadOnly, Maybe: true}}, nil,
			[]answer{{"stat W/none", "ENOENT"}}},
		{"own proc and dev", nil, []view.Mount{{Path: "/proc", Kind: view.Writable}, {Path: "/dev", Kind: view.Writable}, {Path: "/dev/shm", Kind: view.Writable}}, nil,
			[]answer{{"stat /proc/1", "OK"}, {fmt.Sprintf("stat /proc/%d", os.Getpid()), "ENOENT"}, {"stat /dev/kmsg", "ENOENT"}, {"stat /dev/null", "OK"}}},
		{"links", []string{"W/here"}, nil,
			[]view.Link{{Path: "/workspace", Target: "W"}, {Path: "/usr", Target: "W"}, {Path: "/a/b", Target: "W"}, {Path: "W/here", Target: "/etc"}, {Path: "W/sub/link", Target: "/etc"}},
			[]answer{{"read /workspace/file", "OK"}, {"stat /usr/bin", "OK"}, {"read /a/b/file", "OK"}, {"read W/here", "OK"}, {"stat W/sub", "ENOENT"}}},
		{"everything, read-only", []string{"W/s/key"},
			[]view.Mount{{Path: "W/s", Kind: view.Hidden}},
			[]view.Link{{Path: "/workspace", Target: "W"}},
			[]answer{{"read /etc/passwd", "OK"}, {"append /etc/passwd", "EROFS EACCES"}, {"list /", "OK"}, {"mkdir /made", "EROFS"}, {"mkdir /etc/made", "EROFS"}, {"mkdir /tmp/made", "OK"},
				{"write W/n", "OK"}, {"list W/s", "EACCES"}, {"read /workspace/file", "OK"}, {"mkdir /run/x", "EROFS"}, {"append /sys/kernel/profiling", "EROFS EACCES ENOENT"},
				{"append /proc/sys/kernel/core_pattern", "EROFS EACCES"}, {fmt.Sprintf("stat /proc/%d/root", os.Getppid()), "ENOENT"}, {"list /run", "OK"}}},
		{"everything, writable", nil, nil, nil, // but not the kernel's own files
			[]answer{{"append /sys/kernel/mm/transparent_hugepage/enabled", "EROFS EACCES ENOENT"}, {"append /proc/sys/kernel/core_pattern", "EROFS EACCES"}, {"write W/n", "OK"}, {"mkdir /made", "EROFS"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			at := func(s string) string {
				for _, part := range []string{"W/", "W "} {
					s = strings.ReplaceAll(s, part, w.write+part[1:])
				}
				return strings.TrimSuffix(strings.ReplaceAll(s+" ", "W ", w.write+" "), " ")
			}
			for _, n := range tt.make {
				make3(t, at(n))
			}
			c := w.cage(level)
			if strings.HasPrefix(tt.name, "everything") {
				c.View = view.View{Mounts: []view.Mount{{Path: "/", Kind: view.ReadOnly}, {Path: w.write, Kind: view.Writable}}}
				if strings.HasSuffix(tt.name, "writable") {
					c.View.Mounts[0].Kind = view.Writable
				}
				if names, _ := os.ReadDir("/run"); len(names) > 0 { // the host's, which is full of sockets
					tt.want = append(tt.want, answer{"stat /run/" + names[0].Name(), "ENOENT"})
				}
			}
			if tt.name == "tmp" { // which covers what newWorld has there
				c.View.Mounts = loaderOnly().Mounts
			}
			c.View.Rulesets = allFiles()
			for _, m := range tt.mounts {
				m.Path, m.Source = at(m.Path), at(m.Source)
				c.View.Mounts = append(c.View.Mounts, m)
			}
			for _, l := range tt.links {
				c.View.Links = append(c.View.Links, view.Link{Path: at(l.Path), Target: at(l.Target)})
			}
			var list []string
			for _, a := range tt.want {
				list = append(list, at(a.do))
			}
			out, s := w.run(t, c, program(t, list...))
			if s.Exit != 0 {
				t.Errorf("ended with %+v: %s", s, out)
			}
			got := answers(out)
			for _, a := range tt.want {
				judge(t, a.do, got[at(a.do)], a.want)
			}
		})
	}
}

// What was a directory when it was checked and is a link when it is mounted,
// or when a rule is made for it, is not followed.
func TestSwappedForLink(t *testing.T) {
	for _, level := range levels(t) {
		for name, swap := range map[string]func(*world) error{
			"the directory": func(w *world) error {
				return errors.Join(os.Rename(w.read, w.read+"-old"), os.Symlink(w.secret, w.read))
			},
			"an ancestor": func(w *world) error {
				dir := filepath.Dir(w.read)
				return errors.Join(os.Rename(dir, dir+"-old"), os.Symlink(dir+"-old", dir))
			},
		} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				w := newWorld(t)
				c := w.cage(level)
				dir := filepath.Dir(w.read)
				if err := swap(w); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(dir + "-old") })
				proc, err := w.Start(t.Context(), c, program(t, "exit 0"))
				if err == nil {
					proc.Kill()
				}
				if sdk.KindOf(err) != sdk.Unavailable || !errors.Is(err, err) || !strings.Contains(fmt.Sprint(err), unix.ELOOP.Error()) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// A mount point that is not there is not made in a directory of the host.
func TestMountPointsOfTheHost(t *testing.T) {
	w := newWorld(t)
	c := w.cage(need(t, Strict))
	c.View.Mounts = append(c.View.Mounts, view.Mount{Path: w.write + "/new/point", Source: w.read, Kind: view.ReadOnly})
	if proc, err := w.Start(t.Context(), c, program(t, "exit 0")); err == nil {
		proc.Kill()
		t.Error("started")
	}
	if _, err := os.Stat(w.write + "/new"); err == nil {
		t.Error("a directory was made on the host")
	}
	c = w.cage(Strict)
	c.View.Mounts = append(c.View.Mounts, view.Mount{Path: w.secret + "/none", Kind: view.ReadOnly})
	_, err := w.Start(t.Context(), c, program(t, "exit 0"))
	if err == nil || !strings.Contains(err.Error(), "mount "+w.secret+"/none") {
		t.Errorf("got %v", err)
	}
}

// No mount of a cage honours setuid files or devices, but for the five devices.
func TestMountFlags(t *testing.T) {
	w := newWorld(t)
	c := w.cage(need(t, Strict))
	c.View.Rulesets = allFiles()
	out, _ := w.run(t, c, command(t, "cat", "/proc/self/mountinfo"))
	n := 0
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		point, flags := f[4], ","+f[5]+","
		n++
		writable := point == w.write || point == "/tmp" || point == "/dev/shm"
		if !strings.Contains(flags, ",nosuid,") || writable == strings.Contains(flags, ",ro,") ||
			!strings.Contains(flags, ",nodev,") && !strings.HasPrefix(point, "/dev/") {
			t.Errorf("%s is mounted with %s", point, flags)
		}
	}
	if n < 8 {
		t.Errorf("got %q", out)
	}
}

// Rule sets are intersected, and say nothing of what they do not handle.
func TestRulesets(t *testing.T) {
	r, w, x := view.Read, view.Write, view.Exec
	for _, level := range levels(t) {
		for _, tt := range []struct {
			name string
			sets []view.Ruleset
			want map[string]string
		}{
			{"second narrows", []view.Ruleset{
				{Name: "a", Handles: r | w, Rules: []view.Rule{{Path: "/", Rights: r | w}}},
				{Name: "b", Handles: r | w, Rules: []view.Rule{{Path: "R", Rights: r}, {Path: "/usr", Rights: r}, {Path: "/lib", Rights: r, Maybe: true}, {Path: "/proc", Rights: r}}}},
				map[string]string{"read R/file": "OK", "read W/file": "EACCES", "write W/n": "EACCES"}},
			{"reading only", []view.Ruleset{
				{Name: "a", Handles: r, Rules: []view.Rule{{Path: "R", Rights: r}, {Path: "/usr", Rights: r}, {Path: "/lib", Rights: r, Maybe: true}, {Path: "/proc", Rights: r}}}},
				map[string]string{"read W/file": "EACCES", "append W/file": "OK", "mkdir W/d": "OK", "rename W/file W/d/file": "OK"}},
			{"write is not read", []view.Ruleset{
				{Name: "a", Handles: r | w, Rules: []view.Rule{{Path: "W", Rights: w}, {Path: "/usr", Rights: r}, {Path: "/lib", Rights: r, Maybe: true}, {Path: "/proc", Rights: r}}}},
				map[string]string{"read W/file": "EACCES", "append W/file": "OK", "append R/file": "EACCES EROFS"}},
			{"programs only", []view.Ruleset{
				{Name: "a", Handles: x, Rules: []view.Rule{{Path: "/lib64", Rights: x, Maybe: true}, {Path: "/usr/lib", Rights: x}, {Path: "/usr/bin/env", Rights: x}}}},
				map[string]string{"exec /usr/bin/env": "OK ECHILD", "exec /usr/bin/cat": "EACCES", "read W/file": "OK"}},
			{"no rule sets", nil, map[string]string{"read R/file": "OK", fmt.Sprintf("kill %d", os.Getppid()): "EPERM ESRCH"}},
		} {
			t.Run(string(level)+"/"+tt.name, func(t *testing.T) {
				h := newWorld(t)
				at := strings.NewReplacer("W/", h.write+"/", "R/", h.read+"/")
				c := h.cage(level)
				c.View.Rulesets = nil
				for _, s := range tt.sets {
					s.Rules = append([]view.Rule(nil), s.Rules...)
					for i := range s.Rules {
						if p := &s.Rules[i].Path; *p == "W" {
							*p = h.write
						} else if *p == "R" {
							*p = h.read
						} else if real, err := filepath.EvalSymlinks(*p); err == nil {
							*p = real
						}
					}
					c.View.Rulesets = append(c.View.Rulesets, s)
				}
				var list []string
				for do := range tt.want {
					if !strings.HasPrefix(do, "rename") {
						list = append(list, at.Replace(do))
					}
				}
				for do := range tt.want { // last: others need what is moved
					if strings.HasPrefix(do, "rename") {
						list = append(list, at.Replace(do))
					}
				}
				out, s := h.run(t, c, program(t, list...))
				if s.Exit != 0 {
					t.Errorf("ended with %+v: %s", s, out)
				}
				got := answers(out)
				for do, want := range tt.want {
					judge(t, do, got[at.Replace(do)], want)
				}
			})
		}
		t.Run(string(level)+"/too many", func(t *testing.T) {
			h := newWorld(t)
			c := h.cage(level)
			for range 17 {
				c.View.Rulesets = append(c.View.Rulesets, c.View.Rulesets[0])
			}
			if _, err := h.Start(t.Context(), c, program(t, "exit 0")); sdk.KindOf(err) != sdk.Limit {
				t.Errorf("17 rule sets: %v", err)
			}
			c.View.Rulesets = c.View.Rulesets[:16]
			if _, s := h.run(t, c, program(t, "exit 0")); s.Exit != 0 {
				t.Errorf("16 rule sets: %+v", s)
			}
		})
	}
}

// A program is what the descriptor is of, whatever is at its path by then: a
// file, a file in memory, or a script in either.
func TestPrograms(t *testing.T) {
	script := []byte("#!/usr/bin/bash\necho script $0 \"$@\"; pwd; env; exit 3\n")
	for _, level := range levels(t) {
		for _, init := range []bool{false, true} {
			for _, memory := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/init=%v/memory=%v", level, init, memory), func(t *testing.T) {
					w := newWorld(t)
					var f *os.File
					if memory {
						f = memfd(t, script)
					} else {
						name := w.secret + "/script"
						if err := os.WriteFile(name, script, 0o755); err != nil {
							t.Fatal(err)
						}
						f = open(t, name)
						if err := os.WriteFile(name+"2", []byte("#!/usr/bin/bash\necho swapped\n"), 0o755); err != nil {
							t.Fatal(err)
						}
						if err := os.Rename(name+"2", name); err != nil {
							t.Fatal(err)
						}
					}
					out, s := w.run(t, w.cage(level), Program{File: f, Args: []string{"name", "a b"}, Env: []string{"X=1"}, Dir: w.write, Init: init})
					if s.Exit != 3 || !strings.Contains(out, " a b\n"+w.write+"\n") || strings.Contains(out, "swapped") || !strings.Contains(out, "X=1\n") {
						t.Errorf("got %q, %+v", out, s)
					}
				})
			}
		}
	}
}

func memfd(t *testing.T, b []byte) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "program")
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		t.Fatal(err)
	}
	return f
}
