//go:build !wasip1

package plugin

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

// Serve serves the program's tools until the host goes away. It is the last
// thing that main does. A program that was not started by a host says so and
// exits with status 1.
func Serve() {
	if err := serve(os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve listens where the environment says, tells the host by a line on out,
// and serves its one connection.
func serve(getenv func(string) string, out io.Writer) error {
	if getenv(wire.CookieKey) != wire.CookieValue {
		return &sdk.Error{Kind: sdk.Invalid, What: "this program is a plugin of skill, which starts it", Hint: `name it in a skill.toml with runtime = "plugin"`}
	}
	path := filepath.Join(getenv(wire.SocketDirKey), "plugin")
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("plugin.Serve: %w", err)
	}
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(math.MaxInt32), // the host keeps the limits
		grpc.InitialWindowSize(1<<20),      // said once: pings to measure the connection cost more than they bring
		grpc.InitialConnWindowSize(4<<20),
	)
	s.RegisterService(&wire.Service, server{})
	if _, err := fmt.Fprintf(out, "1|%d|unix|%s|grpc\n", wire.Version, path); err != nil {
		return fmt.Errorf("plugin.Serve: %w", err)
	}
	err = s.Serve(&once{Listener: l, gone: make(chan struct{})})
	s.Stop()
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// once is a listener for one connection: the host's. When that has ended, there
// is nobody left to serve.
type once struct {
	net.Listener
	accepted bool
	gone     chan struct{}
}

var errGone = errors.New("the host is gone")

func (l *once) Accept() (net.Conn, error) {
	if l.accepted {
		<-l.gone
		return nil, errGone
	}
	l.accepted = true
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &last{Conn: c, close: sync.OnceFunc(func() { close(l.gone) })}, nil
}

// last is the connection that the program lives for.
type last struct {
	net.Conn
	close func()
}

func (c *last) Close() error {
	c.close()
	return c.Conn.Close()
}
