package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/skillhost/skill/sdk"
)

// serve runs what in asks for. Every error it returns is an *sdk.Error.
func serve(ctx context.Context, p *port, in sdk.Input) (sdk.Result, *sdk.Error) {
	r, err := dispatch(ctx, p, in)
	if err == nil {
		return r, nil
	}
	var e *sdk.Error
	if !errors.As(err, &e) {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: err.Error()}
	}
	if error(e) == err && e.Kind != "" {
		return sdk.Result{}, e
	}
	// What was wrapped around the error is for the reader as well.
	outer := &sdk.Error{Kind: e.Kind, What: err.Error(), Denial: e.Denial}
	if outer.Kind == "" {
		outer.Kind = sdk.Guest
	}
	return sdk.Result{}, outer
}

func dispatch(ctx context.Context, p *port, in sdk.Input) (r sdk.Result, err error) {
	if in.Describe {
		r.Structured, err = json.Marshal(description())
		return r, err
	}
	t := tools[in.Tool]
	if t == nil {
		return r, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no tool %q in this module", in.Tool)}
	}
	c, err := newCall(ctx, p, in)
	if err != nil {
		return r, err
	}
	defer c.ctx.cancel(nil)
	r, err = t.call(c)
	if c.asking() && (err == nil || errors.Is(err, ErrAsk)) {
		return c.questions()
	}
	return r, err
}

// call runs the author's function and turns its panic into an error: a trap
// would tell the caller nothing.
func (t *tool) call(c *Call) (r sdk.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(os.Stderr, "panic: %v\n\n%s", p, debug.Stack())
			what, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			r, err = sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: "the tool panicked: " + what}
		}
	}()
	return t.run(c)
}

// frame encodes what serve returned.
func frame(r sdk.Result, e *sdk.Error) []byte {
	if e == nil {
		b, err := sdk.AppendResult(nil, r)
		if err == nil {
			return b
		}
		e = &sdk.Error{Kind: sdk.Guest, What: "the result cannot be encoded: " + err.Error()}
	}
	return sdk.AppendError(nil, e)
}
