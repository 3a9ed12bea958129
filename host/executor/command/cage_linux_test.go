package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
)

// atLevels runs test with what starts programs in real cages, once for each
// level at which this user may run them: root at strict only.
func atLevels(t *testing.T, test func(t *testing.T, l *sandbox.Launcher, report sandbox.Report)) {
	t.Helper()
	report := sandbox.Probe()
	levels := []sandbox.Level{sandbox.Strict, sandbox.Landlock}
	if os.Geteuid() == 0 {
		levels = levels[:1]
	}
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			if !report.Level.Covers(level) {
				why := fmt.Sprintf("this machine offers level %q: %s", report.Level, strings.Join(report.Missing, "; "))
				if os.Getenv("CI") == "true" {
					t.Fatal(why)
				}
				t.Skip("LEFT OUT: ", why)
			}
			l := sandbox.New()
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, l, sandbox.Report{Level: level})
		})
	}
}

func TestCaged(t *testing.T) { atLevels(t, testCaged) }

func testCaged(t *testing.T, l *sandbox.Launcher, report sandbox.Report) {
	w := newWorld(t, `
[capabilities]
exec = ["cat", "/bin/ls", "env"]
filesystem = ["read:${workspace}"]
env = []
[tools.cat]
command = ["cat", "--", "{paths...}"]
stdin = "{text}"
input.properties.paths = { type = "array", items.type = "string" }
input.properties.text.type = "string"
[tools.ls]
command = ["/bin/ls", "-A", "--", "{workspace}"]
[tools.env]
command = ["env"]
[tools.sh]
command = ["env", "sh", "-c", "echo ran"]
`, l, report)
	absent := map[sandbox.Level]string{sandbox.Strict: "No such file", sandbox.Landlock: "Permission denied"}[report.Level]
	home := map[sandbox.Level]string{sandbox.Strict: "HOME=/tmp\n", sandbox.Landlock: "HOME=/"}[report.Level]
	if err := os.WriteFile(filepath.Join(w.work, "a"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(place(t), "secret")
	if err := os.WriteFile(secret, []byte("TOP"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COMMAND_SECRET", "TOP")
	for _, tt := range []struct {
		name, tool, args string
		want             string
		failed           bool
	}{
		{"relative", "cat", `{"paths":["a"]}`, "content", false},
		{"absolute", "cat", `{"paths":["` + w.work + `/a"]}`, "content", false},
		{"stdin", "cat", `{"text":"hi"}`, "hi", false},
		{"program_by_path", "ls", `{}`, "a\n", false},
		{"read_outside", "cat", `{"paths":["` + secret + `"]}`, absent, true},
		{"read_outside_relative", "cat", `{"paths":["../` + filepath.Base(filepath.Dir(secret)) + `/secret"]}`, absent, true},
		{"read_environment_of_init", "cat", `{"paths":["/proc/1/environ"]}`, "Permission denied", true},
		{"environment", "env", `{}`, home, false},
		{"exec_unlisted", "sh", `{}`, "sh", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := w.run(within(t, time.Minute), tt.tool, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Content[0].Text
			if r.Failed != tt.failed || !strings.Contains(got, tt.want) || strings.Contains(got, "TOP") || strings.Contains(got, "ran\n") {
				t.Errorf("failed %v: %s", r.Failed, got)
			}
		})
	}
}

// The deadline ends everything in the cage; where that has a PID namespace, a
// child in a session of its own too.
func TestCagedDeadline(t *testing.T) { atLevels(t, testCagedDeadline) }

func testCagedDeadline(t *testing.T, l *sandbox.Launcher, report sandbox.Report) {
	own := map[sandbox.Level]string{sandbox.Strict: "setsid "}[report.Level]
	w := newWorld(t, `
[capabilities]
exec = ["*"]
filesystem = ["read:/usr", "write:${workspace}", "read:/bin?", "read:/lib?", "read:/lib64?"]
[tools.t]
command = ["sh", "-c", "`+own+`sh -c 'for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5 6 7 8; do date +%N > beat; sleep 0.05; done; done' & sleep 5"]
`, l, report)
	_, err := w.run(within(t, time.Second), "t", `{}`)
	if err == nil {
		t.Fatal("no error")
	}
	beat := filepath.Join(w.work, "beat")
	before, err := os.ReadFile(beat)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(400 * time.Millisecond)
	if after, err := os.ReadFile(beat); err != nil || string(after) != string(before) {
		t.Errorf("the child still runs: %q, then %q, %v", before, after, err)
	}
}

// example opens a skill of examples/.
func example(t *testing.T, name string, l *sandbox.Launcher, report sandbox.Report) *world {
	t.Helper()
	dir, err := filepath.Abs("../../../examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := manifest.Open(os.DirFS(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range s.Tools {
		needs(t, tool.Command.Program)
	}
	return worldOf(t, s, l, report)
}

// needs skips a test for which a program is missing.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("LEFT OUT: ", err)
	}
}
