package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// The versions are part of the result: both files say all of them.
var (
	//go:embed package.json
	packages []byte
	//go:embed package-lock.json
	lock []byte
	//go:embed clients.mjs
	clientsScript []byte
)

// minNode is the oldest Node.js that the suite runs on.
const minNode = 22

// A toolbox is the installed packages and their Node.js.
type toolbox struct {
	node    string
	modules string // node_modules
	reports string
}

// install puts the packages into dir, unless they are there already.
func install(ctx context.Context, dir string) (*toolbox, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	t := &toolbox{modules: filepath.Join(dir, "node_modules"), reports: filepath.Join(dir, "reports")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	// The mark is written last, so that a broken installation is made again.
	mark := filepath.Join(dir, "installed")
	if have, err := os.ReadFile(mark); err != nil || !bytes.Equal(have, lock) {
		for name, data := range map[string][]byte{"package.json": packages, "package-lock.json": lock} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				return nil, err
			}
		}
		// No package needs its scripts for what is done here.
		if out, err := command(ctx, dir, nil, "npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit", "--loglevel=error"); err != nil {
			return nil, fmt.Errorf("npm ci: %w\n%s", err, out)
		}
		if err := os.WriteFile(mark, lock, 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "clients.mjs"), clientsScript, 0o644); err != nil {
		return nil, err
	}
	t.node, err = findNode(ctx, t.modules)
	return t, err
}

// findNode returns the Node.js that came with the packages, or else one of the
// machine that is new enough.
func findNode(ctx context.Context, modules string) (string, error) {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	node := filepath.Join(modules, "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(node); err == nil {
		return node, nil
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return "", err
	}
	out, err := command(ctx, "", nil, node, "--version")
	if err != nil {
		return "", err
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(out, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < minNode {
		return "", fmt.Errorf("%s is version %q: the suite needs Node.js %d", node, strings.TrimSpace(out), minNode)
	}
	return node, nil
}

// script is the path of a package's file.
func (t *toolbox) script(path string) string {
	return filepath.Join(t.modules, filepath.FromSlash(path))
}

// environ is the environment of every program that is run: the user's, without
// the settings of the binary, and env.
func environ(env ...string) []string {
	all := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SKILL_") })
	return append(all, env...)
}

// command runs a program to its end and returns what it printed.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, environ(env...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return string(out), err
}
