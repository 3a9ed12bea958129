package dispatch

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

type (
	key   struct{}
	other struct{}
)

// wound is the clock of a call whose caller's context is ctx.
func wound(t testing.TB, ctx context.Context, l manifest.Limits) *deadline {
	c := new(deadline)
	c.begin(ctx, new(alarms), &l, nil)
	t.Cleanup(c.stop)
	return c
}

var minute = manifest.Limits{Timeout: time.Minute, MaxTimeout: time.Minute}

// Whatever is asked of the contexts of a call, and whether before or after they
// ended, they answer as the standard library's do.
func TestContextsOfACall(t *testing.T) {
	why := &sdk.Error{Kind: sdk.Denied, What: "over"}
	caller, cancel := context.WithDeadline(context.WithValue(t.Context(), key{}, "caller's"), time.Now().Add(time.Hour))
	defer cancel()
	for _, asked := range []string{"before", "after"} {
		c := wound(t, caller, minute)
		contexts := map[string]context.Context{}
		ask := func() {
			for name, ctx := range map[string]context.Context{"soft": &c.soft, "hard": &c.hard} {
				child, cancel := context.WithCancel(ctx)
				timed, cancelTimed := context.WithTimeout(ctx, time.Hour)
				t.Cleanup(func() { cancel(); cancelTimed() })
				contexts[name], contexts[name+"'s child"], contexts[name+"'s timed child"] = ctx, child, timed
				contexts[name+" with a value"] = context.WithValue(ctx, other{}, "its own")
			}
		}
		if asked == "before" {
			ask()
			for name, ctx := range contexts {
				select {
				case <-ctx.Done():
					t.Errorf("%s is done", name)
				default:
				}
				if ctx.Err() != nil || context.Cause(ctx) != nil {
					t.Errorf("%s has ended: %v, %v", name, ctx.Err(), context.Cause(ctx))
				}
			}
		}
		c.revoke(why)
		if asked == "after" {
			ask()
		}
		for name, ctx := range contexts {
			<-ctx.Done()
			if ctx.Err() != context.Canceled || context.Cause(ctx) != why {
				t.Errorf("%s, asked %s: %v, %v", name, asked, ctx.Err(), context.Cause(ctx))
			}
			if ctx.Value(key{}) != "caller's" {
				t.Errorf("%s, asked %s: the caller's values are not there", name, asked)
			}
		}
		if _, ok := c.hard.Deadline(); ok {
			t.Error("there is a deadline that others could go by")
		}
		told := make(chan struct{})
		context.AfterFunc(&c.hard, func() { close(told) })
		<-told
	}
}

// A child of a call's context needs no goroutine that waits for its end.
func TestContextsOfACallStartNothing(t *testing.T) {
	c := wound(t, t.Context(), minute)
	before := runtime.NumGoroutine()
	for range 100 {
		_, cancel := context.WithCancel(&c.soft)
		defer cancel()
		_, cancel = context.WithTimeout(&c.hard, time.Hour)
		defer cancel()
	}
	if n := runtime.NumGoroutine() - before; n > 50 {
		t.Errorf("%d goroutines for 200 contexts", n)
	}
}

// The end of the caller reaches who waits for it, and who only asks now and
// then, and stops the call a moment later.
func TestTheCallerEnds(t *testing.T) {
	late := &sdk.Error{Kind: sdk.Limit, What: "the caller's time is over"}
	for cause, want := range map[error]error{errors.New("gone"): context.Canceled, late: late} {
		for name, ended := range map[string]func(context.Context) bool{
			"waits":               func(ctx context.Context) bool { <-ctx.Done(); return true },
			"asks":                func(ctx context.Context) bool { return ctx.Err() != nil },
			"asks for the reason": func(ctx context.Context) bool { return context.Cause(ctx) != nil },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				caller, cancel := context.WithCancelCause(t.Context())
				c := wound(t, caller, minute)
				if c.soft.Err() != nil || c.hard.Err() != nil {
					t.Fatal("it has ended")
				}
				time.AfterFunc(time.Millisecond, func() { cancel(cause) })
				for _, ctx := range []context.Context{&c.soft, &c.hard} {
					for !ended(ctx) {
						time.Sleep(100 * time.Microsecond)
					}
					if context.Cause(ctx) != want {
						t.Errorf("it is told %v, want %v", context.Cause(ctx), want)
					}
				}
				if c.out() != (want == late) {
					t.Errorf("out of time: %v", c.out())
				}
			})
		}
	}
}

// The soft context ends before the hard one, both for the same reason.
func TestTheTimeIsOver(t *testing.T) {
	c := wound(t, t.Context(), manifest.Limits{Timeout: 50 * time.Millisecond, MaxTimeout: 50 * time.Millisecond})
	<-c.soft.Done()
	soft := context.Cause(&c.soft)
	<-c.hard.Done()
	for _, cause := range []error{soft, context.Cause(&c.hard)} {
		if sdk.KindOf(cause) != sdk.Limit {
			t.Error(cause)
		}
	}
	if !c.out() {
		t.Error("there is time left")
	}
}

// A guest that comes back to the host when its call is over finds everything
// ended.
func TestOperationsAfterTheCall(t *testing.T) {
	h := houseOf(t, slow)
	var left executor.Job
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		left = j
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	if left.Soft.Err() == nil {
		t.Error("the soft context goes on")
	}
	if !left.Ops.(interface{ Knows(string) bool }).Knows("output.write") {
		t.Error("it does not know its operations")
	}
	err := op(context.Background(), left, `{"op":"output.write"}`, nil, []byte("late"))
	if err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("it writes to its output: %v", err)
	}
}
