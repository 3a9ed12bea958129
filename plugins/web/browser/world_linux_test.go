package browser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/egress"
)

// inside is set in the user namespace in which the tests run: Chromium starts
// neither for root nor without a sandbox of its own.
const inside = "BROWSER_TEST_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" || os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}}
	signal.Ignore(os.Interrupt) // the tests have it as well
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "no user namespace for the tests:", err)
		os.Exit(1)
	}
}

// chromium returns the browser to test with. On CI there is one.
func chromium(t testing.TB) string {
	t.Helper()
	path, err := Find("")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("LEFT OUT: %v", err)
	}
	return path
}

// A world is a browser whose one way out is a proxy that lets it go to one
// server.
type world struct {
	*Browser
	t      testing.TB
	path   string
	proxy  string
	server *httptest.Server
	mux    *http.ServeMux
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Browser: &Browser{}, t: t, path: chromium(t), mux: http.NewServeMux()}
	w.server = httptest.NewServer(w.mux)
	t.Cleanup(w.server.Close)
	t.Cleanup(w.Close)
	w.proxy = w.gate("http://" + w.server.Listener.Addr().String())
	return w
}

// gate returns the URL of a proxy that lets pass what entries name.
func (w *world) gate(entries ...string) string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	exit := egress.New(egress.Options{}).Serve(l)
	w.t.Cleanup(func() { exit.Close() })
	var allow capability.Set
	for _, e := range entries {
		c, err := capability.Parse(capability.Network, e, capability.Pos{})
		if err != nil {
			w.t.Fatal(err)
		}
		allow = append(allow, c)
	}
	grant := capability.NewGrant([]capability.Layer{{Name: "manifest", Closed: true, Allow: allow, Table: "[capabilities]"}}, nil)
	url, done := exit.Open("call", grant, 64<<20, nil)
	w.t.Cleanup(done)
	return url
}

func (w *world) html(pattern, body string) {
	w.mux.HandleFunc(pattern, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(out, body)
	})
}

func (w *world) text(pattern, body string) {
	w.mux.HandleFunc(pattern, func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, body) })
}

// visit reads a page of the server, in a generous time.
func (w *world) visit(path string, v Visit) (Seen, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	return w.visitIn(ctx, path, v)
}

func (w *world) visitIn(ctx context.Context, path string, v Visit) (Seen, error) {
	w.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = w.server.URL + path
	}
	v.URL = path
	if v.Most == 0 {
		v.Most = 1 << 20
	}
	if v.Proxy == "" {
		v.Proxy = w.proxy
	}
	return w.Read(ctx, w.path, v)
}

// read is visit for a page that can be read.
func (w *world) read(path string, v Visit) Seen {
	w.t.Helper()
	s, err := w.visit(path, v)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// contains fails the test if text lacks one of parts.
func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in %.2000s", p, text)
		}
	}
}
