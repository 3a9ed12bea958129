package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/skills/websearch/loopback"
)

// An openWeb is the eleven engines on this machine, and a house whose operator lets
// WebSearch reach them.
type openWeb struct {
	*house
	*loopback.Web
	url string
}

func newWeb(t *testing.T) *openWeb {
	t.Helper()
	w := &openWeb{house: newHouse(t), Web: loopback.New()}
	server := httptest.NewServer(w.Web)
	t.Cleanup(server.Close)
	w.url = server.URL
	w.allow()
	w.set("")
	return w
}

// allow makes the small web, and more, all that WebSearch may reach.
func (w *openWeb) allow(more ...string) {
	w.t.Helper()
	list, err := json.Marshal(append(more, w.url))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("policy.toml", "[skills.websearch.capabilities]\nnetwork = "+string(list)+"\n")
}

// set writes the settings: where the engines are, and more.
func (w *openWeb) set(more string) {
	w.t.Helper()
	text := "[settings.websearch]\npatience = 0\ntimeout_ms = 20000\ntotal_timeout_ms = 60000\n"
	for _, name := range loopback.Engines {
		text += fmt.Sprintf("engines.%s.base_url = %q\n", name, w.url+"/"+name)
	}
	w.write("config.toml", text+more)
}

type searched struct {
	IsError bool
	Content []struct{ Text string }
	Found   struct {
		Results []struct {
			Title, URL string
			Engines    []string
		}
		Engines []searchedEngine
		TookMS  int `json:"took_ms"`
	} `json:"structuredContent"`
}

type searchedEngine struct {
	Name, Status, Detail string
	Count                int
	Until                string `json:"suspended_until"`
}

func (s searched) engine(t *testing.T, name string) searchedEngine {
	t.Helper()
	i := slices.IndexFunc(s.Found.Engines, func(e searchedEngine) bool { return e.Name == name })
	if i < 0 {
		t.Fatalf("no report on %s: %+v", name, s)
	}
	return s.Found.Engines[i]
}

// search runs the binary once.
func (w *openWeb) search(status int, args string, env ...string) (s searched, raw string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, built.skill, "call", "WebSearch", args, "--json")
	cmd.Dir, cmd.Env = w.work, append(w.env(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		w.t.Fatalf("WebSearch %s: %v, want status %d\n%s%s", args, err, status, out.String(), errs.String())
	}
	if status == 0 || status == 1 && out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &s); err != nil {
			w.t.Fatalf("%v\n%s", err, out.String())
		}
	}
	return s, strings.ReplaceAll(out.String()+errs.String(), `\"`, `"`)
}

// TestWebSearch: the real binary, the real module, eleven engines.
func TestWebSearch(t *testing.T) {
	w := newWeb(t)
	w.Bulk(50_000)
	s, raw := w.search(0, `{"query": "go generics", "max_results": 50}`)
	if s.IsError || len(s.Found.Engines) != 11 || len(s.Found.Results) != 50 || len(s.Found.Results[0].Engines) < 3 {
		t.Fatal(raw)
	}
	for _, e := range s.Found.Engines {
		if e.Status != "ok" || e.Count != 10 || len(w.Seen(e.Name)) != 1 {
			t.Errorf("%+v", e)
		}
	}
	if text := s.Content[0].Text; !strings.Contains(text, "<search_results origin=") || !strings.Contains(text, "Engines: duckduckgo ok 10") {
		t.Error(text)
	}
	w.verify(0)
}

// TestWebSearchStates: how an engine does is told apart from how it would have
// to do for "nothing found", through the host as it is.
func TestWebSearchStates(t *testing.T) {
	w := newWeb(t)
	w.set("engines.github.timeout_ms = 300\n")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect was followed to where nobody allowed it")
	}))
	t.Cleanup(elsewhere.Close)
	states := map[string]struct {
		fault http.HandlerFunc
		want  string
	}{
		"duckduckgo":    {loopback.Captcha("duckduckgo"), "captcha"},
		"bing":          {nil, "ok"},
		"brave":         {loopback.Text(429, "slow down"), "rate_limited"},
		"mojeek":        {loopback.Text(403, "go away"), "blocked"},
		"startpage":     {loopback.Redirect(elsewhere.URL), "denied"},
		"mwmbl":         {loopback.Malformed("mwmbl"), "malformed"},
		"wikipedia":     {loopback.Huge, "too_large"},
		"github":        {loopback.Stuck, "timeout"},
		"stackexchange": {loopback.Gzip("stackexchange"), "ok"},
		"hackernews":    {loopback.Brotli, "malformed"},
		"arxiv":         {loopback.Empty("arxiv"), "empty"},
	}
	for name, s := range states {
		w.Fault(name, s.fault)
	}
	s, raw := w.search(0, `{"query": "x"}`)
	for name, want := range states {
		if e := s.engine(t, name); e.Status != want.want {
			t.Errorf("%+v, want %s", e, want.want)
		}
	}
	if s.IsError || len(s.Found.Results) == 0 {
		t.Error(raw)
	}
	// What is known of an engine outlives the process.
	again, raw := w.search(0, `{"query": "x"}`)
	for _, name := range []string{"brave", "mojeek"} {
		if e := again.engine(t, name); e.Status != "suspended" || e.Until != s.engine(t, name).Until || len(w.Seen(name)) != 1 {
			t.Errorf("%+v after %+v\n%s", e, s.engine(t, name), raw)
		}
	}
}

// TestWebSearchHostile: answers that attack whoever reads them.
func TestWebSearchHostile(t *testing.T) {
	w := newWeb(t)
	faults := map[string]http.HandlerFunc{
		"duckduckgo": loopback.Bomb, "bing": loopback.Redirect(w.url + "/bing/search"), "brave": loopback.Redirect("http://169.254.169.254/latest/meta-data/"),
		"mojeek": loopback.Redirect("file:///etc/passwd"), "startpage": loopback.Text(200, strings.Repeat("<div>", 300_000)), "mwmbl": loopback.Text(200, strings.Repeat("[", 500_000)),
		"wikipedia": loopback.Text(200, `{"query":{"search":`), "github": loopback.Text(200, strings.Repeat("\"\\", 200_000)), "stackexchange": loopback.Text(999, ""),
		"hackernews": loopback.Text(200, strings.Repeat(`<a href="`, 100_000)), "arxiv": loopback.Text(200, "<entry>"+strings.Repeat("<id>&#x41;</id>", 50_000)),
	}
	for name, f := range faults {
		w.Fault(name, f)
	}
	s, raw := w.search(1, `{"query": "x"}`)
	for name, want := range map[string]string{"duckduckgo": "too_large", "bing": "error", "brave": "denied", "mojeek": "error", "startpage": "malformed", "mwmbl": "malformed", "wikipedia": "malformed", "github": "malformed", "hackernews": "malformed"} {
		if e := s.engine(t, name); e.Status != want && !(name == "mojeek" && (e.Status == "denied" || e.Status == "error")) {
			t.Errorf("%+v, want %s", e, want)
		}
	}
	if !s.IsError || strings.Contains(s.Content[0].Text, "No results for") {
		t.Error(raw)
	}
	w.verify(0)
}

// TestWebSearchLate: a search does not wait for one when the others are there.
func TestWebSearchLate(t *testing.T) {
	w := newWeb(t)
	w.write("config.toml", strings.Replace(w.read("config.toml"), "patience = 0", "patience = 1.5", 1))
	w.Fault("brave", loopback.Stuck)
	s, raw := w.search(0, `{"query": "x"}`)
	if e := s.engine(t, "brave"); e.Status != "late" || e.Until != "" || s.Found.TookMS >= 20_000 {
		t.Error(raw)
	}
}

// TestWebSearchDenied: until the operator says so, nothing beside the known
// engines is reached, whatever the settings say; and what a setting says, a
// caller cannot.
func TestWebSearchDenied(t *testing.T) {
	w := newWeb(t)
	w.write("policy.toml", "")
	s, raw := w.search(1, `{"query": "x"}`)
	for _, e := range s.Found.Engines {
		if e.Status != "denied" || len(w.Seen(e.Name)) != 0 {
			t.Errorf("%+v", e)
		}
	}
	if !s.IsError || len(s.Found.Engines) != 11 {
		t.Error(raw)
	}
	if _, raw := w.search(2, `{"query": "x", "base_url": "http://127.0.0.1:1"}`); !strings.Contains(raw, `unknown "base_url"`) {
		t.Error(raw)
	}
}

// TestWebSearchKey: an engine of the operator's own gets the operator's key
// from the host. The module does not see it, even if the server says it.
func TestWebSearchKey(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("LEFT OUT: only on Linux does a variable say which authorities are trusted")
	}
	w := newWeb(t)
	const key = "k3y-that-nobody-sees"
	var mu sync.Mutex
	var got []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("X-Key")+" "+r.URL.RawQuery)
		fmt.Fprintf(rw, `{"hits":[{"u":"https://found.example/%s","t":"you sent %s"}]}`, r.Header.Get("X-Key"), r.Header.Get("X-Key")+r.URL.Query().Get("token"))
	}))
	t.Cleanup(server.Close)
	authority := filepath.Join(w.home, "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "[settings.websearch]\n"
	for _, name := range loopback.Engines {
		text += "engines." + name + ".enabled = false\n"
	}
	w.write("config.toml", text+fmt.Sprintf("[settings.websearch.engines.mine]\ntype = \"json\"\nbase_url = %q\nquery = \"q\"\nfields = { results = \"hits\", url = \"u\", title = \"t\" }\n", server.URL+"/find"))
	for where, want := range map[string]string{"header = \"X-Key\"\nformat = \"{}\"": key + " q=x+y", "query = \"token\"\nformat = \"{}\"": " q=x+y&token=" + key} {
		mu.Lock()
		got = nil
		mu.Unlock()
		w.write("policy.toml", fmt.Sprintf("[skills.websearch.capabilities]\nnetwork = [%[1]q]\n[secrets.WEBSEARCH_KEY_1]\nsource = \"env:SEARCH_KEY\"\nhosts = [%[1]q]\n%[2]s\n", server.URL, where))
		s, raw := w.search(0, `{"query": "x y"}`, "SSL_CERT_FILE="+authority, "SEARCH_KEY="+key)
		mu.Lock()
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%s: the server got %q, want %q", where, got, want)
		}
		mu.Unlock()
		if strings.Contains(raw, key) || len(s.Found.Results) != 1 || !strings.Contains(s.Found.Results[0].Title, "[secret WEBSEARCH_KEY_1]") {
			t.Error(raw)
		}
	}
	if record := w.run(0, "audit", "tail"); strings.Contains(record, key) {
		t.Error("the record has the key")
	}
}

// TestWebSearchSettings: settings that are wrong refuse the tool, by the line
// and the key, and nothing else.
func TestWebSearchSettings(t *testing.T) {
	w := newWeb(t)
	for text, want := range map[string]string{
		"# mine\n[settings.websearch]\ntimeout_ms = \"3s\"\n":                  "config.toml:2: [settings.websearch] is not what the skill \"websearch\" takes: settings: /timeout_ms: want integer",
		"[settings.websearch]\nengines.bing.weigth = 2\n":                      `/engines/bing: unknown "weigth"`,
		"[settings.websearch.engines.own]\nbase_url = \"https://a.example\"\n": `engines.own: there is no engine and no type "own"`,
	} {
		w.write("config.toml", text)
		if _, raw := w.search(1, `{"query": "x"}`); !strings.Contains(raw, want) {
			t.Errorf("%q: %s", text, raw)
		}
		w.run(0, "call", "TaskManager", `{"action":"list"}`)
	}
	w.write("config.toml", "[settings.websearch]\ntimeout_ms = \"3s\"\n")
	if out := w.run(1, "doctor"); !strings.Contains(out, "settings") || !strings.Contains(out, "PROBLEM") || !strings.Contains(out, "/timeout_ms: want integer") {
		t.Error(out)
	}
}

// TestWebSearchServed: through a client's connection, with several searches at
// a time.
func TestWebSearchServed(t *testing.T) {
	w := newWeb(t)
	s := w.serve().shake()
	const n = 4
	for i := range n {
		s.call(fmt.Sprint(i), "WebSearch", fmt.Sprintf(`{"query":"q%d"}`, i))
	}
	for i := range n {
		m := s.reply(fmt.Sprint(i))
		var r searched
		if err := json.Unmarshal(m.Result, &r); err != nil || r.IsError || len(r.Found.Results) != 10 {
			t.Error(m.line)
		}
	}
	s.close()
	w.verify(0)
}
