package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"

	"github.com/skillhost/skill/sdk"
)

// A page that is left to itself is given quiet time on a clock of its own. That
// stands still while something is being fetched, and runs as fast as the page
// can keep up with when nothing is to be done but wait for timers: half a second
// in which nothing comes from the network costs as long as what happens in it.
const (
	quiet    = 1000 * time.Millisecond // on the page's clock
	tooLong  = 8 * time.Second         // of ours, for all of it
	loaded   = 3 * time.Second         // of ours, after the page has loaded
	maxMoves = 20                      // documents that a page may go through
	pulse    = 50 * time.Millisecond   // between two looks for what a selector matches
)

// settle waits until the page is what its visitor wants to see. The notes say
// what it did not wait for.
func (t *tab) settle(ctx context.Context) (notes []string, err error) {
	switch {
	case t.visit.Wait > 0:
		notes, err = t.sleep(ctx)
	case t.visit.Selector == "":
		return t.calm(ctx)
	}
	if err != nil || t.visit.Selector == "" {
		return notes, err
	}
	more, err := t.appear(ctx)
	return append(notes, more...), err
}

// sleep waits for the page to load, and then for the time that was asked for.
func (t *tab) sleep(ctx context.Context) ([]string, error) {
	load, wait := time.NewTimer(tooLong), (<-chan time.Time)(nil)
	defer load.Stop()
	done := t.watch.loaded
	for {
		select {
		case <-done:
			done, wait = nil, time.After(t.visit.Wait)
		case <-load.C:
			if wait == nil {
				return []string{"the page had not loaded completely"}, nil
			}
		case <-wait:
			return nil, nil
		case <-t.watch.moved:
			if t.watch.moves.Load() > maxMoves {
				return t.stop(), nil
			}
		case <-ctx.Done():
			return nil, ended(ctx)
		case <-t.life.Done():
			return nil, t.life.Err()
		}
	}
}

// calm waits until the page has been given its quiet time.
func (t *tab) calm(ctx context.Context) ([]string, error) {
	if err := t.grant(); err != nil {
		return nil, err
	}
	late := time.NewTimer(tooLong)
	defer late.Stop()
	done := t.watch.loaded
	for {
		select {
		case <-t.watch.expired:
			if !t.watch.leaving() {
				return nil, nil
			}
		case <-t.watch.moved: // another document, which has a clock of its own
			if t.watch.moves.Load() > maxMoves {
				return t.stop(), nil
			}
			if err := t.grant(); err != nil {
				return nil, err
			}
		case <-done:
			done = nil
			late.Reset(loaded)
		case <-late.C:
			return []string{"the page was still loading when it was read"}, nil
		case <-ctx.Done():
			return nil, ended(ctx)
		case <-t.life.Done():
			return nil, t.life.Err()
		}
	}
}

// grant lets the page's clock run for its quiet time. A script that does not
// end keeps the page from answering, which is found out later.
func (t *tab) grant() error {
	budget := float64(quiet.Milliseconds())
	return ignoreLate(t.within(time.Second, func(ctx context.Context) error {
		_, err := do(ctx, t, emulation.SetVirtualTimePolicy, emulation.SetVirtualTimePolicyParams{
			Policy: emulation.VirtualTimePolicyPauseIfNetworkFetchesPending, Budget: &budget, MaxVirtualTimeTaskStarvationCount: 10_000})
		return err
	}))
}

func ignoreLate(err error) error {
	if err == context.DeadlineExceeded {
		return nil
	}
	return err
}

// stop keeps the page from going on.
func (t *tab) stop() []string {
	_ = t.within(time.Second, func(ctx context.Context) error { return second(do(ctx, t, page.StopLoading, cdp.Empty{})) }) // it may have stopped
	return []string{fmt.Sprintf("the page went through more than %d documents and was stopped", maxMoves)}
}

// appear waits for what the selector matches.
func (t *tab) appear(ctx context.Context) ([]string, error) {
	selector, err := json.Marshal(t.visit.Selector)
	if err != nil {
		return nil, err
	}
	for {
		there, err := evaluate[bool](t, "document.querySelector("+string(selector)+") !== null", shotTime)
		if wrong, ok := err.(*scriptError); ok {
			return nil, &sdk.Error{Kind: sdk.Invalid, Op: "browser", What: "selector: " + clip(wrong.text, 200), Hint: "a CSS selector"}
		}
		if there {
			return nil, nil
		}
		if t.watch.moves.Load() > maxMoves {
			return t.stop(), nil
		}
		select {
		case <-time.After(pulse):
		case <-ctx.Done():
			if e := ended(ctx); sdk.KindOf(e) == sdk.Canceled {
				return nil, e
			}
			return nil, &sdk.Error{Kind: sdk.Limit, Op: "browser", What: "nothing on the page matches the selector in time", Hint: "another selector, or a larger timeout_ms"}
		case <-t.life.Done():
			return nil, t.life.Err()
		}
	}
}
