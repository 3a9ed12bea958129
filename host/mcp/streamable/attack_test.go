package streamable

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
)

func header(s *site, extra string) string {
	return "POST /mcp HTTP/1.1\r\nHost: " + s.addr + "\r\nContent-Type: application/json\r\n" + extra
}

// gone waits until the server has closed a connection, and returns what it said
// before.
func gone(t *testing.T, c net.Conn) string {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(60 * time.Second))
	text, err := io.ReadAll(c)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Fatalf("still open, after %q", text)
	}
	return string(text)
}

func TestSlowloris(t *testing.T) {
	s := serve(t, Options{Limits: Limits{HeaderTime: 100 * time.Millisecond, BodyTime: 100 * time.Millisecond}})
	for name, text := range map[string]string{
		"header":     "POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: ",
		"nothing":    "",
		"body":       header(s, "Content-Length: 100\r\n\r\n{"),
		"body large": header(s, "Content-Length: 100000\r\n\r\n{"),
		"refused":    header(s, "Origin: http://evil.example\r\nContent-Length: 100\r\n\r\n{"),
		"chunks":     header(s, "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"),
	} {
		c := s.raw(text)
		start := time.Now()
		said := gone(t, c)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: %v", name, took)
		}
		if strings.HasPrefix(name, "body") && !strings.Contains(said, "408") {
			t.Errorf("%s: %q", name, said)
		}
	}
	// A stream outlives these times.
	f := s.stream("POST", "/mcp", modernBody("1", listenMethod, `"notifications":{}`), modernHead(listenMethod, "")...)
	f.want("acknowledged")
	time.Sleep(250 * time.Millisecond)
	select {
	case <-f.res.Request.Context().Done():
		t.Error("the stream has ended")
	default:
	}
	if s.h.streams.Len() != 1 {
		t.Error("the stream has ended")
	}
	if r := s.post(call("1", "wait", `{"gate":"`+open(s, 250*time.Millisecond)+`"}`)); r.status != 200 || !strings.Contains(r.body, "opened") {
		t.Errorf("a slow call: %+v", r)
	}
}

// open opens a gate after a while.
func open(s *site, after time.Duration) string {
	time.AfterFunc(after, func() { close(s.gate("timed")) })
	return "timed"
}

// Clients that never read cost a while, and nothing after.
func TestClientsThatNeverRead(t *testing.T) {
	s := serve(t, Options{Limits: Limits{WriteTime: 200 * time.Millisecond, KeepAlive: 50 * time.Millisecond, Events: 64 << 10}})
	large := call("1", "large", `{"n":20000000}`)
	progress := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"events","arguments":{"n":100000,"message":"` + strings.Repeat("m", 1000) + `"},"_meta":{"progressToken":1}}}`
	session := strings.Join(s.open("2025-11-25", `{}`), "\r\n") + "\r\n"
	for _, text := range []string{
		header(s, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large)),
		header(s, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(progress), progress)),
		header(s, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", session, len(progress), progress)),
	} {
		c := s.raw(text)
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
	}
	s.called(t, 3)
	within(t, func() bool { return s.h.work.Left() == 0 })
	if r := s.post(call("1", "echo", `{"message":"hello"}`)); r.status != 200 {
		t.Errorf("%+v", r)
	}
}

func TestHalfClosed(t *testing.T) {
	s := serve(t, Options{})
	body := call("1", "echo", `{"message":"hello"}`)
	c := s.raw(header(s, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)))
	c.(*net.TCPConn).CloseWrite()
	if said := gone(t, c); !strings.Contains(said, `"text":"hello"`) {
		t.Errorf("a whole request: %q", said)
	}
	c = s.raw(header(s, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body[:len(body)-1])))
	c.(*net.TCPConn).CloseWrite()
	if said := gone(t, c); strings.Contains(said, "hello") || !strings.Contains(said, "408") {
		t.Errorf("half a request: %q", said)
	}
	if n := len(s.seen()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestOversized(t *testing.T) {
	s := serve(t, Options{Limits: Limits{Body: 100_000}})
	c := s.raw(header(s, "Content-Length: 999999999999\r\n\r\n"))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != 413 {
		t.Fatalf("announced: %v %v", res, err)
	}
	c = s.raw(header(s, "Transfer-Encoding: chunked\r\n\r\n"))
	go func() {
		for range 3 {
			fmt.Fprintf(c, "%x\r\n%s\r\n", 50_000, strings.Repeat("[", 50_000))
		}
	}()
	res, err = http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != 413 {
		t.Fatalf("in chunks: %v %v", res, err)
	}
	c = s.raw(header(s, "X-Large: "+strings.Repeat("x", 2*maxHeader)+"\r\n\r\n"))
	if said := gone(t, c); !strings.Contains(said, "431") {
		t.Errorf("header: %q", said)
	}
}

// Two readers of one connection must not see different requests in it.
func TestSmuggling(t *testing.T) {
	s := serve(t, Options{})
	for name, extra := range map[string]string{
		"both lengths":   "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":    "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"odd length":     "Content-Length: +5\r\n\r\n",
		"odd coding":     "Transfer-Encoding: xchunked\r\n\r\n",
		"second request": "Content-Length: 2\r\n\r\n{}GARBAGE\r\n\r\n",
	} {
		c := s.raw(header(s, extra))
		c.(*net.TCPConn).CloseWrite()
		if said := gone(t, c); strings.Contains(said, "200 OK") {
			t.Errorf("%s: %q", name, said)
		}
	}
	if n := len(s.seen()); n > 0 {
		t.Errorf("%d calls", n)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	s := serve(t, Options{Limits: Limits{Connections: 2, HeaderTime: 300 * time.Millisecond}})
	s.raw("")
	s.raw("")
	if r := s.post(ping); r.status != 200 { // once the others have had their time
		t.Errorf("%+v", r)
	}
}

// An accepting counts what it has accepted.
type accepting struct {
	net.Listener
	n atomic.Int32
}

func (a *accepting) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err == nil {
		a.n.Add(1)
	}
	return c, err
}

// neighbours_uncounted: a connection that is being turned away is one of those
// that there may be.
func TestTurnedAwayAreCounted(t *testing.T) {
	inner, err := Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	l, held := &accepting{Listener: inner}, make(chan net.Conn, 2)
	h := New(Options{Room: conversation.NewRoom(newHouse(), conversation.Options{}), Limits: Limits{Connections: 2}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- h.Serve(ctx, l, 5*time.Second, func(l net.Listener) net.Listener { return &turning{l, held, 2} })
	}()
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, second := <-held, <-held
	status := make(chan int, 1)
	go func() {
		res, err := http.Get("http://" + l.Addr().String() + "/healthz")
		if err != nil {
			status <- 0
			return
		}
		res.Body.Close()
		status <- res.StatusCode
	}()
	select {
	case s := <-status:
		t.Errorf("there was room for a third: %d", s)
	case <-time.After(20 * time.Millisecond):
	}
	if n := l.n.Load(); n != 2 {
		t.Errorf("%d are open", n)
	}
	first.Close()
	if s := <-status; s != 200 {
		t.Errorf("once one was closed: %d", s)
	}
	second.Close()
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A turning lets the first n connections not in.
type turning struct {
	net.Listener
	held chan net.Conn
	n    int
}

func (l *turning) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || l.n == 0 {
			return c, err
		}
		l.n--
		l.held <- c
	}
}

func TestDrain(t *testing.T) {
	s := serve(t, Options{})
	head := s.open("2025-11-25", `{}`)
	apart := s.stream("GET", "/mcp", "", head...)
	replies := make(chan reply, 3)
	for i, h := range [][]string{head, nil, modernHead("tools/call", "wait")} {
		body := call("1", "wait", `{"gate":"g"}`)
		if i == 2 {
			body = modernBody("1", "tools/call", `"name":"wait","arguments":{"gate":"g"}`)
		}
		go func() { replies <- s.post(body, h...) }()
	}
	s.called(t, 3)
	conn := s.raw("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	bufio.NewReader(conn).ReadString('\n')
	s.stop()
	within(t, func() bool { return s.h.base.Err() != nil || !s.accepts() })
	close(s.gate("g"))
	for range 3 {
		if r := <-replies; r.status != 200 || !strings.Contains(r.body, "opened") {
			t.Errorf("%+v", r)
		}
	}
	apart.end()
	if err := s.wait(); err != nil {
		t.Error(err)
	}
}

// What does not end is cancelled, and reported if it does not mind.
func TestDrainCancels(t *testing.T) {
	s := serve(t, Options{})
	go http.DefaultClient.Do(s.request(t.Context(), "POST", "/mcp", call("1", "wait", `{"gate":"never"}`)))
	go http.DefaultClient.Do(s.request(t.Context(), "POST", "/mcp", call("1", "wait", `{"gate":"never"}`), s.open("2025-11-25", `{}`)...))
	s.called(t, 2)
	start := time.Now()
	s.stop()
	if err := s.wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took < 4*time.Second {
		t.Errorf("took %v", took)
	}
	within(t, func() bool { return s.cancelled() == 2 })
}

func TestRefusesWhileItDrains(t *testing.T) {
	s := serve(t, Options{})
	s.h.work.Close()
	r := s.post(ping)
	isError(t, r, 503, -32000, "shutting down")
}

// accepts reports whether requests may begin.
func (s *site) accepts() bool {
	if !s.h.work.Begin() {
		return false
	}
	s.h.work.End()
	return true
}
