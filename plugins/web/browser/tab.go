package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/skillhost/skill/plugins/web/browser/relay"
	"github.com/skillhost/skill/sdk"
)

// A Visit is a page that is to be read.
type Visit struct {
	URL      string
	Selector string        // CSS: wait for it, and read only what it matches; or ""
	Wait     time.Duration // so long after the page has loaded; 0: until it is quiet
	Most     int           // bytes of HTML
	Proxy    string        // URL of the one way out, with credentials
}

// Seen is what a page came to.
type Seen struct {
	URL       string // at which it ended
	Status    int    // of its document; 0 if that is not known
	MIME      string // of its document
	Title     string
	HTML      string   // as it stood at the end
	Cut       bool     // HTML is not all of it
	Redirects []string // the addresses on the way, the first one first
	Blocked   []relay.Block
	Notes     []string // what else is worth knowing
}

//go:embed page.js
var pageScript string

// A tab is one page of a browser, in a browser context of its own: nothing
// that it is sent, such as a cookie, is there for another page.
type tab struct {
	visit  Visit
	life   context.Context // chromedp's; done when the visit is over
	end    func()          // ends it, and waits
	target *chromedp.Target
	relay  *relay.Relay
	watch  *watch
}

// newTab opens a tab that shows nothing and has no way out yet.
func (r *running) newTab(ctx context.Context) (*tab, error) {
	t := &tab{watch: newWatch()}
	var err error
	if t.relay, err = relay.New(t.watch.flooded); err != nil {
		return nil, err
	}
	t.life, t.end = chromedp.NewContext(r.ctx, chromedp.WithNewBrowserContext(func(p *target.CreateBrowserContextParams) {
		p.ProxyServer, p.ProxyBypassList = t.relay.Address(), "<-loopback>"
	}))
	defer context.AfterFunc(ctx, t.end)()
	_, err = chromedp.Run(t.life, func(_ context.Context, target *chromedp.Target) (chromedp.Void, error) {
		t.target, t.watch.frame = target, cdp.FrameID(target.TargetID)
		return chromedp.Void{}, t.prepare()
	})
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// close ends the tab and returns when it is gone.
func (t *tab) close() {
	t.relay.Close()
	t.end()
}

// read makes a visit. What is left of it then clear takes away.
func (r *running) read(ctx context.Context, v Visit) (seen Seen, clear func(), err error) {
	t := r.take()
	if t == nil {
		if t, err = r.newTab(ctx); err != nil {
			return seen, func() {}, r.explain(ctx, newWatch(), err)
		}
	}
	t.visit = v
	unhook := context.AfterFunc(ctx, t.end)
	go func() {
		select {
		case <-t.watch.full:
			t.end()
		case <-t.life.Done():
		}
	}()
	seen, err = t.read(ctx)
	seen.Blocked = t.relay.Blocks()
	err = r.explain(ctx, t.watch, err)
	return seen, func() { unhook(); t.close() }, err
}

// take returns the tab that was opened in reserve, if there is one.
func (r *running) take() *tab {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.spare
	r.spare = nil
	if t != nil && (t.life.Err() != nil || r.lost()) {
		return nil
	}
	return t
}

// reserve opens a tab for the next visit, which then does not wait for it: that
// a process is started for it takes as long as many pages do.
func (r *running) reserve() {
	r.mu.Lock()
	needed := r.spare == nil && !r.closed
	r.mu.Unlock()
	if !needed || r.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, launchTime)
	defer cancel()
	t, err := r.newTab(ctx)
	if err != nil {
		return // the next visit finds out
	}
	r.mu.Lock()
	kept := r.spare == nil && !r.closed
	if kept {
		r.spare = t
	}
	r.mu.Unlock()
	if !kept {
		t.close()
	}
}

// explain says in this package's words why a visit failed.
func (r *running) explain(ctx context.Context, w *watch, err error) error {
	var own *sdk.Error
	switch {
	case err == nil:
		return nil
	case w.over.Load():
		return &sdk.Error{Kind: sdk.Limit, Op: "browser", What: fmt.Sprintf("the page loads more than %d MiB, or its document is larger than %d MiB", maxBody>>20, maxDocument>>20)}
	case w.crashed.Load():
		return &sdk.Error{Kind: sdk.Limit, Op: "browser", What: "the page has crashed: it may need more memory than it may have"}
	case ctx.Err() != nil:
		return ended(ctx)
	case r.lost():
		return errGone
	case errors.As(err, &own):
		return err
	}
	return failed("the page cannot be read", errors.New(clip(err.Error(), 300)))
}

// lost reports whether the browser has ended.
func (r *running) lost() bool {
	select {
	case <-chromedp.FromContext(r.ctx).Browser.LostConnection:
		return true
	default:
		return r.ctx.Err() != nil
	}
}

// do runs a command of the page.
func do[P, R any](ctx context.Context, t *tab, c cdp.Command[P, R], params P) (R, error) {
	return cdp.Call(ctx, t.target, c, params)
}

// read does the visit in a page that shows nothing yet.
func (t *tab) read(ctx context.Context) (Seen, error) {
	if err := t.relay.Begin(t.visit.Proxy); err != nil {
		return Seen{}, err
	}
	if err := chromedp.Listen(t.life, t.watch.hear); err != nil {
		return Seen{}, err
	}
	go t.answer()
	if err := t.navigate(); err != nil {
		return Seen{}, err
	}
	notes, err := t.settle(ctx)
	if err != nil {
		return Seen{}, err
	}
	shot, err := t.shot(ctx)
	if err != nil {
		return Seen{}, err
	}
	if !strings.HasPrefix(shot.URL, "http") { // the browser's own page about an error
		return Seen{}, t.unloaded("it led to another that cannot")
	}
	s := Seen{URL: shot.URL, Title: shot.Title, HTML: shot.HTML, Cut: shot.Cut, Notes: notes}
	t.watch.tell(&s)
	return s, nil
}

// prepare takes from the page what this package has no use for, before it shows
// anything: of some events a page could make as many as it likes.
func (t *tab) prepare() error {
	yes, ctx := true, t.life
	commands := []func() error{
		func() error { return second(do(ctx, t, dom.Disable, cdp.Empty{})) },
		func() error { return second(do(ctx, t, css.Disable, cdp.Empty{})) },
		func() error { return second(do(ctx, t, log.Disable, cdp.Empty{})) },
		func() error { return second(do(ctx, t, runtime.Disable, cdp.Empty{})) },
		func() error {
			return second(do(ctx, t, target.SetAutoAttach, target.SetAutoAttachParams{AutoAttach: false, Flatten: &yes}))
		},
		func() error {
			return second(do(ctx, t, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{
				{ResourceType: network.ResourceTypeImage}, {ResourceType: network.ResourceTypeMedia}, {ResourceType: network.ResourceTypeFont},
			}}))
		},
		func() error {
			return second(do(ctx, t, network.SetBypassServiceWorker, network.SetBypassServiceWorkerParams{Bypass: true}))
		},
		func() error {
			return second(chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
				Behavior: browser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: chromedp.FromContext(ctx).BrowserContextID}))
		},
	}
	errs := make([]error, len(commands))
	var all sync.WaitGroup
	for i, command := range commands { // they do not wait for each other
		all.Go(func() { errs[i] = command() })
	}
	all.Wait()
	return errors.Join(errs...)
}

func second[T any](_ T, err error) error { return err }

// answer answers what the page asks for: dialogs are dismissed, pictures, sounds
// and fonts not loaded.
func (t *tab) answer() {
	for {
		select {
		case <-t.life.Done():
			return
		case ask := <-t.watch.asks:
			switch e := ask.(type) { // that it fails matters to the page alone
			case *page.EventJavascriptDialogOpening:
				leave := e.Type == page.DialogTypeBeforeunload
				_, _ = do(t.life, t, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: leave})
			case *fetch.EventRequestPaused:
				_, _ = do(t.life, t, fetch.FailRequest, fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: network.ErrorReasonBlockedByClient})
			}
		}
	}
}

// navigate goes to the page and returns when its document has begun to come.
func (t *tab) navigate() error {
	r, err := do(t.life, t, page.Navigate, page.NavigateParams{URL: t.visit.URL})
	switch {
	case err != nil:
		return err
	case r.IsDownload:
		return &sdk.Error{Kind: sdk.Invalid, Op: "browser", What: "the address is that of a download, not of a page"}
	case r.ErrorText != "":
		return t.unloaded(r.ErrorText)
	}
	return nil
}

// unloaded says why there is no page.
func (t *tab) unloaded(why string) error {
	if b := t.relay.Blocks(); len(b) > 0 {
		return &sdk.Error{Kind: sdk.Denied, Op: "browser", What: b[len(b)-1].Reason}
	}
	return &sdk.Error{Kind: sdk.Unavailable, Op: "browser", What: "the page cannot be loaded: " + clip(why, 100)}
}

// A shot is the result of page.js.
type shot struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	Found *int   `json:"found"`
	HTML  string `json:"html"`
	Cut   bool   `json:"cut"`
}

// shotTime is how long writing the page down may take.
const shotTime = 3 * time.Second

// shot writes the page down. A script that does not end keeps it from that: it
// is ended once.
func (t *tab) shot(ctx context.Context) (s shot, err error) {
	selector, _ := json.Marshal(t.visit.Selector)
	script := fmt.Sprintf("%s(%s,%d)", strings.TrimSpace(pageScript), selector, t.visit.Most)
	late := false
	for try := range 4 {
		if s, err = evaluate[shot](t, script, shotTime); err == nil || ctx.Err() != nil || t.life.Err() != nil {
			return s, err
		}
		var wrong *scriptError
		switch {
		case errors.As(err, &wrong) && t.visit.Selector != "":
			return s, &sdk.Error{Kind: sdk.Invalid, Op: "browser", What: "selector: " + clip(wrong.Error(), 200)}
		case errors.Is(err, context.DeadlineExceeded) && late:
			return s, &sdk.Error{Kind: sdk.Limit, Op: "browser", What: "the page does not stop running its scripts, or is too large"}
		case errors.Is(err, context.DeadlineExceeded):
			late = true
			_ = t.within(time.Second, func(ctx context.Context) error { return second(do(ctx, t, runtime.TerminateExecution, cdp.Empty{})) })
		default: // it went to another document meanwhile
			time.Sleep(time.Duration(try+1) * 50 * time.Millisecond)
		}
	}
	return s, err
}

// within runs f, which runs a command, for some time at most.
func (t *tab) within(d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(t.life, d)
	defer cancel()
	err := f(ctx)
	if err != nil && ctx.Err() != nil && t.life.Err() == nil {
		return context.DeadlineExceeded
	}
	return err
}

// A scriptError is what a script of this package threw.
type scriptError struct{ text string }

func (e *scriptError) Error() string { return e.text }

// evaluate runs a script in a world of its own in the page.
func evaluate[T any](t *tab, script string, patience time.Duration) (out T, err error) {
	err = t.within(patience, func(ctx context.Context) error {
		world, err := do(ctx, t, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: t.watch.frame, WorldName: "reader"})
		if err != nil {
			return err
		}
		yes := true
		r, err := do(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: script, ContextID: world.ExecutionContextID, ReturnByValue: &yes, Silent: &yes})
		if err != nil {
			return err
		}
		if r.ExceptionDetails != nil {
			e := &scriptError{r.ExceptionDetails.Text}
			if x := r.ExceptionDetails.Exception; x != nil && x.Description != "" {
				e.text = strings.SplitN(x.Description, "\n", 2)[0]
			}
			return e
		}
		return json.Unmarshal(r.Result.Value, &out)
	})
	return out, err
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
