// Package bound counts the connections and the requests of a server, what each
// caller has open and how often it comes: so many and no more, and none once the
// server is to end. It does not know what they are for.
package bound

import (
	"net"
	"sync"
)

// Work counts the requests that are not answered yet.
type Work struct {
	mu     sync.Mutex
	left   int
	closed bool
	idle   chan struct{}
	ends   map[int]func() // of what would not end by itself
	next   int
}

// Begin reports whether another request may begin.
func (w *Work) Begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.left++
	return true
}

// End undoes Begin.
func (w *Work) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left--; w.closed && w.left == 0 {
		close(w.idle)
	}
}

// Drained lets Close call end, until the function it returns.
func (w *Work) Drained(end func()) (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		go end()
		return func() {}
	}
	if w.ends == nil {
		w.ends = map[int]func(){}
	}
	k := w.next
	w.next++
	w.ends[k] = end
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.ends, k)
	}
}

// Close lets no request begin, and returns a channel that is closed when none is
// left.
func (w *Work) Close() <-chan struct{} {
	w.mu.Lock()
	first := !w.closed
	if first {
		w.closed, w.idle = true, make(chan struct{})
		if w.left == 0 {
			close(w.idle)
		}
	}
	ends := w.ends
	w.ends = nil
	w.mu.Unlock()
	for _, end := range ends {
		end()
	}
	return w.idle
}

// Listen returns l with at most n connections open.
func Listen(l net.Listener, n int) net.Listener {
	return &bounded{Listener: l, free: make(chan struct{}, n)}
}

// bounded is a Listener that has only so many connections open.
type bounded struct {
	net.Listener
	free chan struct{} // holds one for each connection
}

func (b *bounded) Accept() (net.Conn, error) {
	b.free <- struct{}{}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &conn{Conn: c, leave: sync.OnceFunc(func() { <-b.free })}, nil
}

// A conn makes room for another when it is closed.
type conn struct {
	net.Conn
	leave func()
}

func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// Left is how many requests are not answered yet.
func (w *Work) Left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left
}
