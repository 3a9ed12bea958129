package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/skillhost/skill/host/mcp/streamable/bound"
	"github.com/skillhost/skill/host/mcp/streamable/head"
	"github.com/skillhost/skill/sdk"
)

const (
	maxHeader = 64 << 10 // bytes of a request's headers: tokens can be long
	idleTime  = 2 * time.Minute
	stubborn  = 2 * time.Second // for calls to notice that they were cancelled
)

// Listen listens on addr, HOST:PORT. It refuses an address that other machines
// can reach unless open is set: then somebody answers for who may come in.
func Listen(ctx context.Context, addr string, open bool) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "http.Listen", What: fmt.Sprintf("cannot listen on %q", addr), Err: err}
	}
	if !open && !head.Loopback(head.Name(l.Addr().String())) {
		l.Close()
		return nil, &sdk.Error{Kind: sdk.Denied, Op: "http.Listen", What: fmt.Sprintf("%q can be reached from other machines, and anybody could come in", addr),
			Hint: "listen on 127.0.0.1, or configure who may come in"}
	}
	return l, nil
}

// Serve answers what comes in through l until ctx is done. Then it answers what
// it has accepted, within grace, and returns nil; calls that outlive that are
// cancelled, and those that outlive this as well are an error of kind Limit.
//
// Each of the doors is put around l, the first one innermost. The connections
// that a door turns away count as well, until it has closed them.
func (h *Handler) Serve(ctx context.Context, l net.Listener, grace time.Duration, doors ...func(net.Listener) net.Listener) error {
	l = bound.Listen(l, h.o.Limits.Connections)
	for _, door := range doors {
		l = door(l)
	}
	s := &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return h.base },
		ReadHeaderTimeout: h.o.Limits.HeaderTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(h.o.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	var err error
	select {
	case err = <-ended:
		err = &sdk.Error{Kind: sdk.Unavailable, Op: "http.Serve", What: "cannot accept connections", Err: err}
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	closed := make(chan struct{})
	go func() { // takes no more connections meanwhile
		defer close(closed)
		_ = s.Shutdown(limit) // what is left is closed below
	}()
	late := h.Shutdown(limit)
	<-closed
	_ = s.Close()
	return errors.Join(err, late)
}

// Shutdown refuses new requests, answers those that it has accepted, and ends
// subscriptions, sessions and streams. When ctx is done it cancels what is left;
// what outlives this is an error of kind Limit.
func (h *Handler) Shutdown(ctx context.Context) error {
	defer h.stop()
	idle := h.work.Close()
	sessions := h.sessions.all()
	var answered []<-chan struct{}
	for _, s := range sessions {
		s.talk.Deaf()
		answered = append(answered, s.talk.Shut())
	}
	for _, a := range answered {
		select {
		case <-a:
		case <-ctx.Done():
		}
	}
	for _, s := range sessions {
		h.sessions.end(s)
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	h.stop()
	select {
	case <-idle:
		return nil
	case <-time.After(stubborn):
		return &sdk.Error{Kind: sdk.Limit, Op: "http.Shutdown", What: "calls did not end in time", Hint: "they outlived their cancellation as well"}
	}
}
