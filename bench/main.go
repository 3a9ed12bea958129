// Bench measures skill beside others and prints medians and ratios, all from
// one run: the machine may be slow, a ratio still means something.
//
//	go run ./bench
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/skillhost/skill/bench/load"
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 5, "rounds; medians are printed")
	sequential := flag.Int("sequential", 5000, "calls one at a time, each round")
	pipelined := flag.Int("pipelined", 60000, "calls with 32 outstanding, each round")
	flag.Parse()
	tmp, err := os.MkdirTemp("", "skill-bench-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	fmt.Printf("%s %s/%s, %d CPUs, %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	stdio(tmp, *rounds, *sequential, *pipelined)
	inHost()
}

// stdio compares whole servers.
func stdio(tmp string, rounds, sequential, pipelined int) {
	for name, args := range map[string][]string{
		"skill": {"-tags", "bench", "./cmd/skill"},
		"stock": {"./bench/stock"},
		"raw":   {"./bench/raw"},
	} {
		run("go", append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(tmp, name)}, args...)...)
	}
	work := filepath.Join(tmp, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		log.Fatal(err)
	}
	echo := `{"text":"hello world"}`
	home := []string{"SKILL_HOME=" + filepath.Join(tmp, "home"), "SKILL_WASM_WARM=false"} // compiling beside it is not what is measured
	skill := []string{filepath.Join(tmp, "skill"), "serve", "--workspace", work}
	targets := []load.Target{
		{Name: "raw JSON-RPC loop", Args: []string{filepath.Join(tmp, "raw")}, Tool: "echo", Call: echo},
		{Name: "stock go-sdk v1.8.0", Args: []string{filepath.Join(tmp, "stock")}, Tool: "echo", Call: echo},
		{Name: "skill, echo in the host", Args: skill, Env: home, Tool: "BenchEcho", Call: echo},
		{Name: "skill, TaskManager (Go, WASM)", Args: skill, Env: home, Tool: "TaskManager", Call: `{"action":"list"}`},
	}
	if runtime.GOOS == "linux" { // the pause is what an agent takes at least; a process waits by then
		targets = append(targets, load.Target{Name: "skill, Bash (native, in a cage)", Args: skill, Env: home, Tool: "Bash", Call: `{"command":"true"}`, Pause: 50 * time.Millisecond})
	}
	figures := make([][]load.Figures, len(targets))
	for range rounds { // in turn, so that a slow minute hits all alike
		for i, t := range targets {
			seq, pipe := sequential, pipelined
			switch t.Tool {
			case "TaskManager":
				seq, pipe = min(seq, 300), min(pipe, 600)
			case "Bash":
				seq, pipe = min(seq, 60), min(pipe, 100)
			}
			f, err := load.Measure(t, seq, pipe)
			if err != nil {
				log.Fatalf("%s: %v", t.Name, err)
			}
			figures[i] = append(figures[i], f)
		}
	}
	stock := median(figures[1], func(f load.Figures) float64 { return f.Throughput })
	raw := median(figures[0], func(f load.Figures) time.Duration { return f.P50 })
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "stdio, medians of %d rounds\tstart → tools/list\tRSS\tRSS %v later\tp50\tp99\tp50 − raw\t%d outstanding\t÷ stock\n", rounds, load.IdleAfter, load.Outstanding)
	for i, t := range targets {
		f := figures[i]
		p50 := median(f, func(f load.Figures) time.Duration { return f.P50 })
		calls := median(f, func(f load.Figures) float64 { return f.Throughput })
		fmt.Fprintf(w, "%s\t%.1f ms\t%.1f MB\t%.1f MB\t%.1f µs\t%.1f µs\t%+.1f µs\t%.0f calls/s\t%.2f×\n", t.Name,
			ms(median(f, func(f load.Figures) time.Duration { return f.Start })),
			float64(median(f, func(f load.Figures) int64 { return f.StartRSS }))/1e6,
			float64(median(f, func(f load.Figures) int64 { return f.IdleRSS }))/1e6,
			us(p50), us(median(f, func(f load.Figures) time.Duration { return f.P99 })), us(p50-raw), calls, calls/stock)
	}
	w.Flush()
	fmt.Println()
	echoed := figures[2] // the host and the protocol, without a guest
	printTargets([]target{
		{"throughput of an echo in the host, ÷ stock", median(echoed, func(f load.Figures) float64 { return f.Throughput }) / stock, 4, "×", true},
		{"p50 of an echo in the host, − raw", us(median(echoed, func(f load.Figures) time.Duration { return f.P50 }) - raw), 15, "µs", false},
		{"start to the answer of tools/list", ms(median(echoed, func(f load.Figures) time.Duration { return f.Start })), 20, "ms", false},
		{"p50 of Bash with a process that waits", ms(native(figures)), 6, "ms", false},
		{fmt.Sprintf("RSS %v after the start", load.IdleAfter), float64(median(echoed, func(f load.Figures) int64 { return f.IdleRSS })) / 1e6, 30, "MB", false},
	})
}

// native is the median p50 of Bash; none where it was not measured.
func native(figures [][]load.Figures) time.Duration {
	if len(figures) < 5 {
		return math.MaxInt64
	}
	return median(figures[4], func(f load.Figures) time.Duration { return f.P50 })
}

// inHost runs the benchmarks of the rooms that have a target.
func inHost() {
	var all []result
	for _, b := range [][2]string{
		{"./host/dispatch", "."}, {"./host/audit", "Append"}, {"./host/capability", "Check"}, {"./host/executor/wasm/...", "."},
		{"./host/sandbox", "Start"}, {"./host/executor/plugin", "Spawn|Start|Ready|Warm|Transport"}, {"./host/egress", "Get"},
	} {
		var out bytes.Buffer
		runTo(io.MultiWriter(os.Stdout, &out), "go", "test", "-run=^$", "-bench="+b[1], "-benchmem", "-count=1", b[0])
		all = append(all, results(out.String())...)
	}
	fmt.Println()
	printTargets(inHostTargets(all))
}

func run(name string, args ...string) { runTo(os.Stdout, name, args...) }

func runTo(out io.Writer, name string, args ...string) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Run(); err != nil {
		log.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
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
