package browser

import (
	"sync"
	"sync/atomic"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
)

// The bounds of what is remembered of a page.
const (
	maxBody      = 64 << 20 // bytes of all that a page loads, unpacked
	maxDocument  = 16 << 20 // bytes of its document, of which far more memory and time is made
	maxRedirects = 20
	maxAddress   = 4 << 10 // bytes of an address
	maxWaiting   = 1 << 10 // requests and dialogs that wait for an answer
)

// A watch is what a page's events come to. hear is called on the goroutine that
// reads them, and neither waits nor asks for anything.
type watch struct {
	loaded  chan struct{} // closed when the first document has loaded
	expired chan struct{} // holds one: the page's clock has run out
	moved   chan struct{} // holds one: the page went to another document
	asks    chan any      // events that want an answer

	moves   atomic.Int32  // documents
	over    atomic.Bool   // it has loaded too much
	crashed atomic.Bool   //
	full    chan struct{} // closed when one of these is so
	load    func()
	fill    func()
	journey
}

// A journey is the way of the main frame from document to document.
type journey struct {
	frame cdp.FrameID

	mu        sync.Mutex
	unpacked  int64             // bytes of everything
	text      int64             // of these, of the document
	document  network.RequestID // the last that was asked for
	address   string            // of it
	pending   bool              // it has not come yet
	status    int
	mime      string
	redirects []string
}

func newWatch() *watch {
	w := &watch{loaded: make(chan struct{}), expired: make(chan struct{}, 1), moved: make(chan struct{}, 1),
		asks: make(chan any, maxWaiting), full: make(chan struct{})}
	w.load = sync.OnceFunc(func() { close(w.loaded) })
	w.fill = sync.OnceFunc(func() { close(w.full) })
	return w
}

// flooded says that the page has loaded too much.
func (w *watch) flooded() {
	w.over.Store(true)
	w.fill()
}

func note(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it was said already
	}
}

// hear takes one event.
func (w *watch) hear(ev any) {
	switch e := ev.(type) {
	case *page.EventLoadEventFired:
		w.load()
	case *page.EventFrameNavigated:
		if e.Frame != nil && e.Frame.ID == w.frame {
			w.await(false)
			if w.moves.Add(1) > 1 {
				note(w.moved)
			}
		}
	case *page.EventFrameRequestedNavigation:
		if e.FrameID == w.frame && e.Disposition == page.ClientNavigationDispositionCurrentTab {
			w.await(true)
		}
	case *page.EventFrameStoppedLoading:
		if e.FrameID == w.frame && w.await(false) {
			note(w.expired) // it stays where it is
		}
	case *emulation.EventVirtualTimeBudgetExpired:
		note(w.expired)
	case *inspector.EventTargetCrashed:
		w.crashed.Store(true)
		w.fill()
	case *network.EventDataReceived:
		if w.came(e) {
			w.flooded()
		}
	case *network.EventRequestWillBeSent:
		w.sent(e)
	case *network.EventResponseReceived:
		w.received(e)
	case *page.EventJavascriptDialogOpening, *fetch.EventRequestPaused:
		select {
		case w.asks <- e:
		default: // a page that has so many waits in vain for those
		}
	}
}

// came counts what has come, and reports whether it is too much.
func (w *watch) came(e *network.EventDataReceived) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unpacked += e.DataLength
	if e.RequestID == w.document {
		w.text += e.DataLength
	}
	return w.unpacked > maxBody || w.text > maxDocument
}

// await says whether a document is on its way, and returns what was said before.
func (w *watch) await(pending bool) (before bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.pending = w.pending, pending
	return before
}

// leaving reports whether another document is on its way.
func (w *watch) leaving() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending
}

// sent notes the way of the main frame.
func (w *watch) sent(e *network.EventRequestWillBeSent) {
	if e.Type != network.ResourceTypeDocument || e.FrameID != w.frame || e.Request == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = true
	before := w.address
	if e.RequestID != w.document {
		w.text = 0
	}
	w.document, w.address = e.RequestID, clip(e.Request.URL, maxAddress)
	if before != "" && before != w.address && len(w.redirects) < maxRedirects {
		w.redirects = append(w.redirects, before)
	}
}

func (w *watch) received(e *network.EventResponseReceived) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.RequestID == w.document && e.Response != nil {
		w.status, w.mime = int(e.Response.Status), clip(e.Response.MimeType, 100)
	}
}

// tell adds to s what was noted.
func (w *watch) tell(s *Seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Status, s.MIME, s.Redirects = w.status, w.mime, w.redirects
}
