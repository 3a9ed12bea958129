package egress

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
)

// A request whose length is given twice is one request for the server.
func TestExitSmuggling(t *testing.T) {
	const inner = "GET http://other.example.com/smuggled HTTP/1.1\r\nHost: other.example.com\r\n\r\n"
	for name, head := range map[string]string{
		"net_te_and_cl":     "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner),
		"net_cl_and_te":     "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner),
		"net_get_with_body": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(inner), inner),
		"net_chunk_ext":     "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x;a=\"b\"\r\n%s\r\n0\r\nHost: other.example.com\r\n\r\n", len(inner), inner),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var mu sync.Mutex
			var paths []string
			var bodies []string
			w.serve(public+":80", true, func(rw http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				paths, bodies = append(paths, r.Host+r.URL.Path), append(bodies, string(b))
				if len(r.TransferEncoding) > 0 && r.Header["Content-Length"] != nil {
					t.Error("two lengths went out")
				}
			})
			c := w.cage()
			resp, _ := say(t, c.open("http://api.example.com"), "POST http://api.example.com/outer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{auth}"+head)
			mu.Lock()
			defer mu.Unlock()
			if resp.StatusCode != 200 || len(paths) != 1 || paths[0] != "api.example.com/outer" || bodies[0] != inner {
				t.Errorf("%s: the server saw %q with %q", resp.Status, paths, bodies)
			}
			if r := c.records(); len(r) != 1 {
				t.Errorf("recorded %q", r)
			}
		})
	}
}

// A second request on the same connection is judged like the first, and a
// pipelined one that has no credentials is nobody's.
func TestExitKeepAlive(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":80", true, hello)
	proxy := w.cage().open("http://api.example.com")
	one := "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n{auth}\r\n"
	conn := dialProxy(t, proxy)
	all := one + strings.Replace(one, "api", "other", 1) + strings.Replace(one, "{auth}", "", 1) + strings.Replace(one, "{auth}", "{auth}Connection: close\r\n", 1)
	io.WriteString(conn, strings.ReplaceAll(all, "{auth}", credentials(proxy)))
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	var got []string
	for _, part := range strings.Split(string(b), "HTTP/1.1 ")[1:] {
		got = append(got, part[:3])
	}
	if s := strings.Join(got, " "); s != "200 403 407 200" {
		t.Errorf("answers %s:\n%s", s, b)
	}
}

// All bytes of a call count together, each way.
func TestExitBytes(t *testing.T) {
	const limit = 100_000
	for name, v := range map[string]struct {
		entry string
		run   func(c *cage, call func() (*http.Client, func(string) net.Conn)) int // times that 10,000 bytes passed
	}{
		"down, http": {entry: "http://api.example.com", run: func(c *cage, call func() (*http.Client, func(string) net.Conn)) int {
			client, _ := call()
			return times(func() bool {
				resp, err := client.Get("http://api.example.com/")
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				n, err := io.Copy(io.Discard, resp.Body)
				return err == nil && resp.StatusCode == 200 && n == 10_000
			})
		}},
		"up, http": {entry: "POST http://api.example.com", run: func(c *cage, call func() (*http.Client, func(string) net.Conn)) int {
			client, _ := call()
			return times(func() bool {
				resp, err := client.Post("http://api.example.com/", "x/y", bytes.NewReader(make([]byte, 10_000)))
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				if resp.StatusCode == 429 && resp.Header.Get("X-Proxy-Error") != "net_call_bytes" {
					c.t.Error(resp.Header)
				}
				return resp.StatusCode == 200
			})
		}},
		"up and down, tunnel": {entry: "tcp://api.example.com:22", run: func(c *cage, call func() (*http.Client, func(string) net.Conn)) int {
			_, dial := call()
			return times(func() bool {
				conn := dial("api.example.com:22")
				defer conn.Close()
				conn.Write(make([]byte, 10_000))
				n, _ := io.ReadFull(conn, make([]byte, 10_000))
				return n == 10_000
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.serve(public+":80", true, func(rw http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if r.Method == "GET" {
					rw.Write(make([]byte, 10_000))
				}
			})
			w.raw(public+":22", func(conn net.Conn) { io.Copy(conn, conn) })
			c := w.cage(func(b *bounds) { b.bytes = limit / 2 })
			proxy := c.url(c.exit.Open("x", c.grant(v.entry), limit, nil)) // the larger one counts
			got := v.run(c, func() (*http.Client, func(string) net.Conn) {
				return c.client(proxy), func(to string) net.Conn { conn, _ := tunnel(t, proxy, to); return conn }
			})
			if got < 8 || got > 10 {
				t.Errorf("10,000 bytes passed %d times, of a limit of %d", got, limit)
			}
		})
	}
}

// times returns how often f works, at most 20.
func times(f func() bool) int {
	for n := range 20 {
		if !f() {
			return n
		}
	}
	return 20
}

// One call has so many connections at a time; another one is not in its way.
func TestExitFlows(t *testing.T) {
	w := newWorld(t)
	w.quiet()
	c := w.cage(func(b *bounds) { b.flows = 4 })
	one, two := c.open("tcp://api.example.com:22"), c.open("tcp://api.example.com:22")
	var first net.Conn
	for range 4 {
		first, _ = tunnel(t, one, "api.example.com:22")
		hi(t, first)
	}
	resp, _ := say(t, one, "CONNECT api.example.com:22 HTTP/1.1\r\nHost: x\r\n{auth}\r\n")
	if resp.StatusCode != 503 || resp.Header.Get("X-Proxy-Error") != "net_call_connections" || resp.Header.Get("Retry-After") == "" {
		t.Error(resp.Status, resp.Header)
	}
	if _, status := tunnel(t, two, "api.example.com:22"); status != 200 {
		t.Error("another call:", status)
	}
	first.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, status := tunnel(t, one, "api.example.com:22"); status == 200 {
			return
		} else if time.Now().After(end) {
			t.Fatal("a closed tunnel still counts")
		}
	}
}

// Who opens many connections and says nothing, or says it slowly, keeps others
// out for a moment only.
func TestExitFlood(t *testing.T) {
	for name, v := range map[string]struct {
		says  string
		tight func(*bounds)
	}{
		"nothing":       {"", func(b *bounds) { b.head, b.rest, b.linger = 200*time.Millisecond, time.Hour, time.Hour }},
		"a slow header": {"GET http://api.example.com/ HTTP/1.1\r\nX-Slow: ", func(b *bounds) { b.head, b.rest, b.linger = 200*time.Millisecond, time.Hour, time.Hour }},
		"a late body":   {"POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", func(b *bounds) { b.rest, b.linger = 200*time.Millisecond, time.Hour }},
		"one request":   {"GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n", func(b *bounds) { b.head, b.rest, b.linger = time.Hour, time.Hour, 200*time.Millisecond }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.serve(public+":80", true, hello)
			c := w.cage(func(b *bounds) { b.conns = 8 }, v.tight)
			proxy := c.open("http://api.example.com")
			before := runtime.NumGoroutine()
			for range 40 {
				io.WriteString(dialProxy(t, proxy), v.says)
			}
			began := time.Now()
			time.Sleep(50 * time.Millisecond)
			if n := runtime.NumGoroutine(); n > before+30 {
				t.Error(n, "goroutines, before", before)
			}
			resp, _ := say(t, proxy, "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n{auth}\r\n")
			if took := time.Since(began); resp.StatusCode != 200 || took > 20*time.Second {
				t.Error(resp.Status, took)
			}
		})
	}
}

// What goes on without a byte is cut after a while.
func TestExitIdle(t *testing.T) {
	w := newWorld(t)
	w.quiet()
	w.serve(public+":80", true, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := w.cage(func(b *bounds) { b.idle = 100 * time.Millisecond })
	proxy := c.open("tcp://api.example.com:22", "http://api.example.com")
	still, _ := tunnel(t, proxy, "api.example.com:22")
	hi(t, still)
	isCut(t, still)
	plain := dialProxy(t, proxy)
	io.WriteString(plain, "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n"+credentials(proxy)+"\r\n")
	isCut(t, plain)
}

// Who opens a tunnel for TLS has to begin with it soon.
func TestExitSlowHello(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	proxy := w.cage(func(b *bounds) { b.head = 100 * time.Millisecond }).open("api.example.com")
	mute, _ := tunnel(t, proxy, "api.example.com:443")
	half, _ := tunnel(t, proxy, "api.example.com:443")
	half.Write(clientHello(t, "api.example.com", nil)[:50])
	isCut(t, mute)
	isCut(t, half)
}

// Close leaves nothing behind, whatever went on.
func TestExitClose(t *testing.T) {
	w := newWorld(t)
	w.quiet()
	w.serve(public+":80", true, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := w.cage()
	before := runtime.NumGoroutine()
	_, done := c.exit.Open("x", c.grant("tcp://api.example.com:22"), 0, nil)
	proxy := c.open("tcp://api.example.com:22", "http://api.example.com")
	open, _ := tunnel(t, proxy, "api.example.com:22")
	hi(t, open)
	waits := dialProxy(t, proxy)
	io.WriteString(waits, "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n"+credentials(proxy)+"\r\n")
	dialProxy(t, proxy)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := c.exit.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	isCut(t, open)
	done()
	if u, done := c.exit.Open("x", c.grant("*"), 0, nil); u != "" {
		t.Error("a closed exit opened", u)
	} else {
		done()
	}
	if conn, err := net.Dial("tcp", proxy.Host); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
	settled(t, before)
}

// The cage is gone, and its listener with it: Close still ends.
func TestExitListenerClosed(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := w.broker().Serve(l)
	l.Close()
	<-x.served
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// A large transfer takes no memory.
func TestExitStreams(t *testing.T) {
	const total = 100 << 20
	w := newWorld(t)
	sink := sha256.New()
	stream := func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			sink.Reset()
			io.Copy(sink, r.Body)
			io.WriteString(rw, hex.EncodeToString(sink.Sum(nil)))
			return
		}
		io.Copy(rw, pattern(total))
	}
	w.serve(public+":80", true, stream)
	w.serve(public+":443", false, stream)
	c := w.cage()
	client := c.client(c.open("POST,GET http://api.example.com", "api.example.com"))
	sum := sha256.New()
	io.Copy(sum, pattern(total))
	want := hex.EncodeToString(sum.Sum(nil))
	peak := watchMemory(t)
	for _, scheme := range []string{"http", "https"} {
		resp, err := client.Get(scheme + "://api.example.com/")
		if err != nil {
			t.Fatal(err)
		}
		var down hash.Hash = sha256.New()
		if n, err := io.Copy(down, resp.Body); n != total || err != nil || hex.EncodeToString(down.Sum(nil)) != want {
			t.Errorf("%s down: %d bytes, %v", scheme, n, err)
		}
		resp.Body.Close()
		resp, err = client.Post(scheme+"://api.example.com/", "x/y", pattern(total))
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != want {
			t.Errorf("%s up: %s, want %s", scheme, b, want)
		}
		resp.Body.Close()
	}
	if p := peak(); p > 64<<20 {
		t.Errorf("%d MiB of memory", p>>20)
	}
}

// pattern returns n bytes, whose period no buffer's size divides.
func pattern(n int) io.Reader {
	var block [65521]byte
	for i := range block {
		block[i] = byte(i * i >> 3)
	}
	at := 0
	return io.LimitReader(reader(func(b []byte) (int, error) {
		n := copy(b, block[at%len(block):])
		at += n
		return n, nil
	}), int64(n))
}

type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

// watchMemory returns a function that says by how much the heap grew at most.
func watchMemory(t *testing.T) func() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	var top atomic.Uint64
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			top.Store(max(top.Load(), m.HeapAlloc))
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return max(top.Load(), before) - before
	}
}

// A grant that nothing was put in lets nothing out.
func TestExitZeroGrant(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":80", true, hello)
	c := w.cage()
	proxy := c.url(c.exit.Open("x", capability.Grant{}, 0, nil))
	for _, line := range []string{"GET http://api.example.com/", "CONNECT api.example.com:443"} {
		if resp, _ := say(t, proxy, line+" HTTP/1.1\r\nHost: x\r\n{auth}\r\n"); resp.StatusCode != 403 {
			t.Error(line, resp.Status)
		}
	}
	if len(w.lookups)+len(w.dials()) != 0 {
		t.Error("touched the network:", w.lookups, w.dials())
	}
}

// An answer that does not say its length is passed on as it comes, and one
// that breaks off does not look whole.
func TestExitEventStream(t *testing.T) {
	w := newWorld(t)
	next := make(chan bool)
	w.serve(public+":80", true, func(rw http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(rw, "event %d\n", i)
			rw.(http.Flusher).Flush()
			<-next
		}
		panic(http.ErrAbortHandler)
	})
	c := w.cage()
	resp, err := c.client(c.open("http://api.example.com")).Get("http://api.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 8)
	for i := range 3 {
		if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != fmt.Sprintf("event %d\n", i) {
			t.Fatalf("%q, %v", buf, err)
		}
		next <- true
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a broken answer looks whole")
	}
}
