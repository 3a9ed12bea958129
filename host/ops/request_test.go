package ops

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// server starts a server on loopback; the binding may reach it as 127.0.0.1
// and as local.example.com.
func server(t *testing.T, h http.HandlerFunc) (Binding, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	port := s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	b := anyone("a")
	b.Grant = grant(t, "network http://127.0.0.1:"+port, "network http://local.example.com:"+port)
	return b, "http://local.example.com:" + port
}

func TestHTTPRequest(t *testing.T) {
	b, base := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header()["X-Two"] = []string{"1", "2"}
		w.Header().Set("Date", "")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %v %s", r.Method, r.URL, r.Header.Get("X-A"), r.Header["X-B"], body)
	})
	tab, _ := newTable(t)
	a := ask(t, tab.Bind(b), `{"op":"http.request","method":"POST","url":`+quote(base+"/p?q=1#frag")+`,"headers":[["x-a","1"],["X-B","2"],["X-B","3"]]}`, []byte("\x00raw\xff"))
	a.is(t, `{"headers":[["Content-Length","25"],["Content-Type","application/octet-stream"],["Date",""],["X-Two","1"],["X-Two","2"]],"status":418,"url":`+quote(base+"/p?q=1#frag")+`}`)
	if len(a.blobs) != 1 || string(a.blobs[0]) != "POST /p?q=1 1 [2 3] \x00raw\xff" {
		t.Errorf("body %q", a.blobs)
	}
	// No method, no body: a GET. An empty answer is still blob 0.
	a = ask(t, tab.Bind(b), `{"op":"http.request","url":`+quote(base)+`}`)
	if a.err != nil || !strings.HasPrefix(string(a.blobs[0]), "GET / ") {
		t.Errorf("%v %q", a.err, a.blobs)
	}
	a = ask(t, tab.Bind(b), `{"op":"http.request","method":"HEAD","url":`+quote(base)+`}`)
	if a.err != nil || len(a.blobs) != 1 || len(a.blobs[0]) != 0 {
		t.Errorf("%v %q", a.err, a.blobs)
	}
}

func TestHTTPDenied(t *testing.T) {
	var mu sync.Mutex
	var reached int
	b, base := server(t, func(http.ResponseWriter, *http.Request) { reached++ })
	var seen []string
	layers := b.Grant.Layers()
	b.Grant = capability.NewGrant(layers, func(a capability.Access, err error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%s %v", a.Target, err == nil))
	})
	tab, _ := newTable(t)
	a := ask(t, tab.Bind(b), `{"op":"http.request","url":"https://other.example.com/secret/path?token=1"}`)
	a.fails(t, sdk.Denied, "network.connect GET https://other.example.com:443")
	if a.err.Denial == nil || *a.err.Denial != (sdk.Denial{Capability: "network.connect", Resource: "GET https://other.example.com:443"}) || a.err.Hint != "" {
		t.Errorf("denial %+v", a.err.Denial)
	}
	if text := fmt.Sprint(a.h, seen); strings.Contains(text, "token") || strings.Contains(text, "path") {
		t.Error("repeats the path or the query:", text)
	}
	// A name that leads to this machine, which is not listed by number.
	only := anyone("a")
	only.Grant = grant(t, "network "+base)
	ask(t, tab.Bind(only), `{"op":"http.request","url":`+quote(base)+`}`).fails(t, sdk.Denied, "rule net_loopback")
	if reached != 0 || len(seen) != 1 || seen[0] != "GET https://other.example.com:443 false" {
		t.Error("reached", reached, "seen", seen)
	}
}

func TestHTTPRedirect(t *testing.T) {
	b, base := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/two", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		case "/broken":
			w.Header().Set("Location", "http://[::1/?token=1")
			w.WriteHeader(http.StatusFound)
		}
	})
	tab, _ := newTable(t)
	for _, c := range []struct{ path, redirect, url string }{
		{"/", "", "/two"}, {"/", `,"redirect":"follow"`, "/two"}, {"/", `,"redirect":"manual"`, "/"}, {"/away", `,"redirect":"manual"`, "/away"},
	} {
		a := ask(t, tab.Bind(b), `{"op":"http.request","url":`+quote(base+c.path)+c.redirect+`}`)
		if want := base + c.url; a.h["url"] != want || a.err != nil {
			t.Errorf("%v: got %v %v, want %s", c, a.h["url"], a.err, want)
		}
		if manual := strings.Contains(c.redirect, "manual"); manual != (a.h["status"] == float64(302)) {
			t.Errorf("%v: status %v", c, a.h["status"])
		}
	}
	ask(t, tab.Bind(b), `{"op":"http.request","url":`+quote(base+"/away")+`}`).fails(t, sdk.Denied, "rule net_redirect_to_private")
	a := ask(t, tab.Bind(b), `{"op":"http.request","url":`+quote(base+"/broken")+`}`)
	a.fails(t, sdk.Unavailable)
	if strings.Contains(a.err.Error(), "token") {
		t.Error("repeats the query:", a.err)
	}
}

func TestHTTPBounds(t *testing.T) {
	b, base := server(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.(http.Flusher).Flush() // no Content-Length
		w.Write(make([]byte, 1000))
	})
	tab, _ := newTable(t)
	get := func(more string, body ...[]byte) answer {
		t.Helper()
		return ask(t, tab.Bind(b), `{"op":"http.request","method":"POST","url":`+quote(base)+more+`}`, body...)
	}
	if a := get(`,"max_bytes":1000`); a.err != nil || len(a.blobs[0]) != 1000 {
		t.Error(a.err)
	}
	get(`,"max_bytes":999`).fails(t, sdk.Limit, "999 bytes")
	get(`,"max_bytes":0`).fails(t, sdk.Limit)
	b.Limits.HTTPBody = 999
	get("").fails(t, sdk.Limit, "999 bytes")
	get(`,"max_bytes":5000`).fails(t, sdk.Limit, "999 bytes")
	b.Limits.HTTPBody = 1000
	if a := get("", make([]byte, 1000)); a.err != nil {
		t.Error(a.err)
	}
	get("", make([]byte, 1001)).fails(t, sdk.Limit, "request body")
	get(`,"headers":`+quote(make([][2]string, maxHeaders+1))).fails(t, sdk.Limit, "headers")
}

func TestHTTPTimeout(t *testing.T) {
	b, base := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.Write([]byte("begun"))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	tab, _ := newTable(t)
	for _, path := range []string{"/", "/body"} {
		a := ask(t, tab.Bind(b), `{"op":"http.request","timeout_ms":20,"url":`+quote(base+path)+`}`)
		a.fails(t, sdk.Limit, "within 20 ms")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	askCtx(t, ctx, tab.Bind(b), `{"op":"http.request","url":`+quote(base)+`}`).fails(t, sdk.Canceled)
}

// Many at once, and no more than the cap.
func TestHTTPConcurrency(t *testing.T) {
	var now, most atomic.Int64
	var once sync.Once
	full := make(chan struct{})
	b, base := server(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == maxRequests {
			once.Do(func() { close(full) })
		}
		<-full // nobody answers before the cap is reached: they do run together
	})
	tab, _ := newTable(t)
	o := tab.Bind(b)
	var wg sync.WaitGroup
	for range 2 * maxRequests {
		wg.Go(func() {
			if a := ask(t, o, `{"op":"http.request","url":`+quote(base)+`}`); a.err != nil {
				t.Error(a.err)
			}
		})
	}
	wg.Wait()
	if most.Load() != maxRequests {
		t.Errorf("%d at once, want %d", most.Load(), maxRequests)
	}
}

// Bodies that arrive together are bounded together: four of the largest.
func TestHTTPHeldTogether(t *testing.T) {
	const size = 1000
	b, base := server(t, func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, size)) })
	b.Limits.HTTPBody = size
	tab, _ := newTable(t)
	o := tab.Bind(b)
	j := o.(*job)
	get := `{"op":"http.request","url":` + quote(base) + `}`
	j.held.Store((maxHeld - 1) * size) // as three others would have it
	if a := ask(t, o, get); a.err != nil {
		t.Error(a.err)
	}
	j.held.Add(1)
	ask(t, o, get).fails(t, sdk.Limit, "together")
	if n := j.held.Load(); n != (maxHeld-1)*size+1 {
		t.Errorf("%d bytes are counted afterwards", n)
	}
}
