package plugin

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/skillhost/skill/host/executor/executortest"
)

// probeKey names a probe that was built already.
const probeKey = "SKILL_TEST_PROBE"

// TestCages runs the tests that are about cages where this test cannot: as an
// ordinary user if it is run by root, and without the race detector.
func TestCages(t *testing.T) {
	root := os.Geteuid() == 0
	if !root && !raced {
		t.Skip("the tests themselves run as an ordinary user")
	}
	dir, err := os.MkdirTemp("/var/tmp", "u")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	probe, exe := filepath.Join(dir, "probe"), "/proc/self/exe"
	if err := os.WriteFile(probe, executortest.Build(t, executortest.Plugin), 0o755); err != nil {
		t.Fatal(err)
	}
	if raced {
		exe = filepath.Join(dir, "test")
		build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", exe, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	run := func(t *testing.T, who *syscall.Credential) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cmd := exec.CommandContext(ctx, exe, "-test.v", "-test.run", "^(TestCaged|TestExecutor|TestHazard[ABFHI].*)$")
		cmd.Dir = dir
		for _, name := range []string{"PATH", "CI", "GOCACHE", "GOMODCACHE", "GOPATH"} {
			if v, ok := os.LookupEnv(name); ok {
				cmd.Env = append(cmd.Env, name+"="+v)
			}
		}
		cmd.Env = append(cmd.Env, "TMPDIR="+dir, "HOME="+dir, probeKey+"="+probe)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "LEFT OUT: ") {
				t.Log(strings.TrimSpace(line))
			}
		}
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestExecutor/strict/")) && os.Getenv("CI") == "true" {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if raced {
		t.Run("as_it_is", func(t *testing.T) { run(t, nil) })
	}
	if root {
		const nobody = 65534
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		t.Run("as_nobody", func(t *testing.T) { run(t, &syscall.Credential{Uid: nobody, Gid: nobody}) })
	}
}
