package browser

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

func fakeCmd(pid int) *exec.Cmd { return &exec.Cmd{Process: &os.Process{Pid: pid}} }

// TestDialogs: nobody is there to close them.
func TestDialogs(t *testing.T) {
	w := newWorld(t)
	w.html("/", `<p id=p></p><script>onbeforeunload = () => 'stay';
alert(1); const c = confirm(2), q = prompt(3); p.textContent = 'confirm ' + c + ' prompt ' + q;
setInterval(() => alert('x'.repeat(1e6)), 50)</script>`)
	contains(t, w.read("/", Visit{}).HTML, "confirm false prompt null")
}

// TestDownload: nothing is kept of what a page wants to be kept.
func TestDownload(t *testing.T) {
	w := newWorld(t)
	w.mux.HandleFunc("/file", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Disposition", `attachment; filename="planted.sh"`)
		fmt.Fprint(out, "#!/bin/sh")
	})
	w.html("/", `<p>text</p><a id=a href=/file download=planted.sh>x</a><script>a.click(); location = '/file'</script>`)
	contains(t, w.read("/", Visit{}).HTML, "text")
	w.mu.Lock()
	dir := w.now.process.dir
	w.mu.Unlock()
	found, err := exec.Command("find", dir, ".", "-name", "planted*").Output()
	if err != nil || len(found) != 0 {
		t.Errorf("%s %v", found, err)
	}
	if _, err := w.visit("/file", Visit{}); err == nil {
		t.Error("a download is a page")
	}
}

// TestEndlessScript: a script that does not end is ended.
func TestEndlessScript(t *testing.T) {
	w := newWorld(t)
	w.html("/", `<p>before it</p><script>onload = () => { for (;;); }</script>`)
	began := time.Now()
	s, err := w.visit("/", Visit{})
	if err != nil && sdk.KindOf(err) != sdk.Limit {
		t.Error(err)
	}
	if err == nil {
		contains(t, s.HTML, "before it")
	}
	if took := time.Since(began); took > 50*time.Second { // the visit's own bound is a minute
		t.Errorf("it took %v", took)
	}
	w.html("/next", "<p>next") // the browser is as good as before
	contains(t, w.read("/next", Visit{}).HTML, "next")
}

func TestEndlessMoves(t *testing.T) {
	w := newWorld(t)
	w.html("/reload", `<p>again</p><script>location.href = '/reload?' + Math.random()</script>`)
	if s, err := w.visit("/reload", Visit{}); err == nil {
		contains(t, strings.Join(s.Notes, ";"), "documents")
	} else if k := sdk.KindOf(err); k != sdk.Limit && k != sdk.Unavailable {
		t.Error(err)
	}
	w.mux.HandleFunc("/around", func(out http.ResponseWriter, r *http.Request) {
		http.Redirect(out, r, "/around?"+r.URL.RawQuery+"x", http.StatusFound)
	})
	if _, err := w.visit("/around", Visit{}); sdk.KindOf(err) != sdk.Unavailable {
		t.Error(err)
	}
}

// TestFlood: neither what travels nor what it is unpacked to is without bound.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	w.mux.HandleFunc("/plain", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/html")
		line := []byte(strings.Repeat("more ", 1<<13))
		for sent := 0; sent < 1<<30; sent += len(line) {
			if _, err := out.Write(line); err != nil {
				return
			}
		}
	})
	w.mux.HandleFunc("/packed", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		out.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(out)
		line := make([]byte, 1<<20)
		for range 1 << 10 {
			if _, err := z.Write(line); err != nil {
				return
			}
		}
		_ = z.Close()
	})
	w.html("/fetch", `<p>text</p><script>fetch('/packed').then((r) => r.arrayBuffer())</script>`)
	for _, path := range []string{"/plain", "/packed", "/fetch"} {
		s, err := w.visit(path, Visit{})
		if slow := err == nil && len(s.Notes) > 0; !slow && sdk.KindOf(err) != sdk.Limit { // what comes slowly is read as far as it came
			t.Errorf("%s: %v", path, err)
		}
	}
	w.html("/next", "<p>next")
	contains(t, w.read("/next", Visit{}).HTML, "next")
}

// TestElsewhere: a page reaches nobody that was not granted, in whatever way it
// tries, and what it was refused is told.
func TestElsewhere(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	reached := false
	other.mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { reached = true })
	host := other.server.Listener.Addr().String()
	w.html("/", fmt.Sprintf(`<p>text</p><iframe src="http://169.254.169.254/latest/meta-data/"></iframe><iframe src="file:///etc/passwd"></iframe>
<iframe src="http://%[1]s/frame"></iframe><img src="http://%[1]s/image"><link rel=stylesheet href="http://%[1]s/style"><link rel=prefetch href="http://%[1]s/prefetch">
<link rel=preconnect href="https://connect.invalid"><object data="http://%[1]s/object"></object>
<script>
fetch('http://%[1]s/fetch', {mode: 'no-cors'}).catch(() => {});
fetch('http://evil.invalid/').catch(() => {});
fetch('https://evil.invalid/').catch(() => {});
fetch('https://%[1]s/tls').catch(() => {});
try { new WebSocket('ws://%[1]s/socket') } catch (_) {}
try { new WebSocket('wss://evil.invalid/socket') } catch (_) {}
try { new EventSource('http://%[1]s/events') } catch (_) {}
navigator.sendBeacon('http://%[1]s/beacon', 'x');
try { const p = new RTCPeerConnection({iceServers: [{urls: 'stun:%[1]s'}]}); p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o)) } catch (_) {}
open('http://%[1]s/window');
</script>`, host))
	s := w.read("/", Visit{})
	contains(t, s.HTML, "text")
	if strings.Contains(s.HTML, "root:") {
		t.Error("a file was read")
	}
	if reached {
		t.Error("another host was reached")
	}
	var told []string
	for _, b := range s.Blocked {
		told = append(told, b.Host+" "+b.Reason)
	}
	all := strings.Join(told, "\n")
	contains(t, all, "169.254.169.254", host, "evil.invalid:443", "evil.invalid ")
	if !strings.Contains(all, "network = [") {
		t.Errorf("it is not said how to allow it: %s", all)
	}
}

// TestRedirectElsewhere: the page's own way is judged like every other request.
func TestRedirectElsewhere(t *testing.T) {
	w := newWorld(t)
	w.mux.Handle("/away", http.RedirectHandler("http://169.254.169.254/latest/", http.StatusFound))
	_, err := w.visit("/away", Visit{})
	if err == nil || sdk.KindOf(err) != sdk.Denied || !strings.Contains(err.Error(), "169.254.169.254") {
		t.Error(err)
	}
	w.html("/move", `<p>text</p><script>location = 'http://169.254.169.254/latest/'</script>`)
	if s, err := w.visit("/move", Visit{}); sdk.KindOf(err) != sdk.Denied || len(s.Blocked) == 0 {
		t.Errorf("%+v %v", s, err)
	}
}

// TestPicture: pictures, sounds and fonts are not asked for.
func TestPicture(t *testing.T) {
	w := newWorld(t)
	asked := make(chan string, 10)
	w.mux.HandleFunc("/media/", func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path })
	w.html("/", `<style>@font-face { font-family: f; src: url(/media/font.woff2) } p { font-family: f; background: url(/media/back.png) }</style><p>text</p>
<img src=/media/image.png><video src=/media/film.mp4 autoplay></video><audio src=/media/sound.mp3 preload=auto></audio>`)
	contains(t, w.read("/", Visit{}).HTML, "text")
	select {
	case path := <-asked:
		t.Error(path)
	default:
	}
}

// TestDeep: a tree that is deeper than any stack.
func TestDeep(t *testing.T) {
	w := newWorld(t)
	w.html("/", `<p>text</p><script>let n = document.body; for (let i = 0; i < 50000; i++) { const d = document.createElement('div'); n.appendChild(d); n = d }</script>`)
	s, err := w.visit("/", Visit{})
	if err == nil {
		contains(t, s.HTML, "text")
	} else if k := sdk.KindOf(err); k != sdk.Limit && k != sdk.Unavailable {
		t.Error(err)
	}
}

// TestLarge: a page that grows for ever is read as far as it fits.
func TestLarge(t *testing.T) {
	w := newWorld(t)
	w.html("/", `<p>text</p><script>const s = '<p>' + 'word '.repeat(20000) + '</p>'; for (let i = 0; i < 100; i++) document.body.insertAdjacentHTML('beforeend', s)</script>`)
	s := w.read("/", Visit{Most: 1 << 20})
	if !s.Cut || len(s.HTML) > 1<<20 {
		t.Errorf("%d bytes, cut %v", len(s.HTML), s.Cut)
	}
}

// TestForged: what a page does to its own world does not change what is read of
// it.
func TestForged(t *testing.T) {
	w := newWorld(t)
	w.html("/", `<p>true text</p><script>
JSON.stringify = () => '"forged"'; Array.prototype.join = () => 'forged'; String.prototype.replace = () => 'forged';
Object.defineProperty(document, 'documentElement', {get: () => { throw 1 }}); Node.prototype.appendChild = null; document.querySelectorAll = () => [];
</script>`)
	s := w.read("/", Visit{})
	contains(t, s.HTML, "true text")
}

// TestNoise: a page that says very much to whoever listens.
func TestNoise(t *testing.T) {
	w := newWorld(t)
	w.html("/", `<p>text</p><script>
const long = 'x'.repeat(1 << 20);
setInterval(() => { for (let i = 0; i < 100; i++) { console.log(long); document.body.setAttribute('a' + i, Math.random()); history.replaceState(0, '', '?' + Math.random()) } }, 1)</script>`)
	s, err := w.visit("/", Visit{})
	if err != nil && sdk.KindOf(err) != sdk.Limit { // it may keep itself from being read
		t.Error(err)
	}
	if err == nil {
		contains(t, s.HTML, "text")
	}
}

// TestLeft: a visit that nobody waits for any more ends.
func TestLeft(t *testing.T) {
	w := newWorld(t)
	hold := make(chan struct{})
	defer close(hold)
	asked := make(chan struct{}, 1)
	w.mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := w.visitIn(ctx, "/slow", Visit{})
		done <- err
	}()
	<-asked
	cancel()
	select {
	case err := <-done:
		if sdk.KindOf(err) != sdk.Canceled {
			t.Error(err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("it goes on")
	}
	w.html("/next", "<p>next")
	contains(t, w.read("/next", Visit{}).HTML, "next")
}
