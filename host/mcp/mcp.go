// Package mcp is the front door: it speaks the Model Context Protocol, in every
// revision from 2024-11-05 to 2026-07-28, over a stream of lines. One line never
// ends the stream, every request is answered once under its exact id, and at the
// end of input every accepted call is answered before Serve returns. Package
// streamable is the same over HTTP; what is said is package conversation's.
//
// It does not know what a skill is, who may call what, or how a tool runs.
package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/relay"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// Options set up one Serve. The zero value of each field means its default.
type Options struct {
	conversation.Options
	Scope   sdk.Scope     // of every call; an empty Session becomes a random one
	MaxLine int           // longest line accepted, bytes; 64 MiB
	Drain   time.Duration // how long accepted calls may run on after the end of input; 30 s
	Grace   time.Duration // the same after ctx is done, and after the cancellation that ends Drain; 2 s
}

func (o Options) withDefaults() Options {
	if o.Scope.Session == "" {
		o.Scope.Session = rand.Text()
	}
	if o.MaxLine <= 0 {
		o.MaxLine = 64 << 20
	}
	if o.Drain <= 0 {
		o.Drain = 30 * time.Second
	}
	if o.Grace <= 0 {
		o.Grace = 2 * time.Second
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
func Serve(ctx context.Context, b conversation.Backend, r io.Reader, w io.Writer, o Options) error {
	o = o.withDefaults()
	room := conversation.NewRoom(b, o.Options)
	s := &stream{o: o, w: wire.NewWriter(w)}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.talk = room.Open(base, o.Scope, s)
	s.relay = relay.New(s.w, room.Slots(), s.line)
	s.relay.Start(wire.NewReader(r, o.MaxLine), base.Done())

	grace := o.Drain
	var err error
	select {
	case err = <-s.relay.End():
		if err != nil {
			err = &sdk.Error{Kind: sdk.Unavailable, Op: "mcp.Serve", What: "cannot read from the client", Err: err}
		}
	case <-ctx.Done():
		grace = o.Grace
	case <-s.w.Broken():
		grace = 0
	}
	if drained := s.drain(grace); err == nil {
		err = drained
	}
	if werr := s.w.Shut(); werr != nil {
		err = &sdk.Error{Kind: sdk.Unavailable, Op: "mcp.Serve", What: "cannot write to the client", Err: werr}
	}
	return err
}

// A stream is one Serve: the Outlet of everything that is said in it.
type stream struct {
	o     Options
	w     *wire.Writer
	talk  *conversation.Conversation
	relay *relay.Relay
}

// Send writes a message as a line.
func (s *stream) Send(b *wire.Buffer) {
	b.B = append(b.B, '\n')
	s.w.Send(b)
}

// End writes an answer as a line, if there is one.
func (s *stream) End(b *wire.Buffer, _ *wire.Fault) {
	if b != nil {
		s.Send(b)
	}
}

// line accepts one line, which the reader will overwrite, or refuses one that
// was too long.
func (s *stream) line(line []byte, long error) {
	if long != nil {
		conversation.Refuse(s, nil, wire.BadRequest(long.Error()))
		return
	}
	if line = bytes.Trim(line, " \t\r"); len(line) > 0 {
		s.talk.Accept(bytes.Clone(line), conversation.Via{Out: s, Begin: s.relay.Begin})
	}
}

// drain answers what was accepted: for grace as the calls like, then with
// their contexts cancelled.
func (s *stream) drain(grace time.Duration) error {
	s.talk.Deaf()
	idle := s.talk.Shut()
	done := within(grace, idle)
	s.talk.Close()
	if !done {
		done = within(s.o.Grace, idle)
	}
	if done {
		within(max(grace, s.o.Grace), s.w.Idle())
		return nil
	}
	return &sdk.Error{Kind: sdk.Limit, Op: "mcp.Serve", What: "calls did not end in time",
		Hint: "they outlived their cancellation as well"}
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
