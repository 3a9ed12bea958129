package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/skills/websearch/loopback"
)

// guidePage is a page that is empty but for its scripts, as many sites of
// documentation are: they fetch what it says, and write it.
const guidePage = `<!DOCTYPE html><html><head><title>Guide</title></head><body><div id="root"></div><noscript>This site needs JavaScript.</noscript>
<script>
fetch('/guide.json').then((r) => r.json()).then((doc) => {
  const main = document.createElement('main');
  main.innerHTML = '<h1>' + doc.title + '</h1>' + doc.sections.map((s) => '<h2>' + s.name + '</h2><p>' + s.text + '</p>').join('');
  document.getElementById('root').append(main);
});
</script></body></html>`

// documentation serves a site that only a browser can read.
func documentation(t testing.TB) *httptest.Server {
	t.Helper()
	type section struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}
	doc := struct {
		Title    string    `json:"title"`
		Sections []section `json:"sections"`
	}{Title: "How to keep a tool in its cage"}
	for i := range 30 {
		doc.Sections = append(doc.Sections, section{fmt.Sprintf("Section %d", i+1), strings.Repeat("A tool touches what it was granted, and nothing else. ", 4)})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/guide", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(guidePage))
	})
	mux.HandleFunc("/guide.json", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(doc) })
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	return site
}

// TestThirteen: real clients of both eras use all thirteen tools on real input:
// eleven search engines and a site that needs a browser on this machine, a
// question that the user answers, a plan that blocks a write until he approves
// it, a callback that fires. The record of it is intact. With -update the pages
// of the tools show what was said.
func TestThirteen(t *testing.T) {
	node := clientsFromNPM(t)
	if !slices.ContainsFunc([]string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	}) {
		leftOut(t, "there is no headless browser (apt-get install chromium-headless-shell)")
	}
	clients, err := filepath.Abs(filepath.Join("testdata", "clients"))
	if err != nil {
		t.Fatal(err)
	}
	engines := httptest.NewServer(loopback.New())
	t.Cleanup(engines.Close)
	site := documentation(t)
	photos := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), node, filepath.Join(clients, "photos.mjs"), photos, "").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, kind := range []string{"v1", "v2-modern"} {
		t.Run(kind, func(t *testing.T) {
			h := newHouse(t, "hello-go", "review")
			if err := os.CopyFS(h.work, os.DirFS(photos)); err != nil {
				t.Fatal(err)
			}
			var config strings.Builder
			for _, e := range loopback.Engines {
				fmt.Fprintf(&config, "[settings.websearch.engines.%s]\nbase_url = %q\n", e, engines.URL+"/"+e)
			}
			h.write("config.toml", config.String())
			h.write("policy.toml", h.read("policy.toml")+fmt.Sprintf("\n[skills.websearch.capabilities]\nnetwork = [%q]\n\n[skills.web.capabilities]\nnetwork = [%q]\n", entry(t, engines.URL), entry(t, site.URL)))
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, "thirteen.mjs", kind, h.work, site.URL, built.skill)
			cmd.Dir, cmd.Env = clients, h.env()
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s%s", err, tail(out.String()), tail(errs.String()))
			}
			calls := exchanges(t, &out)
			var all strings.Builder
			for _, list := range calls {
				for _, x := range list {
					all.WriteString(x.Text)
				}
			}
			if !strings.Contains(all.String(), "look at the build") {
				t.Error("the callback came with no result")
			}
			for _, tool := range seed {
				if len(calls[tool.name]) == 0 {
					t.Errorf("%s was not called", tool.name)
				} else if *update && kind == "v1" {
					writeTranscript(t, tool.name, calls[tool.name], strings.NewReplacer(h.work, "/home/ann/project", site.URL, "https://docs.example.com",
						engines.URL, "https://search.example.com", h.home, "/home/ann/.local/state/skill").Replace)
				}
			}
			h.verify(0)
		})
	}
}

// entry is the entry by which a policy names the server at address.
func entry(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + u.Host
}

// exchanges reads the calls that a client has written down, by tool.
func exchanges(t testing.TB, out *bytes.Buffer) map[string][]exchange {
	t.Helper()
	calls := map[string][]exchange{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var x exchange
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatalf("%v: %.200s", err, lines.Text())
		}
		calls[x.Name] = append(calls[x.Name], x)
	}
	return calls
}

// tail is the end of a text, for a message.
func tail(s string) string { return s[max(0, len(s)-6000):] }
