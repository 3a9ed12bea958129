//go:build linux

package shell

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCaged runs TestInCage as the first process of a pid namespace, as the
// host runs this plugin.
func TestCaged(t *testing.T) {
	need(t, "bash", "unshare", "setsid")
	if out, err := exec.Command("unshare", "-Urpf", "--mount-proc", "true").CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no namespaces: %v: %s", err, out)
		}
		t.Skipf("LEFT OUT: no namespaces: %v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "-Urpf", "--kill-child", "--mount-proc", os.Args[0], "-test.run=^TestInCage$", "-test.v")
	cmd.Env = append(os.Environ(), inCage+"=1", "GOCOVERDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInCage") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInCage: as pid 1, nothing at all is left of a command, and what it
// leaves behind while it runs does not stay as a zombie.
func TestInCage(t *testing.T) {
	if os.Getenv(inCage) == "" {
		t.Skip("LEFT OUT: TestCaged runs it")
	}
	if !caged() {
		t.Fatalf("pid %d of %d", os.Getpid(), os.Getppid())
	}
	for name, command := range map[string]string{
		"strays":  "setsid env -i sleep 300 & (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; echo done",
		"timeout": "setsid env -i sleep 300 & (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; echo done; sleep 300",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			var out bashOutput
			r, err := h.call(t.Context(), "Bash", arg{"command": command, "timeout": 1000}, &out)
			if err != nil || out.Stdout != "done\n" || out.TimedOut != (name == "timeout") || r.Failed != out.TimedOut {
				t.Errorf("%v, %+v", err, out)
			}
			if all, _ := filepath.Glob("/proc/[0-9]*"); len(all) != 1 {
				t.Errorf("left: %v", all)
			}
		})
	}
	h := newHost(t)
	out, _ := ok[bashOutput](t, h, "Bash", arg{"command": "for i in 1 2 3 4 5 6 7 8; do (setsid true &) ; done; sleep 0.5; cat /proc/[0-9]*/stat | grep ') Z 1 ' | wc -l"})
	if out.Stdout != "0\n" {
		t.Errorf("zombies: %q", out.Stdout)
	}
}
