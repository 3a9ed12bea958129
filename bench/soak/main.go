// Soak keeps skill busy for a while and fails if its memory, its files, its
// threads or its goroutines grow after the first part of the work.
//
//	go run ./bench/soak -duration 10m -calls 1000000 -sessions 10000
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/skillhost/skill/bench/load"
)

// The bounds of growth, from the server at rest after the warm-up to the
// server at rest at the end. With the counts as they are by default, 16 MiB are
// 17 bytes of each call, or 1.7 KB of each session: what is kept of them is
// found. What is not kept makes a few megabytes, by when the collector ran.
const (
	moreRSS         = 16 << 20
	moreDescriptors = 8
	moreThreads     = 16
	moreGoroutines  = 8
)

func main() {
	log.SetFlags(0)
	s := load.Soak{Every: 10 * time.Second, Rest: 5 * time.Second}
	flag.DurationVar(&s.For, "duration", 10*time.Minute, "the end, when the work is not done sooner")
	flag.Int64Var(&s.Calls, "calls", 1_000_000, "calls, of revision 2026-07-28")
	flag.Int64Var(&s.Sessions, "sessions", 10_000, "sessions of 2025-11-25 that are opened, used and deleted")
	skill := flag.String("skill", "", "a skill that was built with -tags bench; else it is built")
	server := flag.String("server", "", "instead of skill, a command that serves a tool `echo` on {addr}")
	flag.Parse()
	if s.For < 5*time.Second || s.Calls < 1 || s.Sessions < 1 {
		log.Fatal("soak: -duration is at least 5s, -calls and -sessions at least 1")
	}
	tmp, err := os.MkdirTemp("", "skill-soak-")
	if err != nil {
		log.Fatal("soak: ", err)
	}
	err = soak(s, tmp, *skill, strings.Fields(*server))
	os.RemoveAll(tmp)
	if err != nil {
		log.Fatal("soak: ", err)
	}
}

func soak(s load.Soak, tmp, skill string, server []string) error {
	t := load.Target{Name: "skill", Tool: "BenchEcho", Call: `{"text":"hello world"}`, Want: "hello world", HTTP: true, Modern: true}
	if len(server) > 0 {
		t.Name, t.Args, t.Tool = server[0], server, "echo"
	} else if err := serveSkill(&s, &t, tmp, skill); err != nil {
		return err
	}
	fmt.Printf("%d calls and %d sessions, or %v\n\n", s.Calls, s.Sessions, s.For)
	fmt.Printf("%8s %10s %9s %9s %6s %8s %11s\n", "at", "calls", "sessions", "RSS", "files", "threads", "goroutines")
	first, last, err := s.Run(t, func(x load.Sample) {
		fmt.Printf("%7.0fs %10d %9d %6.1f MB %6d %8d %11d\n", x.At.Seconds(), x.Calls, x.Sessions, float64(x.RSS)/1e6, x.Descriptors, x.Threads, x.Goroutines)
	})
	if err != nil {
		return err
	}
	fmt.Println()
	if calls, sessions := last.Calls-first.Calls, last.Sessions-first.Sessions; calls < s.Calls || sessions < s.Sessions {
		fmt.Printf("the time was over after %d calls and %d sessions\n", calls, sessions)
	}
	return grown(first, last)
}

// serveSkill lets t be the skill that is at that path, or built.
func serveSkill(s *load.Soak, t *load.Target, tmp, skill string) error {
	if skill == "" {
		skill = filepath.Join(tmp, "skill")
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-tags", "bench", "-o", skill, "./cmd/skill")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("go build: %w", err)
		}
	}
	work := filepath.Join(tmp, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // free, as the next will find it
	if err != nil {
		return err
	}
	s.Debug = l.Addr().String()
	l.Close()
	t.Args = []string{skill, "serve", "--workspace", work, "--http={addr}"}
	t.Env = []string{"SKILL_HOME=" + filepath.Join(tmp, "home"), "SKILL_WASM_WARM=false", "SKILL_BENCH_DEBUG=" + s.Debug,
		"SKILL_HTTP_RATE=1000000", "SKILL_HTTP_BURST=1000000"} // the limit is asked, and never reached
	return nil
}

// grown returns what grew by more than it may.
func grown(first, last load.Sample) error {
	var all []error
	for _, x := range []struct {
		what        string
		first, last int64
		most        int64
		unit        int64
	}{
		{"RSS, MiB", first.RSS, last.RSS, moreRSS, 1 << 20},
		{"open files", first.Descriptors, last.Descriptors, moreDescriptors, 1},
		{"threads", first.Threads, last.Threads, moreThreads, 1},
		{"goroutines", first.Goroutines, last.Goroutines, moreGoroutines, 1},
	} {
		more, unit := x.last-x.first, float64(x.unit)
		fmt.Printf("%s: %.4g after the warm-up, %.4g at the end, %+.4g (at most %+.4g)\n", x.what, float64(x.first)/unit, float64(x.last)/unit, float64(more)/unit, float64(x.most)/unit)
		if more > x.most {
			all = append(all, fmt.Errorf("%s grew by %.4g", x.what, float64(more)/unit))
		}
	}
	return errors.Join(all...)
}
