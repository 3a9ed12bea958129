package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
)

// A cage is what a child sees of a world: the address of an Exit.
type cage struct {
	*world
	exit *Exit
}

// cage returns a cage around w, whose Exit is closed in the end. Everything it
// started must be gone then.
func (w *world) cage(change ...func(*bounds)) *cage {
	w.t.Helper()
	before := runtime.NumGoroutine()
	w.t.Cleanup(func() { settled(w.t, before) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	limits := exitBounds
	limits.watch = 20 * time.Millisecond
	for _, f := range change {
		f(&limits)
	}
	c := &cage{w, w.broker().serve(l, limits)}
	w.t.Cleanup(func() { c.exit.Close() })
	return c
}

// settled fails unless there are no more goroutines than before, soon.
func settled(t *testing.T, before int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// open opens a call with the network list entries.
func (c *cage) open(entries ...string) *url.URL {
	c.t.Helper()
	return c.url(c.exit.Open("call-1", c.grant(entries...), 0, nil))
}

func (c *cage) url(proxy string, done func()) *url.URL {
	c.t.Helper()
	c.t.Cleanup(done)
	u, err := url.Parse(proxy)
	if err != nil {
		c.t.Fatal(err)
	}
	return u
}

// client returns an HTTP client that goes through proxy, as a child's would.
func (c *cage) client(proxy *url.URL) *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: c.roots}}
	c.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// dialProxy connects to proxy.
func dialProxy(t *testing.T, proxy *url.URL) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	return conn
}

func credentials(proxy *url.URL) string {
	password, _ := proxy.User.Password()
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)) + "\r\n"
}

// say sends text, in which {auth} stands for the credentials, and returns the
// first answer that is final.
func say(t *testing.T, proxy *url.URL, text string) (*http.Response, string) {
	t.Helper()
	conn := dialProxy(t, proxy)
	if _, err := io.WriteString(conn, strings.ReplaceAll(text, "{auth}", credentials(proxy))); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	for err == nil && resp.StatusCode == http.StatusContinue {
		resp, err = http.ReadResponse(r, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

// tunnel opens a tunnel to target and returns it, with the answer's status.
func tunnel(t *testing.T, proxy *url.URL, target string) (net.Conn, int) {
	t.Helper()
	conn := dialProxy(t, proxy)
	if _, err := io.WriteString(conn, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n"+credentials(proxy)+"\r\n"); err != nil {
		t.Fatal(err)
	}
	var answer []byte
	for b := make([]byte, 1); !bytes.HasSuffix(answer, []byte("\r\n\r\n")); answer = append(answer, b[0]) {
		if _, err := io.ReadFull(conn, b); err != nil { // one by one: what follows is the server's
			t.Fatalf("%q, %v", answer, err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), &http.Request{Method: "CONNECT"})
	if err != nil {
		t.Fatal(err)
	}
	return conn, resp.StatusCode
}

// isCut fails unless conn ends without a byte but a TLS alert.
func isCut(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	got, err := io.ReadAll(conn)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Fatal("the tunnel is not cut")
	}
	if len(got) > 0 && !bytes.Equal(got, accessDenied) {
		t.Fatalf("%q came through", got)
	}
}

// program returns the path of a program that the tests need.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("LEFT OUT: ", err)
	}
	return path
}

// authority returns a file with the certificate that c's servers go by.
func (c *cage) authority() string {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.leaf.Certificate[1]}), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// curl runs curl as a child would, and returns what it prints.
func (c *cage) curl(proxy *url.URL, args ...string) (string, error) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), program(c.t, "curl"), append([]string{"-sS", "--max-time", "20", "--cacert", c.authority()}, args...)...)
	cmd.Env = []string{"http_proxy=" + proxy.String(), "https_proxy=" + proxy.String(), "NO_PROXY="}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// layerNamed returns a layer that speaks of the network only.
func layerNamed(t *testing.T, name string, entries ...string) capability.Layer {
	return capability.Layer{Name: name, Table: "[defaults]", Pos: capability.Pos{File: "policy.toml", Line: 3}, Allow: set(t, entries...),
		Speaks: []capability.Topic{{Kind: capability.Network, Verb: capability.Connect}}}
}
