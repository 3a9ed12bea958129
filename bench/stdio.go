package main

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/skillhost/skill/bench/load"
)

const (
	echo    = `{"text":"hello world"}`
	echoed  = "hello world"
	benched = "BenchEcho" // the tool that answers in the host, in cmd/skill's build for this
)

// The names that targets are found by.
const (
	rawLoop    = "raw JSON-RPC loop"
	stockStdio = "go-sdk v1.8.0"
	peerStdio  = "mcp-go v1.2.1"
	skillStdio = "skill, echo in the host"
	skillBash  = "skill, Bash (native, in a cage)"
	skillPlan  = "skill, PlanMode with an open plan (Go, WASM)"

	skillCallback = "skill, SetCallback (Go, WASM)"
)

// stdio compares whole servers on their standard input and output.
func stdio(p programs, n counts) error {
	targets := []load.Target{
		{Name: rawLoop, Args: []string{p.path("raw")}, Tool: "echo", Call: echo, Want: echoed},
		{Name: stockStdio, Args: []string{p.path("stock")}, Tool: "echo", Call: echo, Want: echoed},
		{Name: peerStdio, Args: []string{p.path("mcpgo")}, Tool: "echo", Call: echo, Want: echoed},
		{Name: peerStdio + ", 2026-07-28", Args: []string{p.path("mcpgo")}, Tool: "echo", Call: echo, Want: echoed, Modern: true},
		{Name: skillStdio, Args: p.skill(), Env: p.home("home"), Tool: benched, Call: echo, Want: echoed},
		{Name: skillStdio + ", 2026-07-28", Args: p.skill(), Env: p.home("home"), Tool: benched, Call: echo, Want: echoed, Modern: true},
		{Name: "skill, TaskManager (Go, WASM)", Args: p.skill(), Env: p.home("home"), Tool: "TaskManager", Call: `{"action":"list"}`},
		{Name: skillCallback, Args: p.skill(), Env: p.home("home"), Tool: "SetCallback", Call: `{"action":"list"}`},
		{Name: skillPlan, Args: p.skill(), Env: p.home("home"), Tool: "PlanMode", Call: `{"action":"enter","plan_file":"plan.md"}`},
	}
	if runtime.GOOS == "linux" { // the pause is what an agent takes at least; a process waits by then
		targets = append(targets, load.Target{Name: skillBash, Args: p.skill(), Env: p.home("home"), Tool: "Bash", Call: `{"command":"true"}`, Pause: 50 * time.Millisecond})
	}
	all, err := compare(targets, n, func(t load.Target) (single, full int) {
		switch t.Tool {
		case "TaskManager", "PlanMode", "SetCallback":
			return min(n.single, 300), min(n.full, 600)
		case "Bash":
			return min(n.single, 60), min(n.full, 100)
		}
		return n.single, n.full
	})
	if err != nil {
		return err
	}
	all.print("stdio", stockStdio, peerStdio)
	s := skillStdio
	bash := math.NaN() // not measured, not met
	if runtime.GOOS == "linux" {
		bash = ms(all.p50(skillBash))
	}
	printTargets([]target{
		{"stdio: calls/s of an echo in the host ÷ mcp-go", all.calls(s) / all.calls(peerStdio), 1.3, "×", true},
		{"stdio: calls/s of an echo in the host ÷ go-sdk", all.calls(s) / all.calls(stockStdio), 6, "×", true},
		{fmt.Sprintf("stdio: p99 ÷ p50 with %d outstanding (raw: %.1f)", load.Outstanding, all.tail(rawLoop)), all.tail(s), 3, "×", false},
		{"p50 of an echo in the host, − raw", us(all.p50(s) - all.p50(rawLoop)), 15, "µs", false},
		{"start to the answer of tools/list", ms(median(all.figures[s], func(f load.Figures) time.Duration { return f.Start })), 20, "ms", false},
		{"p50 of Bash with a process that waits", bash, 6, "ms", false},
		{"p50 of SetCallback", ms(all.p50(skillCallback)), 4, "ms", false},
		{"p50 of PlanMode with an open plan", ms(all.p50(skillPlan)), 4, "ms", false},
		{fmt.Sprintf("RSS %v after the start", load.IdleAfter), mb(median(all.figures[s], func(f load.Figures) int64 { return f.IdleRSS })), 30, "MB", false},
	})
	return nil
}
