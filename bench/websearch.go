package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/skillhost/skill/bench/load"
	"github.com/skillhost/skill/skills/websearch/loopback"
)

const skillSearch = "skill, WebSearch with 11 engines of 200 ms (Go, WASM)"

// pageBytes is what a page of results has beside the results, about as much as
// those of the engines.
const pageBytes = 100 << 10

// webSearch measures a search: eleven engines on this machine, each of which
// takes 200 ms, with pages of the size that theirs have.
func webSearch(p programs, n counts) error {
	web := loopback.New()
	web.Slow(200 * time.Millisecond)
	web.Bulk(pageBytes)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: web}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer server.Close()
	base := "http://" + listener.Addr().String()
	settings := "[settings.websearch]\nmax_suspension_ms = 0\npatience = 0\n" // without arXiv's pause between two requests, and all of them are waited for
	for _, name := range loopback.Engines {
		settings += fmt.Sprintf("engines.%s.base_url = %q\n", name, base+"/"+name)
	}
	for name, text := range map[string]string{"config.toml": settings, "policy.toml": fmt.Sprintf("[skills.websearch.capabilities]\nnetwork = [%q]\n", base)} {
		file := filepath.Join(p.path("search-home"), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	all, err := compare([]load.Target{{Name: skillSearch, Args: p.skill(), Env: p.home("search-home"), Tool: "WebSearch", Call: `{"query":"go generics"}`, Want: strings.Join(loopback.Engines[:2], " ok 10; ") + " ok 10"}},
		n, func(load.Target) (single, full int) { return min(n.single, 20), min(n.full, 32) })
	if err != nil {
		return err
	}
	all.print("search")
	printTargets([]target{
		{"p50 of a WebSearch with eleven engines of 200 ms", ms(all.p50(skillSearch)), 260, "ms", false},
		{"CPU of the server for a WebSearch", ms(median(all.figures[skillSearch], func(f load.Figures) time.Duration { return f.Single.CPU })), 15, "ms", false},
	})
	return nil
}
