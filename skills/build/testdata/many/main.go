// Many is a guest that holds the SDK to its promises inside a real module.
package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

type none struct{}

// at_once: goroutines wait for operations side by side, while another sleeps.
var _ = guest.Tool("at_once", "", func(c *guest.Call, _ none) (string, error) {
	const n = 12
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			f, err := c.Start("together", map[string]int{"n": i}).Wait()
			if err == nil && string(f.Blobs[0]) != fmt.Sprint(i) {
				err = fmt.Errorf("got %q", f.Blobs[0])
			}
			errs[i] = err
		})
	}
	wg.Go(func() { time.Sleep(time.Millisecond) })
	wg.Wait()
	return "ok", errors.Join(errs...)
})

// any: the one that can end ends first.
var _ = guest.Tool("any", "", func(c *guest.Call, _ none) (string, error) {
	never, soon := c.Start("never", nil), c.Start("soon", nil)
	i, err := guest.WaitAny(never, soon)
	return fmt.Sprint(i), err
})

// any_for: waiting ends when its time is over, and the operation goes on.
var _ = guest.Tool("any_for", "", func(c *guest.Call, _ none) (string, error) {
	never := c.Start("never", nil)
	begin := time.Now()
	i, err := guest.WaitAnyFor(70*time.Millisecond, never)
	if took := time.Since(begin); err != nil || i != -1 || took < 70*time.Millisecond {
		return "", fmt.Errorf("%d after %v: %w", i, took, err)
	}
	if i, err = guest.WaitAnyFor(0, never); err != nil || i != -1 {
		return "", fmt.Errorf("a look: %d: %w", i, err)
	}
	i, err = guest.WaitAnyFor(time.Hour, never, c.Start("soon", nil))
	return fmt.Sprint(i), err
})

var _ = guest.Tool("unknown_op", "", func(c *guest.Call, _ none) (string, error) {
	_, err := c.Start("no.such", nil).Wait()
	return "", err
})

var _ = guest.Tool("panic", "", func(*guest.Call, none) (string, error) { panic("on purpose") })

var _ = guest.Tool("too_much", "", func(*guest.Call, none) (string, error) { return strings.Repeat("x", 64<<20), nil })

var _ = guest.Tool("until_cancelled", "", func(c *guest.Call, _ none) (string, error) {
	_, err := c.Start("never", nil).Wait()
	if sdk.KindOf(err) != sdk.Limit || !c.Cancelled() {
		return "", fmt.Errorf("not cancelled: %w", err)
	}
	return "last words", nil
})

// ask asks, and does its work only once.
var _ = guest.Tool("ask", "", func(c *guest.Call, _ none) (string, error) {
	n, err := guest.Once(c, "count", func() (string, error) {
		f, err := c.Start("count", nil).Wait()
		if err != nil {
			return "", err
		}
		return string(f.Blobs[0]), nil
	})
	if err != nil {
		return "", err
	}
	a, err := c.Ask("sure", sdk.Question{Message: "sure?"})
	return n + a.Action, err
})

func main() {}
