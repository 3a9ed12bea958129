package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/host/mcp/answer"
	"github.com/skillhost/skill/host/mcp/neighbour"
)

// An answerPage is the answer page of a host that serves no HTTP otherwise: on a
// loopback address that is opened when somebody is first told of it.
type answerPage struct {
	ctx  context.Context // it ends with that
	room *ask.Room
	log  *slog.Logger

	mu   sync.Mutex
	base string
}

// address is where the page is, before the token.
func (p *answerPage) address() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.base != "" {
		return p.base, nil
	}
	l, err := new(net.ListenConfig).Listen(p.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := l.Addr().String()
	only := neighbour.Only(l, os.Getuid(), strangerPage, func(who string, n int) {
		p.log.Warn("turned away connections to the answer page", "of", who, "count", n)
	})
	s := &http.Server{
		Handler:           answer.New(p.room),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := s.Serve(only); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("the answer page has ended", "err", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.base = "" // another one, if it is asked for
	}()
	context.AfterFunc(p.ctx, func() { s.Close() })
	p.base = "http://" + address + answer.Path
	return p.base, nil
}

// strangerPage is what another user of this machine is told.
var strangerPage = "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 44\r\n\r\nThis page is for another user of the machine"
