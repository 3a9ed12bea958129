package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/plugins/web/browser"
	"github.com/skillhost/skill/plugins/web/extract"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// A document is what was read from an address, before it is put into a format.
type document struct {
	address   string // at which it was, after redirects
	status    int
	mime      string
	bytes     int
	rendered  bool
	redirects []string
	blocked   []blocked
	notes     []string

	title string // of what is not HTML, and of a page in the browser
	html  string // of a page
	text  string // of all else
	page  bool
	part  bool // it holds only what the selector matched
	fresh bool // it is not kept: its server says so, or it should have been rendered and was not
}

// size is what keeping d costs, in bytes.
func (d *document) size() int { return len(d.html) + len(d.text) + 4<<10 }

// read is the tool ReadDocs.
func (r *reader) read(c *guest.Call, in args) (guest.Reply[output], error) {
	var none guest.Reply[output]
	defer r.stuck.enter()()
	address, wrong := extract.Address(in.URL)
	if wrong != "" {
		return none, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("url %.200q: %s", in.URL, wrong), Hint: `for example "https://example.com/docs"`}
	}
	timeout := time.Duration(in.Timeout) * time.Millisecond
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	defer beat(c, timeout)()
	key := in.key(address)
	doc, cached := r.cache.get(key)
	if !cached {
		var err error
		if doc, err = r.document(ctx, c, in, address); err != nil {
			return none, late(ctx, c, timeout, err)
		}
		if doc.status < 400 && !doc.fresh {
			r.cache.put(key, doc)
		}
	}
	reply, err := run(ctx, &r.stuck, func() (guest.Reply[output], error) { return doc.reply(in, address) })
	reply.Structured.Cached = cached
	return reply, late(ctx, c, timeout, err)
}

// key is what tells one document from another.
func (in *args) key(address *url.URL) string {
	accept := in.Format == "html" // servers may send another document
	return fmt.Sprintf("%s\n%s\n%d\n%v\n%s", address, in.Render, in.WaitMS, accept, in.Selector)
}

// late returns err, unless it is that the time is over.
func late(ctx context.Context, c *guest.Call, timeout time.Duration, err error) error {
	if err == nil || c.Context().Err() != nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	if k := sdk.KindOf(err); k == sdk.Denied || k == sdk.Invalid {
		return err
	}
	what := fmt.Sprintf("the page could not be read within %d ms", timeout.Milliseconds())
	var e *sdk.Error
	if errors.As(err, &e) && e.Kind == sdk.Limit && e.What != "" {
		what += ": " + e.What
	}
	return &sdk.Error{Kind: sdk.Limit, What: what, Hint: "timeout_ms may be up to 120000"}
}

// document reads what is at address.
func (r *reader) document(ctx context.Context, c *guest.Call, in args, address *url.URL) (*document, error) {
	a, err := r.fetch(ctx, c, in, address)
	if err != nil {
		return nil, err
	}
	d := a.document
	if !d.page {
		if in.Selector != "" {
			d.notes = append(d.notes, "selector has no meaning for "+d.mime)
		}
		return d, nil
	}
	need, err := run(ctx, &r.stuck, func() (bool, error) { return d.wants(in, a.encoded) })
	if err != nil {
		return nil, err
	}
	if !need {
		return d, nil
	}
	return r.render(ctx, c, in, address, d)
}

// wants reports whether a page has to be rendered. If not, d is what is to be
// read.
func (d *document) wants(in args, encoded bool) (bool, error) {
	if encoded {
		return true, nil // nobody but the browser can unpack it
	}
	at, err := url.Parse(d.address)
	if err != nil {
		return false, err
	}
	p, err := extract.Parse(d.html, at)
	if err != nil {
		if in.Render == "never" || !errors.Is(err, extract.ErrDeep) {
			return false, &sdk.Error{Kind: sdk.Invalid, What: "the page cannot be read", Err: err}
		}
		return true, nil
	}
	if d.title == "" {
		d.title = p.Title
	}
	empty := (p.Chars < extract.MinChars && d.status < 400) || p.App
	if in.Selector != "" {
		found, err := p.Select(in.Selector)
		if err != nil {
			return false, &sdk.Error{Kind: sdk.Invalid, What: "selector: " + err.Error(), Hint: "a CSS selector"}
		}
		empty = !found || p.Chars == 0
	}
	switch in.Render {
	case "always":
		return true, nil
	case "never":
		return false, nil
	}
	return empty || in.WaitMS > 0 || strings.HasPrefix(at.Fragment, "/") || strings.HasPrefix(at.Fragment, "!"), nil
}

// render reads a page with the browser. If there is none, or it fails, static
// is what there is.
func (r *reader) render(ctx context.Context, c *guest.Call, in args, address *url.URL, static *document) (*document, error) {
	var s settings
	if err := c.Settings(&s); err != nil {
		return nil, err
	}
	seen, err := browser.Seen{}, error(nil)
	path, err := browser.Find(s.Browser)
	if err == nil && c.Proxy() == "" {
		err = &sdk.Error{Kind: sdk.Unavailable, What: "this machine cannot confine a browser: that takes level \"strict\", see skill doctor"}
	}
	if err == nil {
		seen, err = r.browser.Read(ctx, path, browser.Visit{URL: address.String(), Selector: in.Selector,
			Wait: time.Duration(in.WaitMS) * time.Millisecond, Most: maxBody, Proxy: c.Proxy()})
	}
	if err != nil {
		return unrendered(static, err)
	}
	d := &document{address: seen.URL, status: seen.Status, mime: seen.MIME, bytes: len(seen.HTML), rendered: true, page: true, part: in.Selector != "",
		redirects: seen.Redirects, notes: seen.Notes, title: seen.Title, html: seen.HTML, fresh: static.fresh}
	for _, b := range seen.Blocked {
		if why, _, more := strings.Cut(b.Reason, "; to allow it"); more { // which is the same long line for each of them
			b.Reason = why + ")"
		}
		d.blocked = append(d.blocked, blocked(b))
	}
	if d.status == 0 {
		d.status = static.status
	}
	if d.mime == "" {
		d.mime = static.mime
	}
	if seen.Cut {
		d.notes = append(d.notes, fmt.Sprintf("the page is longer than %d MiB: this is its beginning", maxBody>>20))
	}
	return d, nil
}

// unrendered returns the page as it is without the browser, and says so.
func unrendered(static *document, err error) (*document, error) {
	kind := sdk.KindOf(err)
	if static.html == "" || kind == sdk.Invalid || kind == sdk.Denied || kind == sdk.Canceled {
		return nil, err
	}
	var e *sdk.Error
	what := err.Error()
	if errors.As(err, &e) { // the reader of a page is no part of the house
		bare := *e
		bare.Op = ""
		what = bare.Error()
	}
	static.fresh = true
	static.notes = append(static.notes, "the page was not rendered, so what its scripts would add is missing: "+what)
	return static, nil
}

// beat reports progress until the function that it returns is called.
func beat(c *guest.Call, total time.Duration) (stop func()) {
	began, done := time.Now(), make(chan struct{})
	var goes sync.WaitGroup
	goes.Go(func() {
		t := time.NewTicker(8 * time.Second)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				c.Progress(time.Since(began).Seconds(), total.Seconds(), "reading the page")
			}
		}
	})
	return func() { close(done); goes.Wait() }
}
