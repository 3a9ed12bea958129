package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
	"github.com/skillhost/skill/skills/websearch/loopback"
)

// A world is a small web on this machine, and a host in memory that reaches it
// and nothing else. What the real host does is tested with the real host, in
// cmd/skill.
type world struct {
	t    *testing.T
	web  *loopback.Web
	url  string
	host *guesttest.Host
	set  map[string]any // settings

	mu      sync.Mutex
	engines map[string]map[string]any // of set
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, web: loopback.New(), engines: map[string]map[string]any{}}
	server := httptest.NewServer(w.web)
	t.Cleanup(server.Close)
	w.url = server.URL
	w.host = &guesttest.Host{HTTP: w.fetch}
	for _, name := range loopback.Engines {
		w.engines[name] = map[string]any{"base_url": server.URL + "/" + name}
	}
	w.set = map[string]any{"engines": w.engines, "patience": 0, "timeout_ms": 20_000, "total_timeout_ms": 60_000}
	return w
}

// fetch does a request as the host does, with its words for what goes wrong.
func (w *world) fetch(r guest.Request) (*guest.Response, error) {
	if !strings.HasPrefix(r.URL, w.url+"/") {
		return nil, &sdk.Error{Kind: sdk.Denied, Op: "http.request", What: "network.connect " + r.URL}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), r.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(string(r.Body)))
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, What: err.Error()}
	}
	for name, v := range r.Header {
		req.Header[name] = v
	}
	resp, err := http.DefaultClient.Do(req)
	var body []byte
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, r.Most+1))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &sdk.Error{Kind: sdk.Limit, What: "no complete answer within so many ms", Hint: "timeout_ms of the request bounds it"}
	case err != nil:
		return nil, &sdk.Error{Kind: sdk.Unavailable, What: err.Error()}
	case int64(len(body)) > r.Most:
		return nil, &sdk.Error{Kind: sdk.Limit, What: "the answer is larger than so many bytes", Hint: "max_bytes of the request and http_body in [limits] bound it"}
	}
	return &guest.Response{Status: resp.StatusCode, Header: resp.Header, Body: body, URL: resp.Request.URL.String()}, nil
}

// search calls the tool and holds its result to the schema of the manifest.
func (w *world) search(args any) (reply, sdk.Result) {
	w.t.Helper()
	r, err := w.try(args)
	if err != nil {
		w.t.Fatal(err)
	}
	var out reply
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		w.t.Fatal(err)
	}
	if err := outputSchema(w.t).Check(r.Structured); err != nil {
		w.t.Errorf("%v\n%s", err, r.Structured)
	}
	return out, r
}

func (w *world) try(args any) (sdk.Result, error) {
	w.t.Helper()
	var err error
	w.mu.Lock()
	w.host.Settings, err = json.Marshal(w.set)
	w.mu.Unlock()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := settingsSchema(w.t).Check(w.host.Settings); err != nil {
		w.t.Fatal(err)
	}
	return w.host.Call(w.t.Context(), "WebSearch", args)
}

// only turns all engines off but some.
func (w *world) only(names ...string) {
	for name, set := range w.engines {
		set["enabled"] = strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ")
	}
}

// engine returns the report on one engine.
func (r reply) engine(t *testing.T, name string) report {
	t.Helper()
	for _, e := range r.Engines {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no report on %s in %+v", name, r.Engines)
	return report{}
}

var skill = sync.OnceValues(func() (*manifest.Skill, error) {
	s, err := readManifest()
	return &s, err
})

func ofManifest(t *testing.T) *manifest.Skill {
	t.Helper()
	s, err := skill()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func outputSchema(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.CompileAny(ofManifest(t).Tools[0].Output)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func settingsSchema(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.CompileSettings(ofManifest(t).Settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// soon waits for ok, until a deadline that only a broken program meets.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// stuckUntil answers with a captcha when release is closed.
func stuckUntil(release <-chan struct{}) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
			loopback.Captcha("bing")(rw, r)
		case <-r.Context().Done():
		}
	}
}
