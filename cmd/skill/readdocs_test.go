package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/plugins/web/browser"
)

// manual is a page that says nothing without its scripts.
const manual = `<!doctype html><title>Manual</title><div id="root"></div><script>
setTimeout(async () => {
  const d = await (await fetch('/data.json')).json();
  for (let i = 0; i < d.sections; i++)
    document.getElementById('root').insertAdjacentHTML('beforeend', '<h2>Section ' + i + '</h2><p>What there is to say about it.</p>');
}, 20)</script>`

// A site is documentation on this machine, with such a page, a plain one and
// one that asks for what is elsewhere.
type site struct {
	*httptest.Server
	asked atomic.Int32
	held  chan struct{} // one for each request that is not answered
}

func newSite(t *testing.T, elsewhere string) *site {
	t.Helper()
	s := &site{held: make(chan struct{}, 16)}
	page := func(kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			s.asked.Add(1)
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/manual", page("text/html", manual))
	mux.HandleFunc("/data.json", page("application/json", `{"sections":30}`))
	mux.HandleFunc("/paper.pdf", page("application/pdf", paper()))
	mux.HandleFunc("/plain", page("text/html", "<title>Plain</title><h1>Plain</h1><p>"+strings.Repeat("It says what it says. ", 20)))
	mux.HandleFunc("/nosy", page("text/html", fmt.Sprintf(`<div id=root></div><iframe src="http://169.254.169.254/latest/meta-data/"></iframe><script>
document.getElementById('root').textContent = 'asked'; fetch('%[1]s/', {mode: 'no-cors'}).catch(() => {}); new WebSocket('%[2]s/')</script>`, elsewhere, strings.Replace(elsewhere, "http", "ws", 1))))
	mux.HandleFunc("/waiting", page("text/html", `<div id=root></div><script>fetch('/held')</script>`))
	mux.HandleFunc("/held", func(_ http.ResponseWriter, r *http.Request) {
		s.held <- struct{}{}
		<-r.Context().Done()
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// paper is a PDF of one page.
func paper() string {
	text := "BT /F1 12 Tf 72 720 Td (Said on paper) Tj ET"
	b := "%PDF-1.4\n"
	var table string
	for i, object := range []string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>", fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text)} {
		table += fmt.Sprintf("%010d 00000 n \n", len(b))
		b += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	return b + fmt.Sprintf("xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", table, len(b))
}

// needBrowser skips a test where there is no cage for a browser, or no browser.
func needBrowser(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("LEFT OUT: a browser needs Linux")
	}
	if _, err := browser.Find(""); err != nil {
		leftOut(t, err.Error())
	}
}

// A document is the structured result of ReadDocs.
type document struct {
	Status   int      `json:"status"`
	Rendered bool     `json:"rendered"`
	Cached   bool     `json:"cached"`
	Content  string   `json:"content"`
	Notes    []string `json:"notes"`
	Blocked  []struct {
		Host   string `json:"host"`
		Reason string `json:"reason"`
	} `json:"blocked"`
}

func (s *server) document(id, url string) document {
	s.t.Helper()
	s.call(id, "ReadDocs", fmt.Sprintf(`{"url":%q}`, url))
	m := s.reply(id)
	var r struct {
		Structured document `json:"structuredContent"`
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		s.t.Fatalf("%v: %s", err, m.line)
	}
	if r.Structured.Status == 0 {
		s.t.Fatalf("%s", m.line)
	}
	return r.Structured
}

// TestReadDocs: nothing is read until the operator has said what by one command,
// which the refusal names; then a page that needs a browser is.
func TestReadDocs(t *testing.T) {
	needBrowser(t)
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(other.Close)
	s := newSite(t, other.URL)
	h := newHouse(t)
	live := h.serve().shake()
	refused := live.ask("refused", "ReadDocs", fmt.Sprintf(`{"url":"%s/plain"}`, s.URL))
	command := "skill allow web --network '" + s.URL + "'"
	for _, part := range []string{`"isError":true`, command, `[skills.web.capabilities]`, `network = [\"` + s.URL + `\"]`} {
		if !strings.Contains(refused, part) {
			t.Errorf("no %s in %s", part, refused)
		}
	}
	if n := s.asked.Load(); n != 0 {
		t.Fatalf("the site was asked %d times", n)
	}
	h.run(0, "allow", "web", "--network", s.URL)
	until(t, "reload", func() bool { return strings.Contains(live.errs.String(), "policy reloaded") })
	if d := live.document("plain", s.URL+"/plain"); d.Rendered || !strings.Contains(d.Content, "It says what it says.") {
		t.Errorf("%+v", d)
	}
	if d := live.document("manual", s.URL+"/manual"); !d.Rendered || !strings.Contains(d.Content, "## Section 29") || len(d.Notes)+len(d.Blocked) != 0 {
		t.Errorf("%+v", d)
	}
	if d := live.document("paper", s.URL+"/paper.pdf"); d.Content != "Said on paper\n" {
		t.Errorf("%+v", d)
	}
	before := s.asked.Load()
	if d := live.document("again", s.URL+"/manual"); !d.Cached || s.asked.Load() != before {
		t.Errorf("%+v", d)
	}
	d := live.document("nosy", s.URL+"/nosy")
	told, _ := json.Marshal(d.Blocked)
	if !strings.Contains(string(told), "169.254.169.254") || !strings.Contains(string(told), strings.TrimPrefix(other.URL, "http://")) || reached {
		t.Errorf("%s, reached %v", told, reached)
	}
	live.close()
	again := h.serve().shake() // another session: nothing is kept for it
	if d := again.document("fresh", s.URL+"/manual"); d.Cached || s.asked.Load() == before {
		t.Errorf("%+v", d)
	}
	h.verify(0)
	record := h.run(0, "audit", "query", "--type", "access")
	for _, part := range []string{"allow network.connect", "deny network.connect", "169.254.169.254"} {
		if !strings.Contains(record, part) {
			t.Errorf("no %q in the record: %s", part, record)
		}
	}
}

// TestReadDocsJail: the browser is in a cage with its own sandbox on, as root
// and as an ordinary user, and is gone with a host that is killed.
func TestReadDocsJail(t *testing.T) {
	needBrowser(t)
	s := newSite(t, "http://elsewhere.invalid")
	for _, uid := range []int{os.Getuid(), ordinary} {
		t.Run(strconv.Itoa(uid), func(t *testing.T) {
			h := newHouse(t)
			command := []string{built.skill, "serve", "--workspace", h.work}
			if uid != os.Getuid() {
				if os.Getuid() != 0 {
					t.Skip("LEFT OUT: only root can become another user")
				}
				var skill string
				h, skill = houseOf(t, uid)
				id := strconv.Itoa(uid)
				command = []string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups", skill, "serve", "--workspace", h.work}
				h.write("policy.toml", fmt.Sprintf("[skills.web.capabilities]\nnetwork = [%q]\n", s.URL))
				if err := os.Chown(filepath.Join(h.home, "policy.toml"), uid, uid); err != nil {
					t.Fatal(err)
				}
			} else {
				h.run(0, "allow", "web", "--network", s.URL)
			}
			live := h.start(command...).shake()
			if d := live.document("manual", s.URL+"/manual"); !d.Rendered {
				t.Fatalf("%+v", d)
			}
			live.call("waiting", "ReadDocs", fmt.Sprintf(`{"url":"%s/waiting"}`, s.URL))
			select {
			case <-s.held:
			case <-time.After(patience):
				t.Fatal("the page is not rendered")
			}
			family := descendants(live.cmd.Process.Pid)
			jailed(t, live.cmd.Process.Pid, family)
			if err := live.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = live.end()
			until(t, "end of the browser", func() bool {
				for pid, command := range family {
					if now, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && string(now) == command && command != "" {
						return false
					}
				}
				return true
			})
		})
	}
}

// descendants are the processes below one, with their command lines.
func descendants(root int) map[int]string {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	family := map[int]string{}
	for pid := range parents {
		for up := parents[pid]; up > 1; up = parents[up] {
			if up == root {
				b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				family[pid] = string(b)
				break
			}
		}
	}
	return family
}

// jailed wants the sandbox of every renderer on, and no process of the browser
// with a network, a capability or a user that the host has.
func jailed(t *testing.T, host int, family map[int]string) {
	t.Helper()
	renderers := 0
	for pid, command := range family {
		if !strings.Contains(command, "headless-shell") && !strings.Contains(command, "chrom") {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has ended
		}
		if strings.Contains(command, "--no-sandbox") {
			t.Errorf("%q", command)
		}
		for _, kind := range []string{"net", "user", "pid", "mnt", "ipc"} {
			if ns(t, pid, kind) == ns(t, host, kind) {
				t.Errorf("%d has the host's %s namespace: %q", pid, kind, command)
			}
		}
		if value(status, "NoNewPrivs") != "1" || value(status, "Seccomp") != "2" {
			t.Errorf("%d: %s", pid, status)
		}
		if strings.Contains(command, "--type=renderer") {
			renderers++
			if n, _ := strconv.Atoi(value(status, "Seccomp_filters")); n < 2 {
				t.Errorf("a renderer has %d filters", n)
			}
			if len(strings.Fields(value(status, "NSpid"))) < 3 { // the host's, the cage's, its own
				t.Errorf("a renderer has the cage's processes: %s", value(status, "NSpid"))
			}
			if entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/root", pid)); err == nil && len(entries) != 0 {
				t.Errorf("a renderer sees files: %v", entries)
			}
		}
	}
	if renderers == 0 {
		t.Errorf("no renderer in %v", family)
	}
}

func ns(t *testing.T, pid int, kind string) string {
	t.Helper()
	to, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	if err != nil && !os.IsNotExist(err) && !strings.Contains(err.Error(), syscall.EACCES.Error()) {
		t.Error(err)
	}
	return to
}

// value returns what /proc/PID/status says of something.
func value(status []byte, name string) string {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
