// Package relay is the proxy of one page of a browser: it adds the credentials
// of a call to what the page asks for, passes it on to the proxy of the cage,
// which decides, and remembers what that refused. It decides nothing itself.
package relay

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/sdk"
)

// The bounds of one page's traffic.
const (
	MaxTraffic = 64 << 20 // bytes to the browser, as they travel
	maxBlocked = 20       // refusals that are told of
	maxReason  = 1 << 10  // bytes of the reason of one
	headTime   = 10 * time.Second
)

// A Block is something that a page asked for and was refused.
type Block struct {
	Host   string // and port, as it was asked for
	Reason string // in the words of the cage's proxy
}

// A Relay is the proxy of one page. The browser never has the credentials that
// it adds.
type Relay struct {
	upstream *url.URL
	listener net.Listener
	server   *http.Server
	plain    *http.Transport
	got      atomic.Int64
	over     func() // called once, when there was too much

	mu      sync.Mutex
	blocked []Block
	tunnels map[net.Conn]struct{} // nil once closed
}

// New returns a Relay that has no way out before Begin. over is called, once,
// when the page was sent too much.
func New(over func()) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "browser", What: "a listener for the page's proxy", Err: err}
	}
	r := &Relay{listener: l, over: sync.OnceFunc(over), tunnels: map[net.Conn]struct{}{}}
	r.server = &http.Server{Handler: http.HandlerFunc(r.serve), ReadHeaderTimeout: headTime, DisableGeneralOptionsHandler: true}
	return r, nil
}

// Begin serves, and passes on to the proxy at upstream, which a call was given.
func (r *Relay) Begin(upstream string) error {
	u, err := url.Parse(upstream)
	if err != nil || u.Host == "" {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "browser", What: "this call has no way out for a browser"}
	}
	r.upstream = u
	r.plain = &http.Transport{Proxy: http.ProxyURL(u), DisableCompression: true, MaxIdleConnsPerHost: 16, MaxConnsPerHost: 32}
	go func() { _ = r.server.Serve(r.listener) }() // until it is closed
	return nil
}

// Address is what the browser is told.
func (r *Relay) Address() string { return "http://" + r.listener.Addr().String() }

// Close cuts everything that goes on.
func (r *Relay) Close() {
	_ = r.server.Close()
	_ = r.listener.Close() // if it never served
	if r.plain != nil {
		r.plain.CloseIdleConnections()
	}
	r.mu.Lock()
	tunnels := r.tunnels
	r.tunnels = nil
	r.mu.Unlock()
	for c := range tunnels {
		c.Close()
	}
}

// Blocks returns what was refused so far.
func (r *Relay) Blocks() []Block {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.blocked)
}

// refused remembers a refusal. A page may try thousands of times.
func (r *Relay) refused(host string, body io.Reader) {
	text, _ := io.ReadAll(io.LimitReader(body, maxReason))
	b := Block{Host: host, Reason: strings.TrimSpace(strings.TrimPrefix(strings.ToValidUTF8(string(text), ""), "skill: "))}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.blocked) < maxBlocked && !slices.Contains(r.blocked, b) {
		r.blocked = append(r.blocked, b)
	}
}

// isRefusal reports whether the proxy refused it. No server can say so: the
// proxy takes the header from what it passes on.
func isRefusal(resp *http.Response) bool { return resp.Header.Get("X-Proxy-Error") != "" }

func (r *Relay) serve(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodConnect {
		r.tunnel(w, req)
		return
	}
	out := req.Clone(req.Context())
	out.RequestURI = ""
	out.Header.Del("Proxy-Connection")
	out.Header.Del("Proxy-Authorization")
	resp, err := r.plain.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	if isRefusal(resp) {
		r.refused(req.URL.Host, resp.Body)
		panic(http.ErrAbortHandler) // there is no answer: an empty one would be a page
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(flusher{w}, r.count(resp.Body)); err != nil {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
}

// flusher sends on at once what comes in pieces.
type flusher struct{ http.ResponseWriter }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	if err == nil && n < 4<<10 {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

// count counts what is read, and fails when it is too much.
func (r *Relay) count(src io.Reader) io.Reader { return &meter{src, r} }

type meter struct {
	io.Reader
	relay *Relay
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	if m.relay.got.Add(int64(n)) > MaxTraffic {
		m.relay.over()
		return 0, io.ErrShortBuffer
	}
	return n, err
}

// tunnel serves a CONNECT.
func (r *Relay) tunnel(w http.ResponseWriter, req *http.Request) {
	up, answer, resp, err := r.connect(req.Context(), req.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer up.Close()
	if resp.StatusCode != http.StatusOK {
		if isRefusal(resp) {
			r.refused(req.Host, resp.Body)
		}
		w.WriteHeader(resp.StatusCode)
		return
	}
	down, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer down.Close()
	if !r.keep(up, down) {
		return
	}
	defer r.forget(up, down)
	if _, err := io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(up, buffered)
		closeWrite(up)
	}()
	_, _ = io.Copy(down, r.count(answer))
	closeWrite(down)
	up.Close() // the server has said all that it will
	down.Close()
	<-done
}

// connect asks the cage's proxy for a tunnel to host.
func (r *Relay) connect(ctx context.Context, host string) (net.Conn, *bufio.Reader, *http.Response, error) {
	up, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.upstream.Host)
	if err != nil {
		return nil, nil, nil, err
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: host}, Host: host, Header: http.Header{}}
	if u := r.upstream.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if !r.keep(up) {
		err = net.ErrClosed
	}
	defer r.forget(up)
	answer := bufio.NewReader(up)
	var resp *http.Response
	if err == nil {
		err = req.Write(up)
	}
	if err == nil {
		resp, err = http.ReadResponse(answer, req)
	}
	if err != nil {
		up.Close()
		return nil, nil, nil, err
	}
	return up, answer, resp, nil
}

// keep notes connections that Close is to cut, and reports whether they may go
// on.
func (r *Relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.tunnels == nil {
			c.Close()
			continue
		}
		r.tunnels[c] = struct{}{}
	}
	return r.tunnels != nil
}

func (r *Relay) forget(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.tunnels, c)
	}
}

func closeWrite(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}
