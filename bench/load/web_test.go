package load

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAnswers(t *testing.T) {
	for _, x := range []struct {
		name, raw string
		want      answer
		fails     bool
	}{
		{name: "length", raw: "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nMcp-Session-Id: abc\r\n\r\n{}", want: answer{status: 200, session: "abc", body: []byte("{}")}},
		{name: "none", raw: "HTTP/1.1 202 Accepted\r\n\r\n", want: answer{status: 202, body: []byte{}}},
		{name: "chunks", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", want: answer{status: 200, body: []byte("abcde")}},
		{name: "stream", raw: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n18\r\ndata: \n\ndata: {\"id\":1}\n\n\r\n0\r\n\r\n", want: answer{status: 200, stream: true, body: []byte(`{"id":1}`)}},
		{name: "not_http", raw: "SSH-2.0-OpenSSH\r\n", fails: true},
		{name: "cut_short", raw: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", fails: true},
		{name: "length_of_a_terabyte", raw: "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n", fails: true},
		{name: "chunk_of_a_gigabyte", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n", fails: true},
		{name: "chunk_without_a_size", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", fails: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			here, there := net.Pipe()
			go func() {
				_, _ = http.ReadRequest(bufio.NewReader(there))
				_, _ = there.Write([]byte(x.raw))
				there.Close()
			}()
			c := &conn{c: here, r: bufio.NewReader(here)}
			a, err := c.do([]byte("POST /mcp HTTP/1.1\r\nHost: x\r\n"), nil)
			if (err != nil) != x.fails {
				t.Fatalf("%+v %v", a, err)
			}
			if err == nil && (a.status != x.want.status || a.session != x.want.session || a.stream != x.want.stream || string(a.body) != string(x.want.body)) {
				t.Errorf("%+v, want %+v", a, x.want)
			}
		})
	}
}

// TestBadAnswers is of servers that answer, but not what was asked.
func TestBadAnswers(t *testing.T) {
	target := Target{Tool: "echo", Call: `{}`, Want: "hello", HTTP: true, Modern: true}
	for name, body := range map[string]string{
		"":               `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"hello"}]}}`,
		"error":          `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"hello"}}`,
		"is_error":       `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"text":"hello"}],"isError":true}}`,
		"other_text":     `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`,
		"other_id":       `{"jsonrpc":"2.0","id":1%s,"result":{"content":[{"type":"text","text":"hello"}]}}`,
		"no_id":          `{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"hello"}]}}%.0s`,
		"id_of_a_string": `{"jsonrpc":"2.0","id":"%s","result":{"content":[{"type":"text","text":"hello"}]}}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m struct{ ID json.RawMessage }
			if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, body, m.ID)
		}))
		addr := strings.TrimPrefix(s.URL, "http://")
		c, err := dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		one, err := target.open(c, addr)
		if err == nil {
			err = one.call(c, 7)
		}
		if (err == nil) != (name == "") {
			t.Errorf("%s: %v", name, err)
		}
		c.c.Close()
		s.Close()
	}
}

// A leaking server keeps a megabyte of each session. It is this test itself,
// started again.
func TestMain(m *testing.M) {
	if addr := os.Getenv("LOAD_TEST_LEAK"); addr != "" {
		leak(os.Args[1])
		return
	}
	os.Exit(m.Run())
}

func leak(addr string) {
	var mu sync.Mutex
	var kept [][]byte
	http.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		if m.Method == "initialize" {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = byte(i)
			}
			mu.Lock()
			kept = append(kept, b)
			w.Header().Set("Mcp-Session-Id", fmt.Sprint(len(kept)))
			mu.Unlock()
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"","tools":[]}}`, m.ID)
	})
	http.HandleFunc("GET /mcp", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	http.HandleFunc("DELETE /mcp", func(http.ResponseWriter, *http.Request) {})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(addr, nil))
}

func TestMeasure(t *testing.T) {
	f, err := Measure(leaking(t, true), 20, 100)
	if err != nil {
		t.Fatal(err)
	}
	if f.Start <= 0 || f.Single.P50 <= 0 || f.Single.P99 < f.Single.P50 || f.Full.Calls <= 0 || f.Full.P99 < f.Full.P50 {
		t.Errorf("%+v", f)
	}
}

func leaking(t *testing.T, modern bool) Target {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Target{Name: "leak", Args: []string{self, "{addr}"}, Env: []string{"LOAD_TEST_LEAK=1"}, Tool: "echo", Call: `{}`, Want: "result", HTTP: true, Modern: modern, Session: !modern}
}

func TestSessionsAndSoakSeeALeak(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skipf("LEFT OUT: no memory of a process without /proc: %v", err)
	}
	h, err := Sessions(leaking(t, false), 50)
	if err != nil {
		t.Fatal(err)
	}
	if h.Open-h.None < 40<<20 || h.Streams < h.Open {
		t.Errorf("%+v, and 50 MB are kept", h)
	}
	k := Soak{Calls: 1000, Sessions: 60, For: 30 * time.Second, Every: 100 * time.Millisecond, Rest: 200 * time.Millisecond}
	n := 0
	first, last, err := k.Run(leaking(t, true), func(Sample) { n++ })
	if err != nil {
		t.Fatal(err)
	}
	if last.RSS-first.RSS < 40<<20 || last.Calls-first.Calls != k.Calls || last.Sessions-first.Sessions != k.Sessions || n < 2 {
		t.Errorf("%+v, then %+v, in %d samples", first, last, n)
	}
	if last.Descriptors > first.Descriptors+8 {
		t.Errorf("descriptors: %+v, then %+v", first, last)
	}
}
