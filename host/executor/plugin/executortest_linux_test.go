package plugin

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/executor/executortest"
)

// TestExecutor: plugins keep the promises of every executor.
func TestExecutor(t *testing.T) {
	var probe []byte
	if path := os.Getenv(probeKey); path == "" {
		probe = executortest.Build(t, executortest.Plugin)
	} else {
		var err error
		if probe, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plugin"), probe, 0o700); err != nil {
		t.Fatal(err)
	}
	levels(t, func(t *testing.T, x *Executor) {
		s := skillOf("plugin")
		s.Home.Builtin, s.Home.Files = false, os.DirFS(dir)
		left := maps.Clone(left)
		if strings.HasSuffix(t.Name(), "/landlock") {
			for _, v := range []string{"alias_skill", "alias_tmp", "alias_workspace"} {
				left[v] = "without a private root there are no aliases: paths are the host's, and TMPDIR says where the private directory is"
			}
		}
		executortest.Run(t, executortest.Target{Program: open(t, x, s), Form: executortest.Plugin, Kernel: true, Left: left})
	})
}

// left are the promises that a native guest is not given.
var left = map[string]string{
	"alias_tmp_not_granted": "every native process has a private /tmp, which ends with it",
	"environ_empty":         "a native process has a small environment: TestHazardBEnvironmentIsNotInherited says which",
	"list_root":             "the way to what is granted can be gone but not listed",
}
