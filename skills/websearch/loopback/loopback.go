// Package loopback is a small web for tests and benchmarks: pages and documents
// made as those of the eleven search engines are, with results that do not
// exist. All of it is written for this purpose; nothing was taken from a page of
// theirs. It does not know how they are read.
package loopback

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Engines are the names of the eleven, in the order of the tool.
var Engines = []string{"duckduckgo", "bing", "brave", "mojeek", "startpage", "mwmbl", "wikipedia", "github", "stackexchange", "hackernews", "arxiv"}

// A Web serves each engine beneath a path that begins with its name, such as
// "/bing/search". The zero value is not ready: use New.
type Web struct {
	mu     sync.Mutex
	faults map[string]http.HandlerFunc
	seen   map[string][]Request
	bulk   int
	delay  time.Duration
}

// A Request is one that an engine was sent.
type Request struct {
	Method, URL, Body string
	Header            http.Header
}

// New returns a Web in which all engines answer well.
func New() *Web { return &Web{faults: map[string]http.HandlerFunc{}, seen: map[string][]Request{}} }

// Fault makes an engine answer by f from now on; nil makes it well again.
func (w *Web) Fault(engine string, f http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[engine] = f
}

// Slow makes every engine wait before it answers.
func (w *Web) Slow(d time.Duration) { w.mu.Lock(); w.delay = d; w.mu.Unlock() }

// Bulk makes every page that much larger, in bytes, as scripts and menus do.
func (w *Web) Bulk(n int) { w.mu.Lock(); w.bulk = n; w.mu.Unlock() }

// Seen returns what an engine was sent so far.
func (w *Web) Seen(engine string) []Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Request(nil), w.seen[engine]...)
}

// ServeHTTP implements http.Handler.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	engine, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.seen[engine] = append(w.seen[engine], Request{r.Method, r.URL.String(), string(body), r.Header.Clone()})
	fault, bulk, delay := w.faults[engine], w.bulk, w.delay
	w.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		}
	}
	if fault != nil {
		fault(rw, r)
		return
	}
	contentType, page := Page(engine, 10, bulk)
	if page == "" {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("Content-Type", contentType)
	fmt.Fprint(rw, page)
}

// Document is the address of the i-th of the documents that there are.
func Document(i int) string { return fmt.Sprintf("https://site-%d.example/doc/%d", i%7, i) }

// places lists which documents an engine has, best first. Engines agree on
// many of them, and not on their order.
func places(engine string, n int) []int {
	at := 0
	for i, e := range Engines {
		if e == engine {
			at = i
		}
	}
	var all []int
	for i := range n {
		all = append(all, (i*(at%3+1)+at)%(2*n))
	}
	return all
}
