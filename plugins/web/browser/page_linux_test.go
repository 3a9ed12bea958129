package browser

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

const app = `<!doctype html><title>Manual</title><div id=app></div><script>
setTimeout(async () => {
  const d = await (await fetch('/data')).json();
  for (let i = 0; i < d.n; i++) {
    const s = document.createElement('section');
    s.innerHTML = '<h2>Section ' + i + '</h2><p>What there is to say about ' + i + '</p>';
    document.getElementById('app').appendChild(s);
  }
}, 20)</script>`

// TestApp: a page that its scripts make is read when they have made it, without
// being told when that is.
func TestApp(t *testing.T) {
	w := newWorld(t)
	w.html("/app", app)
	w.text("/data", `{"n":30}`)
	for range 3 {
		s := w.read("/app", Visit{})
		contains(t, s.HTML, "<h2>Section 0</h2>", "<h2>Section 29</h2>")
		if s.Title != "Manual" || s.Status != 200 || s.MIME != "text/html" || len(s.Notes) != 0 || len(s.Redirects) != 0 || len(s.Blocked) != 0 || s.URL != w.server.URL+"/app" {
			t.Errorf("%+v", s)
		}
	}
}

// TestParts: what is in shadow roots, slots and frames of the same origin is
// text as any other; what is no text is not there.
func TestParts(t *testing.T) {
	w := newWorld(t)
	w.html("/frame", `<p>in the frame</p>`)
	w.html("/", `<style>p{}</style><p>outside</p><x-box>slotted</x-box><iframe src="/frame"></iframe><template>never</template><svg><text>drawn</text></svg>
<script>customElements.define('x-box', class extends HTMLElement { constructor() { super(); this.attachShadow({mode: 'open'}).innerHTML = '<b>shadow</b> <slot></slot>' } })</script>`)
	s := w.read("/", Visit{})
	contains(t, s.HTML, "outside", "<b>shadow</b>", "slotted", "in the frame")
	for _, no := range []string{"never", "drawn", "attachShadow", "p{}"} {
		if strings.Contains(s.HTML, no) {
			t.Errorf("%q in %s", no, s.HTML)
		}
	}
}

func TestSelector(t *testing.T) {
	w := newWorld(t)
	w.html("/", `<p>beside</p><script>setTimeout(() => { document.body.insertAdjacentHTML('beforeend', '<article class=late>here</article>') }, 1500)</script>`)
	s := w.read("/", Visit{Selector: "article.late"})
	contains(t, s.HTML, "here")
	if strings.Contains(s.HTML, "beside") {
		t.Error(s.HTML)
	}
	if _, err := w.visit("/", Visit{Selector: "a[[["}); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("bad selector: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := w.visitIn(ctx, "/", Visit{Selector: "#never"}); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("what never comes: %v", err)
	}
}

// TestWait: what a page does in the time that was asked for is waited for.
func TestWait(t *testing.T) {
	w := newWorld(t)
	w.html("/", `<p id=p>before</p><script>setTimeout(() => { p.textContent = 'after' }, 500)</script>`)
	contains(t, w.read("/", Visit{Wait: 4 * time.Second}).HTML, "after")
}

// TestWay: redirects, by the server and by the page itself, are told of.
func TestWay(t *testing.T) {
	w := newWorld(t)
	w.mux.Handle("/a", http.RedirectHandler("/b", http.StatusFound))
	w.html("/b", `<script>setTimeout(() => { location = '/c' }, 100)</script>`)
	w.html("/c", `<p>the end`)
	s := w.read("/a", Visit{})
	contains(t, s.HTML, "the end")
	if u := w.server.URL; !slices.Equal(s.Redirects, []string{u + "/a", u + "/b"}) || s.URL != u+"/c" || s.Status != 200 {
		t.Errorf("%+v", s)
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	w.mux.HandleFunc("/gone", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/html")
		out.WriteHeader(http.StatusGone)
		fmt.Fprint(out, "<p>it was here")
	})
	if s := w.read("/gone", Visit{}); s.Status != http.StatusGone {
		t.Errorf("%+v", s)
	}
}

// TestCookies: a page has nothing of an earlier one.
func TestCookies(t *testing.T) {
	w := newWorld(t)
	w.mux.HandleFunc("/", func(out http.ResponseWriter, r *http.Request) {
		http.SetCookie(out, &http.Cookie{Name: "seen", Value: "before", MaxAge: 3600})
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(out, "<p>cookies: [%s]</p><p id=p></p><script>p.textContent = 'stored: [' + (localStorage.mark || '') + ']'; localStorage.mark = 1</script>", r.Header.Get("Cookie"))
	})
	for range 2 {
		contains(t, w.read("/", Visit{}).HTML, "cookies: []", "stored: []")
	}
}

// TestMany: more pages than tabs at once, each with its own text.
func TestMany(t *testing.T) {
	w := newWorld(t)
	var now, most atomic.Int32
	w.mux.HandleFunc("/{n}", func(out http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		time.Sleep(50 * time.Millisecond)
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(out, "<p>page [%s]", r.PathValue("n"))
	})
	var all sync.WaitGroup
	for i := range 3 * MaxTabs {
		all.Go(func() {
			s, err := w.visit(fmt.Sprintf("/%d", i), Visit{})
			if err != nil {
				t.Error(err)
				return
			}
			contains(t, s.HTML, fmt.Sprintf("page [%d]", i))
		})
	}
	all.Wait()
	if most.Load() > MaxTabs {
		t.Errorf("%d pages at once", most.Load())
	}
}

// pid returns the process of the browser that runs, or 0.
func (w *world) pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == nil {
		return 0
	}
	return w.now.process.cmd.Process.Pid
}

func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !yes(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// left reports whether a process of a browser's session is left.
func left(pid int) bool {
	p := &process{}
	p.cmd = fakeCmd(pid)
	return len(p.members(nil)) > 0
}

// TestWorn: a browser is replaced when it has read enough or is too large, and
// ended when it is idle; nothing of it is left.
func TestWorn(t *testing.T) {
	for name, worn := range map[string]wear{
		"pages":  {pages: 1, memory: 1 << 40, idle: time.Hour},
		"memory": {pages: 1 << 20, memory: 1, idle: time.Hour},
		"idle":   {pages: 1 << 20, memory: 1 << 40, idle: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.wear = worn
			w.html("/", "<p>page")
			w.read("/", Visit{})
			first := 0
			if name == "pages" {
				first = w.pid()
				w.read("/", Visit{})
				if first == 0 || w.pid() == first {
					t.Fatalf("process %d, then %d", first, w.pid())
				}
			} else {
				eventually(t, "it is not ended", func() bool { return w.pid() == 0 })
				w.read("/", Visit{}) // another one starts
			}
			eventually(t, "the first is left", func() bool { return first == 0 || !left(first) })
		})
	}
}

// TestFallen: a browser that is gone is replaced.
func TestFallen(t *testing.T) {
	w := newWorld(t)
	w.html("/", "<p>page")
	w.read("/", Visit{})
	first := w.pid()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	contains(t, w.read("/", Visit{}).HTML, "page")
	eventually(t, "the first is left", func() bool { return !left(first) })
	second := w.pid()
	w.Close()
	if left(second) {
		t.Error("something is left of the second")
	}
}

func TestFind(t *testing.T) {
	if _, err := Find("/nowhere/chromium"); sdk.KindOf(err) != sdk.NotFound {
		t.Error(err)
	}
	t.Setenv("PATH", "")
	if _, err := Find(""); err != ErrNone {
		t.Error(err)
	}
}

// TestNoBrowser: what is no browser does not start, and says why.
func TestNoBrowser(t *testing.T) {
	w := newWorld(t)
	w.path = "/bin/false"
	if _, err := w.visit("/", Visit{}); sdk.KindOf(err) != sdk.Unavailable {
		t.Error(err)
	}
}
