// Package browser reads pages with a headless Chromium: it starts one when it
// is first needed, gives each page a context of its own, and ends it when it is
// idle, worn out or too large.
//
// It confines nothing itself. The process that it runs in is in a cage, whose
// one way out is the proxy that each Visit names; Chromium's own sandbox is on
// inside of that, always. It knows no tools and no formats.
package browser

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/skillhost/skill/sdk"
)

// The bounds of one browser.
const (
	MaxTabs    = 4                // pages at a time; further ones wait
	launchTime = 20 * time.Second // until it answers
)

// wear is what a browser is replaced or ended after.
type wear struct {
	pages  int           // read
	memory int64         // bytes (PSS)
	idle   time.Duration // without a page
}

var standard = wear{pages: 200, memory: 512 << 20, idle: time.Minute}

// A Browser is a Chromium that runs when it is needed. Its methods are safe for
// concurrent use. The zero Browser is ready.
type Browser struct {
	wear wear // the zero one is standard
	once sync.Once
	tabs chan struct{}

	mu   sync.Mutex
	now  *running // nil: none runs
	idle *time.Timer
	all  sync.WaitGroup // visits, and browsers until nothing of them is left

	closed bool
}

// running is one Chromium.
type running struct {
	path    string
	ctx     context.Context // chromedp's; its pages are below it
	cancel  context.CancelFunc
	process *process
	pages   int // ever
	open    int // now
	worn    bool

	mu     sync.Mutex
	spare  *tab // opened for the next visit, or nil
	closed bool
}

// Read visits a page and returns what it came to. path is the browser's
// program, see Find. ctx bounds all of it.
func (b *Browser) Read(ctx context.Context, path string, v Visit) (Seen, error) {
	b.once.Do(func() {
		b.tabs = make(chan struct{}, MaxTabs)
		if b.wear == (wear{}) {
			b.wear = standard
		}
	})
	for again := range 2 {
		select {
		case b.tabs <- struct{}{}:
		case <-ctx.Done():
			return Seen{}, ended(ctx)
		}
		r, err := b.enter(ctx, path)
		if err != nil {
			<-b.tabs
			return Seen{}, err
		}
		seen, clear, err := r.read(ctx, v)
		go func() { // nobody but Close waits for it
			defer b.all.Done() // of enter
			clear()
			b.leave(r)
			r.reserve()
		}()
		if errors.Is(err, errGone) && again == 0 && ctx.Err() == nil {
			continue // it fell between two pages, or another page took it along
		}
		return seen, err
	}
	return Seen{}, failed("the browser ended twice while it read the page", nil)
}

// errGone is the error of a page whose browser has ended.
var errGone = &sdk.Error{Kind: sdk.Unavailable, What: "the browser has ended"}

// enter returns the browser that runs, or starts one, and counts a page in.
func (b *Browser) enter(ctx context.Context, path string) (*running, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errGone
	}
	if r := b.now; r != nil && (r.path != path || r.worn || r.pages >= b.wear.pages || r.lost()) {
		b.retire(r)
	}
	if b.now == nil {
		r, err := launch(ctx, path)
		if err != nil {
			return nil, err
		}
		b.now = r
	}
	if b.idle != nil {
		b.idle.Stop()
	}
	b.now.pages++
	b.now.open++
	b.all.Add(1)
	return b.now, nil
}

// leave counts a page out.
func (b *Browser) leave(r *running) {
	<-b.tabs
	large := r.process.pss() > b.wear.memory
	b.mu.Lock()
	defer b.mu.Unlock()
	r.open--
	r.worn = r.worn || large
	switch {
	case r != b.now:
		if r.open == 0 {
			b.end(r)
		}
	case r.open > 0:
	case r.worn:
		b.retire(r)
	default:
		b.idle = time.AfterFunc(b.wear.idle, func() { b.rest(r) })
	}
}

// rest ends a browser that has had nothing to do for long.
func (b *Browser) rest(r *running) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == r && r.open == 0 {
		b.retire(r)
	}
}

// retire lets r have no further page. Its caller holds mu.
func (b *Browser) retire(r *running) {
	b.now = nil
	if r.open == 0 {
		b.end(r)
	}
}

// end ends r without waiting for it. Its caller holds mu.
func (b *Browser) end(r *running) { b.all.Go(r.close) }

// Close ends what runs and returns when nothing of it is left.
func (b *Browser) Close() {
	b.mu.Lock()
	b.closed = true
	if b.idle != nil {
		b.idle.Stop()
	}
	if r := b.now; r != nil {
		b.now = nil
		b.end(r)
	}
	b.mu.Unlock()
	b.all.Wait()
}

// launch starts a browser and returns when it answers.
func launch(ctx context.Context, path string) (*running, error) {
	dir, err := os.MkdirTemp("", "browser-")
	if err != nil {
		return nil, failed("a directory for the browser", err)
	}
	p, err := start(path, dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	r := &running{path: path, process: p}
	life, end := chromedp.NewAllocatorContext(context.Background(), &ours{p})
	tab, endTab := chromedp.NewContext(life)
	r.ctx, r.cancel = tab, func() { endTab(); end() }
	ctx, stop := context.WithTimeoutCause(ctx, launchTime, failed("the browser did not answer in time", nil))
	defer stop()
	defer context.AfterFunc(ctx, p.kill)()
	if _, err := chromedp.CallBrowser(tab, browser.GetVersion, cdp.Empty{}); err != nil {
		words := p.said()
		r.close()
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		return nil, failed("the browser did not start", errors.New(words))
	}
	return r, nil
}

// close ends r and returns when nothing of it is left.
func (r *running) close() {
	r.mu.Lock()
	r.closed = true
	spare := r.spare
	r.spare = nil
	r.mu.Unlock()
	r.process.kill()
	r.cancel()
	if spare != nil {
		spare.close()
	}
	r.process.wait()
}

// ours is an allocator of the one browser that runs already.
type ours struct{ p *process }

// Attaches says that the browser is not the allocator's to end.
func (*ours) Attaches() bool { return true }

// Wait implements chromedp.Allocator.
func (*ours) Wait() {}

// Allocate implements chromedp.Allocator.
func (o *ours) Allocate(ctx context.Context, opts ...chromedp.BrowserOption) (*chromedp.Browser, error) {
	silent := func(string, ...any) {} // what goes wrong is told by errors
	opts = append(opts, chromedp.WithBrowserErrorf(silent), chromedp.WithBrowserLogf(silent))
	return chromedp.NewBrowserTransport(ctx, newPipe(o.p.in, o.p.out), opts...)
}

func failed(what string, err error) error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: "browser", What: what, Err: err}
}

// ended says why ctx is done.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	var e *sdk.Error
	switch {
	case errors.As(cause, &e):
		return e
	case errors.Is(cause, context.DeadlineExceeded):
		return &sdk.Error{Kind: sdk.Limit, Op: "browser", What: "the page was not there in time", Hint: "a larger timeout_ms"}
	}
	return &sdk.Error{Kind: sdk.Canceled, Op: "browser", What: "the call is over", Err: cause}
}
