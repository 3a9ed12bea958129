package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// built is what the tests of this package share: the real binary, made as
// "make build" makes it, the example skills, and compiled modules for the hosts
// under test to start with.
var built struct {
	dir    string // of everything below
	bin    string // the binary alone in its directory, for PATH
	skill  string // the binary
	skills string // compiled skills, a folder each
	warm   string // a SKILL_HOME with a filled compilation cache
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "skill-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err == nil {
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building what is tested:", err)
		return 1
	}
	return m.Run()
}

// build compiles guests and binary in a copy of the tree: the modules that the
// binary embeds may be absent or old in the tree itself, and other packages
// are compiled from there at this moment.
func build(dir string) error {
	tree := filepath.Join(dir, "tree")
	if err := copyTree(tree, filepath.Join("..", "..")); err != nil {
		return err
	}
	built.dir, built.bin, built.skills = dir, filepath.Join(dir, "bin"), filepath.Join(dir, "skills")
	built.skill, built.warm = filepath.Join(built.bin, "skill"), filepath.Join(dir, "warm")
	if runtime.GOOS == "windows" {
		built.skill += ".exe"
	}
	slow, caller := filepath.Join(built.skills, "slow"), filepath.Join(built.skills, "caller")
	for _, step := range []struct {
		env  []string
		args []string
	}{
		{nil, []string{"run", "-trimpath", "./skills/build"}},
		{nil, []string{"build", "-trimpath", "-ldflags=-s -w -X main.version=test", "-o", built.skill, "./cmd/skill"}},
		{[]string{"GOOS=wasip1", "GOARCH=wasm"}, []string{"build", "-trimpath", "-o", filepath.Join(slow, "slow.wasm"), "./cmd/skill/testdata/slow"}},
		{[]string{"GOOS=wasip1", "GOARCH=wasm"}, []string{"build", "-trimpath", "-buildmode=c-shared", "-o", filepath.Join(caller, "caller.wasm"), "./cmd/skill/testdata/caller"}},
	} {
		cmd := exec.Command("go", step.args...)
		cmd.Dir = tree
		cmd.Env = append(cmd.Environ(), append(step.env, "CGO_ENABLED=0", "GOWORK=off")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
		}
	}
	for dir, text := range map[string]string{slow: slowManifest, caller: callerManifest} {
		if err := os.WriteFile(filepath.Join(dir, "skill.toml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if out, err := exec.Command(built.skill, "build", "--no-compile", caller).CombinedOutput(); err != nil {
		return fmt.Errorf("skill build: %w\n%s", err, out)
	}
	for _, name := range []string{"hello-go", "wordcount-go", "review"} {
		if err := copyTree(filepath.Join(built.skills, name), filepath.Join(tree, "examples", name)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(tree); err != nil {
		return err
	}
	return warm()
}

const slowManifest = `name = "slow"
version = "0.1.0"
description = "Takes its time."
runtime = "wasm"
abi = "command/1"
source = "slow.wasm"

[limits]
memory = "64MiB"
timeout = "2m"

[tools.wait]
description = "Sleep, or spin"
task = "optional"
input = { type = "object", properties = { ms = { type = "integer" }, spin = { type = "boolean" } } }
`

const callerManifest = `name = "caller"
version = "0.1.0"
description = "Calls other tools."
runtime = "wasm"
source = "caller.wasm"

[capabilities]
invoke = ["slow.wait"]
`

// copyTree copies what the binary is made of: no tests, and nothing that was
// built or installed.
func copyTree(to, from string) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		slash, top := filepath.ToSlash(rel), filepath.Dir(rel) == "."
		switch name := d.Name(); {
		case d.IsDir() && rel != "." && (name == "node_modules" || name == ".git" || top && (name == "bin" || name == "dist" || name == "docs" || name == "bench")):
			return filepath.SkipDir
		case d.IsDir() && strings.HasPrefix(slash, "skills/dist/"):
			return filepath.SkipDir
		case d.IsDir() && name == "testdata" && slash != "cmd/skill/testdata":
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !d.Type().IsRegular() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	})
}

// warm compiles each module once, for all tests.
func warm() error {
	if err := copyTree(filepath.Join(built.warm, "skills"), built.skills); err != nil {
		return err
	}
	policy := ""
	for _, name := range []string{"hello-go", "wordcount-go", "slow"} {
		policy += fmt.Sprintf("[skills.%s]\nallow = true\ndigest = \"*\"\n", name)
	}
	if err := os.WriteFile(filepath.Join(built.warm, "policy.toml"), []byte(policy), 0o600); err != nil {
		return err
	}
	var work sync.WaitGroup
	calls := [][2]string{{"TaskManager", `{"action":"list"}`}, {"SetCallback", `{"action":"list"}`}, {"ReadImage", `{"file_path":"none.png"}`}, {"hello-go.greet", `{"name":"x"}`},
		{"wordcount-go.count", `{"text":""}`}, {"slow.wait", `{"ms":1}`}}
	errs := make([]error, len(calls))
	for i, c := range calls {
		work.Go(func() {
			cmd := exec.Command(built.skill, "call", c[0], c[1])
			cmd.Env = cleanEnv(built.dir, "SKILL_HOME="+built.warm)
			cmd.Dir = built.bin
			out, err := cmd.CombinedOutput()
			if c[0] == "ReadImage" && bytes.Contains(out, []byte("no such file")) {
				err = nil
			}
			if err != nil {
				errs[i] = fmt.Errorf("skill call %s: %w\n%s", c[0], err, out)
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// cleanEnv is the environment without the settings of whoever runs the tests.
func cleanEnv(home string, more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "SKILL_") && !strings.HasPrefix(name, "XDG_") && name != "HOME" && name != "GOGC" {
			env = append(env, v)
		}
	}
	// A host would ask on the terminal of who runs the tests.
	return append(append(env, "HOME="+home, "SKILL_QUESTIONS_CHANNELS=page terminal"), more...)
}

// linkCache gives a SKILL_HOME the compiled modules.
func linkCache(home string) error {
	from := filepath.Join(built.warm, "cache")
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(home, "cache", rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		if os.Link(path, to) == nil {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o600)
	})
}
