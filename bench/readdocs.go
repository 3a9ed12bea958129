package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/skillhost/skill/plugins/web/browser"
)

// madePage is a page whose text its scripts fetch after 20 ms and make, in 30
// sections.
const madePage = `<!doctype html><title>Manual</title><div id="root"></div><script>
setTimeout(async () => {
  const d = await (await fetch('/data')).json();
  for (let i = 0; i < d.n; i++)
    document.getElementById('root').insertAdjacentHTML('beforeend', '<h2>Section ' + i + '</h2><p>What there is to say about it.</p>');
}, 20)</script>`

// readDocs measures ReadDocs on pages of this machine that are not to be kept.
func readDocs(p programs, n counts) error {
	if _, err := browser.Find(""); err != nil {
		fmt.Printf("LEFT OUT: docs: %v\n\n", err)
		return nil
	}
	base, stop, err := docsSite()
	if err != nil {
		return err
	}
	defer stop()
	home := p.path("docs-home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(home, "policy.toml"), fmt.Appendf(nil, "[skills.web.capabilities]\nnetwork = [%q]\n", base), 0o600); err != nil {
		return err
	}
	var starts, plain, made []time.Duration
	for range n.rounds {
		r, err := p.docsRound(base)
		if err != nil {
			return err
		}
		first, warm := r.made[0], r.made[1:]
		starts = append(starts, first-median(warm, same))
		plain, made = append(plain, r.plain[1:]...), append(made, warm...)
	}
	printTargets([]target{
		{"p50 of a ReadDocs of a plain page", ms(median(plain, same)), 10, "ms", false},
		{"p50 of a ReadDocs of a page in the jailed browser", ms(median(made, same)), 160, "ms", false},
		{"start of the jailed browser, p50", ms(median(starts, same)), 1000, "ms", false},
	})
	return nil
}

func same(d time.Duration) time.Duration { return d }

// docsSite serves the pages.
func docsSite() (base string, stop func() error, err error) {
	text := "<title>Plain</title><article>" + strings.Repeat("<h2>A section</h2><p>What there is to say, in a sentence or two, with commas.</p>", 100)
	page := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", "no-store")
			_, _ = io.WriteString(w, body) // a reader that is gone is no concern of this server
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/plain", page("text/html", text))
	mux.HandleFunc("/made", page("text/html", madePage))
	mux.HandleFunc("/data", page("application/json", `{"n":30}`))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }() // ends with Close
	return "http://" + l.Addr().String(), server.Close, nil
}

// times are how long calls took, in order.
type times struct{ plain, made []time.Duration }

// docsCalls are how many calls of each kind a round makes.
const docsCalls = 16

// docsRound starts a host and makes calls, one at a time.
func (p programs) docsRound(base string) (t times, err error) {
	args := p.skill()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), p.home("docs-home")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return t, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return t, err
	}
	if err := cmd.Start(); err != nil {
		return t, err
	}
	defer func() {
		_ = in.Close()
		_ = cmd.Wait()
	}()
	lines := bufio.NewReaderSize(out, 1<<20)
	call := func(path, want string) (time.Duration, error) {
		began := time.Now()
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ReadDocs","arguments":{"url":%q}}}`+"\n", base+path); err != nil {
			return 0, err
		}
		line, err := lines.ReadBytes('\n')
		if err == nil && !bytes.Contains(line, []byte(want)) {
			err = fmt.Errorf("%s: %.500s", path, line)
		}
		return time.Since(began), err
	}
	for range docsCalls {
		d, err := call("/plain", "What there is to say")
		if err != nil {
			return t, err
		}
		t.plain = append(t.plain, d)
	}
	for range docsCalls {
		d, err := call("/made", `"rendered":true`)
		if err != nil {
			return t, err
		}
		t.made = append(t.made, d)
	}
	return t, nil
}
