package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// compile builds the module of the skill in dir, from Go or C.
func compile(dir string, s *manifest.Skill, out string) error {
	var cmd *exec.Cmd
	if c, err := filepath.Glob(filepath.Join(dir, "*.c")); err == nil && len(c) > 0 {
		if err := findClang(); err != nil {
			return err
		}
		cmd = exec.Command("clang", append([]string{"--target=wasm32-wasi", "-O2", "-Wall", "-Wextra", "-Wl,--strip-all", "-o", out}, c...)...)
	} else {
		// Flags of the environment, the path of the checkout and the state of
		// version control would all end up in the module.
		args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", out}
		if s.ABI == sdk.ABI {
			args = append(args, "-buildmode=c-shared")
		}
		cmd = exec.Command("go", append(args, ".")...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=", "GOWASM=", "GOEXPERIMENT=", "GOWORK=off")
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %s: %w\n%s", dir, strings.Join(cmd.Args, " "), err, output)
	}
	return nil
}

var errNoClang = errors.New("no clang that compiles for wasm32-wasi (on Debian: apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32)")

// findClang tries a program, since clang alone is of no use without wasm-ld,
// the C library and the compiler's own.
func findClang() error {
	dir, err := os.MkdirTemp("", "clang-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "main.c")
	if err := os.WriteFile(source, []byte("#include <stdio.h>\nint main(void) { return puts(\"\"); }\n"), 0o600); err != nil {
		return err
	}
	if output, err := exec.Command("clang", "--target=wasm32-wasi", "-o", filepath.Join(dir, "out.wasm"), source).CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
		if first == "" {
			first = err.Error()
		}
		return fmt.Errorf("%w: %s", errNoClang, first)
	}
	return nil
}
