// Bench measures skill beside others and prints medians and ratios, all from
// one run: the machine may be slow, a ratio still means something.
//
//	go run ./bench
//	go run ./bench -only stdio,http
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// counts are how much is measured.
type counts struct{ rounds, single, full int }

func main() {
	log.SetFlags(0)
	var n counts
	flag.IntVar(&n.rounds, "rounds", 5, "rounds; medians are printed")
	flag.IntVar(&n.single, "sequential", 5000, "calls one at a time, each round")
	flag.IntVar(&n.full, "pipelined", 60000, "calls with 32 outstanding, each round")
	only := flag.String("only", "stdio,http,sessions,list,search,docs,host", "what is measured, separated by commas")
	skill := flag.String("skill", "", "a skill that was built with -tags bench; else it is built")
	flag.Parse()
	if n.rounds < 1 || n.single < 1 || n.full < 1 {
		log.Fatal("bench: the counts are at least 1")
	}
	tmp, err := os.MkdirTemp("", "skill-bench-")
	if err != nil {
		log.Fatal(err)
	}
	err = measureAll(tmp, *skill, n, strings.Split(*only, ","))
	os.RemoveAll(tmp)
	if err != nil {
		log.Fatal("bench: ", err)
	}
}

// A part is something that can be measured.
type part struct {
	name    string
	measure func(programs, counts) error
}

// parts are in the order in which they are measured.
var parts = []part{
	{"stdio", stdio}, {"http", streamable}, {"sessions", sessions}, {"list", listing}, {"search", webSearch}, {"docs", readDocs},
	{"host", func(programs, counts) error { return inHost() }},
}

func measureAll(tmp, skill string, n counts, only []string) error {
	for _, name := range only {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("-only: %q is not measured here", name)
		}
	}
	fmt.Printf("%s %s/%s, %d CPUs, %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	p, err := build(tmp, skill)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if slices.Contains(only, part.name) {
			if err := part.measure(p, n); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

// programs is the directory of the servers that were built.
type programs string

// build builds the servers, but for skill's if it is there already. That has a
// tool that answers in the host.
func build(tmp, skill string) (programs, error) {
	for name, args := range map[string][]string{
		"skill": {"-tags", "bench", "./cmd/skill"},
		"stock": {"./bench/stock"},
		"raw":   {"./bench/raw"},
		"mcpgo": {"./mcpgo"},
	} {
		if name == "skill" && skill != "" {
			abs, err := filepath.Abs(skill)
			if err = errors.Join(err, os.Symlink(abs, filepath.Join(tmp, name))); err != nil {
				return "", err
			}
			continue
		}
		at := []string{"build"}
		if name == "mcpgo" { // a module of its own
			at = append(at, "-C", filepath.Join("bench", "peers"))
		}
		if err := run("go", slices.Concat(at, []string{"-trimpath", "-ldflags=-s -w", "-o", filepath.Join(tmp, name)}, args)...); err != nil {
			return "", err
		}
	}
	return programs(tmp), os.Mkdir(filepath.Join(tmp, "work"), 0o700)
}

// path is where the server of that name is.
func (p programs) path(name string) string { return filepath.Join(string(p), name) }

// skill is the command that serves with skill.
func (p programs) skill(more ...string) []string {
	return append([]string{p.path("skill"), "serve", "--workspace", p.path("work")}, more...)
}

// home is the environment of a skill that keeps everything in that directory.
func (p programs) home(name string) []string {
	return []string{"SKILL_HOME=" + p.path(name), "SKILL_WASM_WARM=false", // compiling beside it is not what is measured
		"SKILL_HTTP_RATE=1000000", "SKILL_HTTP_BURST=1000000", fmt.Sprintf("SKILL_HTTP_MAX_SESSIONS=%d", 2*manySessions)} // asked, and never reached
}

// inHost runs the benchmarks of the rooms that have a target.
func inHost() error {
	var all []result
	for _, b := range [][2]string{
		{"./host/dispatch", "."}, {"./host/audit", "Append"}, {"./host/capability", "Check"}, {"./host/executor/wasm/...", "."},
		{"./host/sandbox", "Start"}, {"./host/executor/plugin", "Spawn|Start|Ready|Warm|Transport"}, {"./host/egress", "Get"},
	} {
		var out bytes.Buffer
		if err := runTo(io.MultiWriter(os.Stdout, &out), "go", "test", "-run=^$", "-bench="+b[1], "-benchmem", "-count=1", b[0]); err != nil {
			return err
		}
		all = append(all, results(out.String())...)
	}
	fmt.Println()
	printTargets(inHostTargets(all))
	return nil
}

func run(name string, args ...string) error { return runTo(os.Stdout, name, args...) }

func runTo(out io.Writer, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

func median[T any, V cmp.Ordered](all []T, of func(T) V) V {
	var v []V
	for _, x := range all {
		v = append(v, of(x))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
func us(d time.Duration) float64 { return float64(d) / 1e3 }
func mb(n int64) float64         { return float64(n) / 1e6 }
