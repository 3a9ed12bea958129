// Package mcp is the front door: it speaks the Model Context Protocol over a
// stream of lines, in every revision that the official SDK knows. What is hot
// (tools/call, tools/list) goes straight to a Backend; the rest (initialize,
// server/discover, subscriptions/listen, …) is answered by SDK sessions that
// share the same output. One line never ends the stream, every request is
// answered once under its exact id, and at the end of input every accepted
// call is answered before Serve returns.
//
// It does not know what a skill is, who may call what, or how a tool runs. It
// decides nothing: whether a call is allowed is the Backend's answer.
package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// A raw is a JSON value as it stood in a line; nil if it was absent.
type raw = json.RawMessage

// A Kind names a set of things that a client can list.
type Kind string

// Tools are what tools/list lists.
const Tools Kind = "tools"

// A Page is one part of a list.
type Page struct {
	Items   []json.RawMessage // each a JSON object as MCP defines it
	Next    string            // the Backend's cursor for the next page, or empty
	Version uint64            // changes whenever the set does
}

// A Backend is the house behind the door.
type Backend interface {
	// List returns at most n of the things of that kind that exist for scope.
	// A cursor is empty or a Next of an earlier Page; one that no longer fits
	// is an *sdk.Error of kind Invalid.
	List(ctx context.Context, scope sdk.Scope, kind Kind, cursor string, n int) (Page, error)

	// Call runs one tool. It may call emit, from any goroutine, until it
	// returns. The Call's slices are not reused by the front.
	Call(ctx context.Context, c sdk.Call, emit func(sdk.Event)) (sdk.Result, error)

	// Watch yields a kind each time its set changes, until ctx is done.
	Watch(ctx context.Context, scope sdk.Scope) iter.Seq[Kind]
}

// Options set up one Serve. The zero value of each field means its default.
type Options struct {
	Name         string        // the server's name; "skill"
	Version      string        // the server's version; "0.0.0"
	Instructions string        // for the client's model
	Scope        sdk.Scope     // of every call; an empty Session becomes a random one
	MaxLine      int           // longest line accepted, bytes; 64 MiB
	Concurrency  int           // tool calls that run at once; 64
	Queue        int           // requests that wait beyond those; 1024
	Drain        time.Duration // how long accepted calls may run on after the end of input; 30 s
	Grace        time.Duration // the same after ctx is done, and after the cancellation that ends Drain; 2 s
	KeepAlive    time.Duration // silence after which a call with a progress token reports that it lives; 10 s
	Logger       *slog.Logger  // for the operator, never for the client; discards
}

func (o Options) withDefaults() Options {
	orText := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	orInt := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	orTime := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	orText(&o.Name, "skill")
	orText(&o.Version, "0.0.0")
	orText(&o.Scope.Session, rand.Text())
	orInt(&o.MaxLine, 64<<20)
	orInt(&o.Concurrency, 64)
	orInt(&o.Queue, 1024)
	orTime(&o.Drain, 30*time.Second)
	orTime(&o.Grace, 2*time.Second)
	orTime(&o.KeepAlive, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Serve answers the requests that arrive on r, one JSON-RPC message or batch
// per line, on w. At the end of r it answers what it has accepted, and returns
// nil; when ctx is done it does the same within Options.Grace. It fails when
// r or w fail, and when calls outlive the drain (kind Limit).
//
// A Read of r cannot be interrupted: after ctx is done one may still be
// blocked when Serve returns, and what it reads is dropped.
func Serve(ctx context.Context, b Backend, r io.Reader, w io.Writer, o Options) error {
	f := newFront(ctx, b, w, o.withDefaults())
	f.relay.Start(wire.NewReader(r, f.o.MaxLine), f.base.Done())
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		f.watch()
	}()

	grace := f.o.Drain
	var err error
	select {
	case err = <-f.relay.End():
		if err != nil {
			err = &sdk.Error{Kind: sdk.Unavailable, Op: "mcp.Serve", What: "cannot read from the client", Err: err}
		}
	case <-ctx.Done():
		grace = f.o.Grace
	case <-f.w.Broken():
		grace = 0
	}
	if drained := f.drain(grace); err == nil {
		err = drained
	}
	if werr := f.w.Shut(); werr != nil {
		err = &sdk.Error{Kind: sdk.Unavailable, Op: "mcp.Serve", What: "cannot write to the client", Err: werr}
	}
	within(f.o.Grace, watching)
	return err
}

// drain answers what was accepted: for grace as the calls like, then with
// their contexts cancelled.
func (f *front) drain(grace time.Duration) error {
	f.asks.shut()
	idle := f.calls.shut(f.cancelListens)
	done := within(grace, idle)
	f.stop()
	f.notices.stop()
	if !done {
		done = within(f.o.Grace, idle)
	}
	if done {
		within(max(grace, f.o.Grace), f.w.Idle())
	}
	within(f.o.Grace, f.desks.shut())
	if !done {
		return &sdk.Error{Kind: sdk.Limit, Op: "mcp.Serve", What: "calls did not end in time",
			Hint: "they outlived their cancellation as well"}
	}
	return nil
}

// within reports whether done is closed within d.
func within(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}
