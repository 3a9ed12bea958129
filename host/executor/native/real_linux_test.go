package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/sandbox"
)

// realHouse is a Maker whose processes are real, at level if the machine has it.
func realHouse(t *testing.T, level sandbox.Level) *house {
	t.Helper()
	if r := sandbox.Probe(); !r.Level.Covers(level) {
		why := "LEFT OUT: this machine offers level " + string(r.Level) + ": " + strings.Join(r.Missing, "; ")
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	h := newHouse(t, level)
	l := sandbox.New()
	t.Cleanup(func() { // before that of newHouse, which looks at what is left
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	h.o.Starter = roomy{l}
	return h
}

// roomy starts this program, whose stage becomes the process, with the memory
// that it takes with the race detector in it.
type roomy struct{ Starter }

func (r roomy) Start(ctx context.Context, c sandbox.Cage, p sandbox.Program) (sandbox.Process, error) {
	if raced {
		c.Limits.Memory = 1 << 50
	}
	return r.Starter.Start(ctx, c, p)
}

// sh runs script and returns what it prints.
func (h *house) sh(t *testing.T, p Plan, script string) string {
	t.Helper()
	bash, err := os.Open("/bin/bash")
	if err != nil {
		t.Skip("LEFT OUT: there is no bash")
	}
	defer bash.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g, err := h.Start(t.Context(), p, sandbox.Program{File: bash, Args: []string{"bash", "-c", script}, Out: w, Err: w, Init: true})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out := contents(t, r)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	absent(t, g.base)
	return out
}

// asNobody runs the test of that name as a user without any rights.
func asNobody(t *testing.T, test string) {
	t.Helper()
	cmd := nobody(t, "-test.run=^"+test+"$", "-test.v")
	dir := filepath.Dir(cmd.Path)
	cmd.Env = []string{"PATH=" + searchPath, "CI=" + os.Getenv("CI"), "TMPDIR=" + dir}
	out, err := cmd.CombinedOutput()
	if _, why, left := strings.Cut(string(out), "LEFT OUT: "); left && err == nil {
		why, _, _ = strings.Cut(why, "\n")
		t.Skip("LEFT OUT: as another user: " + why)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test+"/landlock") {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}

// ground is a workspace with things that are denied in it.
func ground(t *testing.T) (ws, out string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, out = filepath.Join(base, "ws"), filepath.Join(base, "out")
	for _, dir := range []string{ws + "/.git/hooks", ws + "/sub", ws + "/real", out, ws + "/secret"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{ws + "/a", ws + "/.git/hooks/h", ws + "/secret/key", out + "/key", ws + "/real/f"} {
		if err := os.WriteFile(f, []byte("text of "+filepath.Base(f)+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", ws+"/name"); err != nil {
		t.Fatal(err)
	}
	return ws, out
}

// What a shell is granted and denied, by the kernel. Root has the level strict
// only; whoever else tests has both.
func TestReal(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.Strict, sandbox.Landlock} {
		t.Run(string(level), func(t *testing.T) {
			if level == sandbox.Landlock && os.Geteuid() == 0 {
				asNobody(t, "TestReal")
				return
			}
			h := realHouse(t, level)
			ws, out := ground(t)
			s := skill(t, "write:"+ws, "exec:*", "read:/usr")
			s.Sandbox.Home = "private"
			operator := capability.Layer{Name: "operator", Deny: set(t, "write:"+ws+"/.git/hooks", "read:"+ws+"/secret")}
			j := job(s, operator)
			j.Dirs = executor.Dirs{Workspace: ws}
			p := h.plan(t, s, j)
			for _, c := range []struct {
				script string
				want   string // a part of what is printed, or
				denied bool
			}{
				{"pwd", ws + "\n", false},
				{"cat a", "text of a", false},
				{"echo x > sub/new && cat sub/new", "x", false},
				{"echo x > .git/hooks/h", "", true},
				{"echo x > .git/hooks/new", "", true},
				{"mv .git gone", "", true},
				{"mv .git/hooks gone", "", true},
				{"rm -r .git/hooks", "", true},
				{"cat .git/hooks/h", "text of h", false},
				{"cat secret/key", "", true},
				{"chmod 700 secret; cat secret/key", "", true},
				{"mv secret gone; cat gone/key", "", true},
				{"cat " + out + "/key", "", true},
				{"ln -s " + out + "/key sub/l; cat sub/l", "", true},
				{"ln " + out + "/key sub/hard && cat sub/hard", "", true},
				{"echo x > $TMPDIR/f && cat $TMPDIR/f", "x", false},
				{"echo x > $HOME/f && cat $HOME/f", "x", false},
				{"cat $HOME/f", "x", false}, // of the one before
				{"cat $TMPDIR/f", "", true}, // but this is gone
				{"cat /etc/shadow", "", true},
				{"cat /etc/machine-id /etc/hostname /root/.bashrc", "", true},
				{"ls /home", "", true},
				{"echo x > /dev/null && echo ok", "ok", false},
				{"head -c 1 /dev/zero | wc -c", "1", false},
				{"echo x > /proc/sys/kernel/core_pattern", "", true},
				{"cat /proc/1/environ", "", level == sandbox.Landlock},
				{"diff <(echo a) <(echo a) && echo same", "same", false},
				{"env | cut -d= -f1 | sort | tr '\\n' ' '", "HOME LANG", false},
			} {
				got := h.sh(t, p, "exec 2>&1; "+c.script)
				if strings.Contains(got, "text of key") || c.denied && got == "" || c.denied && !slices.ContainsFunc([]string{"denied", "Read-only", "No such file", "not permitted", "busy", "cross-device"}, func(w string) bool { return strings.Contains(got, w) }) {
					t.Errorf("%s: got %q, want a refusal", c.script, got)
				}
				if !c.denied && !strings.Contains(got, c.want) {
					t.Errorf("%s: got %q, want %q", c.script, got, c.want)
				}
			}
			if text, err := os.ReadFile(ws + "/.git/hooks/h"); err != nil || string(text) != "text of h\n" {
				t.Errorf("the hook is %q %v", text, err)
			}
		})
	}
}

// Under the layer of plan mode nothing can be written but the plan, in place, and
// what is private to the call: not the home, which lasts.
func TestRealPlanMode(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.Strict, sandbox.Landlock} {
		t.Run(string(level), func(t *testing.T) {
			if level == sandbox.Landlock && os.Geteuid() == 0 {
				asNobody(t, "TestRealPlanMode")
				return
			}
			h := realHouse(t, level)
			ws, _ := ground(t)
			if err := os.WriteFile(ws+"/sub/plan.md", []byte("old\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := skill(t, "read:/", "write:"+ws, "write:${tmp}", "exec:*")
			s.Sandbox.Home = "private"
			free := job(s)
			free.Dirs = executor.Dirs{Workspace: ws}
			before := h.plan(t, s, free)
			if got := h.sh(t, before, "exec 2>&1; echo x > made && echo kept > $HOME/f && cat made $HOME/f"); got != "x\nkept\n" {
				t.Fatalf("before: %q", got)
			}
			j := job(s, planMode(t, ws))
			j.Dirs = free.Dirs
			p := h.plan(t, s, j)
			if p.Key == before.Key {
				t.Error("a process from before would be used")
			}
			for _, c := range []struct {
				script, want string // "" is a refusal
			}{
				{"cat a sub/plan.md", "text of a\nold\n"},
				{"echo new > sub/plan.md && cat sub/plan.md", "new\n"},
				{"echo more >> sub/plan.md && cat sub/plan.md", "new\nmore\n"},
				{": > sub/plan.md && echo emptied", "emptied\n"},
				{"echo x > $TMPDIR/f && cat $TMPDIR/f", "x\n"},
				{"cat $HOME/f", "kept\n"},
				{"touch x", ""},
				{"echo x > a", ""},
				{"echo x > sub/other", ""},
				{"rm a", ""},
				{"mkdir d", ""},
				{"mv a b", ""},
				{"ln -s a l", ""},
				{"ln a hard", ""},
				{"rm sub/plan.md", ""},
				{"mv sub/plan.md sub/p", ""},
				{"mv sub s", ""},
				{"ln -sf ../a sub/plan.md", ""},
				{"echo x > $TMPDIR/p && mv $TMPDIR/p sub/plan.md", ""},
				{"echo x > $HOME/f", ""},
				{"touch $HOME/new", ""},
				{"rm $HOME/f", ""},
				{"echo x > /etc/x", ""},
				{"bash -c 'echo x > " + ws + "/x'", ""},
			} {
				got := h.sh(t, p, "exec 2>&1; "+c.script) // chmod is not among them: Landlock has no say there
				refused := slices.ContainsFunc([]string{"denied", "Read-only", "not permitted", "busy", "cross-device"}, func(w string) bool { return strings.Contains(got, w) })
				if c.want == "" && !refused || c.want != "" && got != c.want {
					t.Errorf("plan_mode_write: %s: got %q, want %q", c.script, got, c.want)
				}
			}
			if text, err := os.ReadFile(ws + "/a"); err != nil || string(text) != "text of a\n" {
				t.Errorf("a is %q, %v", text, err)
			}
			if info, err := os.Lstat(ws + "/sub/plan.md"); err != nil || !info.Mode().IsRegular() {
				t.Errorf("the plan is %v, %v", info, err)
			}
			if got := h.sh(t, before, "exec 2>&1; echo y > made && echo y > $HOME/f && cat made $HOME/f"); got != "y\ny\n" {
				t.Errorf("after: %q", got)
			}
		})
	}
}

// The private root looks familiar, and names nobody.
func TestRealRoot(t *testing.T) {
	h := realHouse(t, sandbox.Strict)
	ws, _ := ground(t)
	s := skill(t, "read:"+ws, "read:/usr/share/misc", "exec:ls", "exec:cat", "exec:sh", "exec:awk")
	j := job(s)
	j.Dirs = executor.Dirs{Workspace: ws}
	p := h.plan(t, s, j)
	for _, c := range []struct{ script, want string }{
		{"ls /workspace/", "a\n"},
		{"cat /etc/passwd", "user:x:"},
		{"cat /etc/hosts", "localhost"},
		{"ls /run", "ermission denied"},
		{"/bin/sh -c 'echo by sh'", "by sh"},
		{"awk 'BEGIN { print 6 * 7 }'", "42"},
		{"cat --version", "cat"},
		{"echo x > a", "Read-only file system"},
		{"/usr/bin/env", "No such file"},
		{"echo 'echo no' > /tmp/x; chmod 700 /tmp/x; /tmp/x", "Permission denied"},
	} {
		got := h.sh(t, p, "exec 2>&1; "+c.script)
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
	}
}

// The host's private directories cannot be seen by who may read everything,
// and neither can the host's own /tmp, where the workspace may be.
func TestRealEverything(t *testing.T) {
	h := realHouse(t, sandbox.Strict)
	ws, out := ground(t)
	s := skill(t, "read:/", "write:"+ws, "exec:*")
	deny := set(t, "read:/etc/ssl/private", "read:/root", "write:"+ws+"/name")
	deny[2] = deny[2].AsIs() // the link, and not what it leads to
	j := job(s, capability.Layer{Name: "operator", Deny: deny})
	j.Dirs = executor.Dirs{Workspace: ws}
	p := h.plan(t, s, j)
	for _, c := range []struct{ script, want string }{
		{"ls -d /usr /etc /var /sys/kernel | wc -l", "4"},
		{"echo x > sub/new && cat sub/new", "x"},
		{"cat " + out + "/key", "No such file"},
		{"ls -A /root", "ermission denied"},
		{"touch /etc/new", "Read-only file system"},
		{"ls /run", ""},
		// A link cannot be mounted on; nothing beside it can be made either.
		{"ln -sfn sub name", "Read-only file system"},
		{"mv name other", "Read-only file system"},
		{"cat name/f", "text of f"},
		{"echo x > real/g && cat real/g", "x"},
	} {
		got := h.sh(t, p, "exec 2>&1; "+c.script)
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
	}
	if to, err := os.Readlink(ws + "/name"); err != nil || to != "real" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// A link that was made after the layers were bound leads nowhere new.
func TestRealLateLink(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.Strict, sandbox.Landlock} {
		t.Run(string(level), func(t *testing.T) {
			if level == sandbox.Landlock && os.Geteuid() == 0 {
				asNobody(t, "TestRealLateLink")
				return
			}
			h := realHouse(t, level)
			ws, out := ground(t)
			s := skill(t, "read:/usr", "read:"+ws, "read:"+out, "exec:*")
			j := job(s, capability.Layer{Name: "operator", Deny: set(t, "read:"+ws+"/netrc", "read:"+ws+"/config/hosts")})
			j.Dirs = executor.Dirs{Workspace: ws}
			p := h.plan(t, s, j)
			if err := errors.Join(os.Symlink(out+"/key", ws+"/netrc"), os.Symlink("secret", ws+"/config"), os.Rename(ws+"/secret/key", ws+"/secret/hosts")); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{ws + "/netrc", out + "/key", ws + "/config/hosts", ws + "/secret/hosts"} {
				if got := h.sh(t, p, "exec 2>&1; cat "+file); !strings.Contains(got, "ermission denied") {
					t.Errorf("%s: %q", file, got)
				}
			}
			if got := h.sh(t, p, "cat "+ws+"/real/f"); !strings.Contains(got, "text of f") {
				t.Errorf("beside it: %q", got)
			}
		})
	}
}
