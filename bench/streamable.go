package main

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/skillhost/skill/bench/load"
)

const (
	rawHTTP   = "raw handler of net/http"
	stockHTTP = "go-sdk v1.8.0, 2026-07-28"
	peerHTTP  = "mcp-go v1.2.1, 2026-07-28"
	skillHTTP = "skill, 2026-07-28"
)

// The servers that listen.
func (p programs) stockWeb(more ...string) []string {
	return append([]string{p.path("stock"), "-http", "{addr}"}, more...)
}
func (p programs) peerWeb(more ...string) []string {
	return append([]string{p.path("mcpgo"), "-http", "{addr}"}, more...)
}
func (p programs) skillWeb() []string { return p.skill("--http={addr}") }

// streamable compares whole servers on streamable HTTP: connections that are
// kept alive, and answers in JSON where a server can.
func streamable(p programs, n counts) error {
	targets := []load.Target{
		{Name: rawHTTP, Args: []string{p.path("raw"), "-http", "{addr}"}, Modern: true},
		{Name: stockHTTP, Args: p.stockWeb("-stateless"), Tool: "echo", Modern: true},
		{Name: peerHTTP, Args: p.peerWeb(), Tool: "echo", Modern: true},
		{Name: skillHTTP, Args: p.skillWeb(), Env: p.home("web"), Tool: benched, Modern: true},
		{Name: "go-sdk v1.8.0, session", Args: p.stockWeb(), Tool: "echo", Session: true},
		{Name: "mcp-go v1.2.1, session", Args: p.peerWeb(), Tool: "echo", Session: true},
		{Name: "skill, session", Args: p.skillWeb(), Env: p.home("web"), Tool: benched, Session: true},
		{Name: "go-sdk v1.8.0, no session", Args: p.stockWeb("-stateless"), Tool: "echo"},
		{Name: "mcp-go v1.2.1, no session", Args: p.peerWeb("-stateless"), Tool: "echo"},
		{Name: "skill, no session", Args: p.skillWeb(), Env: p.home("web"), Tool: benched},
	}
	for i := range targets {
		t := &targets[i]
		t.HTTP, t.Call, t.Want = true, echo, echoed
	}
	all, err := compare(targets, n, func(t load.Target) (single, full int) { return n.single, n.full / 2 })
	if err != nil {
		return err
	}
	all.print("HTTP", stockHTTP, peerHTTP)
	printTargets([]target{
		{"HTTP 2026-07-28: calls/s of an echo in the host ÷ mcp-go", all.calls(skillHTTP) / all.calls(peerHTTP), 2, "×", true},
		{"HTTP 2026-07-28: calls/s of an echo in the host ÷ go-sdk", all.calls(skillHTTP) / all.calls(stockHTTP), 10, "×", true},
		{fmt.Sprintf("HTTP 2026-07-28: p99 ÷ p50 with %d outstanding (raw: %.1f)", load.Outstanding, all.tail(rawHTTP)), all.tail(skillHTTP), 3, "×", false},
	})
	return nil
}

// manySessions is how many are open at a time.
const manySessions = 1000

// sessions looks at the memory of servers with many open sessions.
func sessions(p programs, _ counts) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d sessions of 2025-11-25, RSS\tnone\topen\twith a stream of each\topening one\n", manySessions)
	var held load.Hold
	for _, t := range []load.Target{
		{Name: "go-sdk v1.8.0", Args: p.stockWeb(), Tool: "echo"},
		{Name: "mcp-go v1.2.1", Args: p.peerWeb(), Tool: "echo"},
		{Name: "skill", Args: p.skillWeb(), Env: p.home("web"), Tool: benched},
	} {
		t.HTTP, t.Session, t.Call, t.Want = true, true, echo, echoed
		var err error
		if held, err = load.Sessions(t, manySessions); err != nil { // skill's are the last
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		fmt.Fprintf(w, "%s\t%.1f MB\t%.1f MB\t%.1f MB\t%.0f µs\n", t.Name, mb(held.None), mb(held.Open), mb(held.Streams), us(held.Opening))
	}
	w.Flush()
	fmt.Println()
	printTargets([]target{
		{fmt.Sprintf("%d open sessions of 2025-11-25, RSS", manySessions), mb(held.Open), 60, "MB", false},
	})
	return nil
}

// listing lists many tools.
func listing(p programs, n counts) error {
	if err := p.manyTools("many"); err != nil {
		return err
	}
	tools := fmt.Sprintf("-tools=%d", manyTools)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "tools/list, p50\ttools\tsize\tstdio\tHTTP, 2026-07-28")
	var pipe, web time.Duration
	for _, s := range []struct {
		name  string
		stdio []string
		web   []string
		env   []string
	}{
		{"go-sdk v1.8.0", []string{p.path("stock"), tools}, p.stockWeb("-stateless", tools), nil},
		{"mcp-go v1.2.1", []string{p.path("mcpgo"), tools}, p.peerWeb(tools), nil},
		{"skill", p.skill(), p.skillWeb(), p.home("many")},
	} {
		var count, size int
		var err error
		if pipe, count, size, err = load.Listing(load.Target{Name: s.name, Args: s.stdio, Env: s.env}, listings); err != nil {
			return err
		}
		if web, _, _, err = load.Listing(load.Target{Name: s.name, Args: s.web, Env: s.env, HTTP: true, Modern: true}, listings); err != nil {
			return err
		}
		if count != manyTools {
			return fmt.Errorf("%s lists %d tools", s.name, count)
		}
		fmt.Fprintf(w, "%s\t%d\t%d KB\t%.2f ms\t%.2f ms\n", s.name, count, size/1000, ms(pipe), ms(web))
	}
	w.Flush()
	fmt.Println()
	printTargets([]target{
		{fmt.Sprintf("tools/list of %d tools on stdio, p50", manyTools), ms(pipe), 2, "ms", false},
		{fmt.Sprintf("tools/list of %d tools on HTTP, p50", manyTools), ms(web), 2, "ms", false},
	})
	return nil
}

// listings is how often the tools are listed.
const listings = 200
