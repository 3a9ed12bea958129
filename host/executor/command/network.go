package command

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// A program finds its way out in its environment, which is made before the cage
// is, and with it the listener inside. So the exit is served on a listener that
// is only promised, and the call's credentials are made on that.

// proxyAddress is where the listener of a cage listens, as the program sees it.
const proxyAddress = "127.0.0.1:3128"

// A door is one program's way out. The nil door is shut.
type door struct {
	listener *promised
	exit     native.Exit
	done     func() // ends the call's credentials
	url      string
}

// open makes the way out of a program of j, or nil if it is to have none.
func (p *program) open(j *executor.Job, plan native.Plan) *door {
	asks := slices.ContainsFunc(p.skill.Needs.Allow, func(c capability.Capability) bool { return c.Kind == capability.Network })
	if p.serve == nil || !asks || plan.Level != sandbox.Strict {
		return nil
	}
	d := &door{listener: &promised{kept: make(chan struct{}), closed: make(chan struct{})}}
	d.exit = p.serve(d.listener)
	d.url, d.done = d.exit.Open(j.Input.Call, j.Grant, j.Limits.HTTPBody, native.Bound(p.skill))
	return d
}

// environ tells a program about d.
func (d *door) environ() []string {
	if d == nil || d.url == "" {
		return nil
	}
	vars := sdk.ProxyEnv(d.url)
	env := []string{"GIT_TERMINAL_PROMPT=0"}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// keep gives d the listener of the cage, which is nil if the program has no
// network after all.
func (d *door) keep(l net.Listener) error {
	switch {
	case d == nil || l == nil:
		return nil
	case l.Addr().String() != proxyAddress:
		return &sdk.Error{Kind: sdk.Internal, Op: "command.Run", What: fmt.Sprintf("the cage listens on %s, and its program was told %s", l.Addr(), proxyAddress)}
	}
	d.listener.keep(l)
	return nil
}

// close ends the call's way out, and returns when nothing of it is left.
func (d *door) close() error {
	if d == nil {
		return nil
	}
	d.done()
	return d.exit.Close()
}

// promised is a listener that is there before what it listens on.
type promised struct {
	mu     sync.Mutex
	l      net.Listener
	kept   chan struct{} // closed when l is there
	closed chan struct{}
	once   sync.Once
}

func (p *promised) keep(l net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.l = l
	close(p.kept)
	select {
	case <-p.closed:
		l.Close()
	default:
	}
}

// Accept waits for the listener and then for a connection.
func (p *promised) Accept() (net.Conn, error) {
	select {
	case <-p.kept:
		return p.l.Accept()
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. It is idempotent.
func (p *promised) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.once.Do(func() { close(p.closed) })
	if p.l != nil {
		return p.l.Close()
	}
	return nil
}

// Addr is where the listener will listen.
func (p *promised) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(proxyAddress))
}

// A hallway is the exit that the Maker knows of: the door behind it is the
// run's own.
type hallway struct{ net.Listener }

// Close closes the listener, which the door may have done.
func (h hallway) Close() error {
	if err := h.Listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Open lets nobody out.
func (hallway) Open(string, capability.Grant, int64, capability.Set) (string, func()) {
	return "", func() {}
}
