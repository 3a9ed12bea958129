package egress

import (
	"errors"
	"net"
	"sync"
)

// A turnstile is a listener that lets in so many connections at a time; the
// others wait in the kernel's queue. With it, all that it let in are closed.
type turnstile struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	open map[*admitted]struct{} // nil once closed
}

func newTurnstile(l net.Listener, n int) *turnstile {
	return &turnstile{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{}), open: map[*admitted]struct{}{}}
}

func (t *turnstile) Accept() (net.Conn, error) {
	select {
	case t.slots <- struct{}{}:
	case <-t.closed:
		return nil, net.ErrClosed
	}
	conn, err := t.Listener.Accept()
	if err != nil {
		<-t.slots
		return nil, err
	}
	c := &admitted{Conn: conn, by: t}
	t.mu.Lock()
	late := t.open == nil
	if !late {
		t.open[c] = struct{}{}
	}
	t.mu.Unlock()
	if late {
		c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

func (t *turnstile) Close() error {
	t.once.Do(func() { close(t.closed) })
	err := t.Listener.Close()
	t.mu.Lock()
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for c := range open {
		c.Close()
	}
	return err
}

// An admitted connection gives its slot back when it is closed.
type admitted struct {
	net.Conn
	by   *turnstile
	once sync.Once
}

func (c *admitted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.by.mu.Lock()
		delete(c.by.open, c)
		c.by.mu.Unlock()
		<-c.by.slots
	})
	return err
}

// CloseWrite says that nothing more will be written.
func (c *admitted) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite closes one direction of c, if its kind has two.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
