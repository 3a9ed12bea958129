package streamable

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/streamable/mirror"
	"github.com/skillhost/skill/sdk"
)

// sink is a ResponseWriter that costs nothing.
type sink struct {
	head   http.Header
	status int
	n      int
}

func (s *sink) Header() http.Header         { return s.head }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }

// BenchmarkModernCall is the handler alone: no connection, no client.
func BenchmarkModernCall(b *testing.B) {
	h := New(Options{Room: conversation.NewRoom(newQuiet(), conversation.Options{}), Scope: sdk.Scope{Caller: "local:bench"}})
	body := []byte(modernBody("12345", "tools/call", `"name":"echo","arguments":{"message":"hello world"}`))
	in := bytes.NewReader(body)
	base, err := http.NewRequest("POST", "http://127.0.0.1/mcp", io.NopCloser(in))
	if err != nil {
		b.Fatal(err)
	}
	base.ContentLength = int64(len(body))
	base.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		versionHeader: {"2026-07-28"}, mirror.Method: {"tools/call"}, mirror.Name: {"echo"}}
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	w := &sink{head: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		in.Reset(body)
		c, cancel := context.WithCancel(ctx)
		h.ServeHTTP(w, base.WithContext(c))
		cancel()
		if w.status != 200 {
			b.Fatal(w.status)
		}
	}
}

// quiet is a house that remembers nothing.
type quiet struct{ *house }

func newQuiet() quiet { return quiet{newHouse()} }

func (quiet) Call(context.Context, sdk.Call, func(sdk.Event)) (sdk.Result, error) {
	return sdk.Text("hello world"), nil
}

// BenchmarkIdleSessions measures the memory of sessions with a stream each.
func BenchmarkIdleSessions(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		h := New(Options{Room: conversation.NewRoom(newQuiet(), conversation.Options{})})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		for range 1000 {
			r, err := http.NewRequest("POST", "http://127.0.0.1/mcp", bytes.NewReader([]byte(initializeBody("2025-11-25", `{}`))))
			if err != nil {
				b.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(&sink{head: http.Header{}}, r)
		}
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1000, "B/session")
		if len(h.sessions.byID) != 1000 {
			b.Fatal(len(h.sessions.byID))
		}
		if err := h.Shutdown(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
