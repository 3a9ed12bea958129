//go:build bench

package main

import (
	"net"
	"net/http"
	_ "net/http/pprof" // registers with http's default mux, which nothing else serves
	"os"
)

// watch serves the program's profiles where SKILL_BENCH_DEBUG says.
func watch() {
	addr := os.Getenv("SKILL_BENCH_DEBUG")
	if addr == "" {
		return
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		panic(err)
	}
	go func() { panic(http.Serve(l, nil)) }()
}
