package load

import (
	"fmt"
	"time"
)

// A Hold is the memory of a server that keeps sessions, in bytes.
type Hold struct {
	None, Open, Streams int64 // before; with the sessions; and with a stream of each
	Opening             time.Duration
}

// Sessions starts t, opens n sessions and then a stream of each, and leaves
// them be.
func Sessions(t Target, n int) (h Hold, err error) {
	w, err := startWeb(t)
	if err != nil {
		return h, err
	}
	defer func() { err = w.p.stop(err) }()
	if _, err := w.list(); err != nil {
		return h, err
	}
	time.Sleep(IdleAfter)
	if h.None, err = Memory(w.p.pid, "VmRSS"); err != nil {
		return h, err
	}
	all := make([]*session, n)
	begin := time.Now()
	for i := range all {
		if all[i], err = t.open(w.c, w.addr); err != nil {
			return h, fmt.Errorf("session %d: %w", i, err)
		}
	}
	h.Opening = time.Since(begin) / time.Duration(n)
	if h.Open, err = Memory(w.p.pid, "VmRSS"); err != nil {
		return h, err
	}
	for i, s := range all {
		c, err := dial(w.addr)
		if err != nil {
			return h, err
		}
		defer c.c.Close()
		if err := s.hear(c); err != nil {
			return h, fmt.Errorf("stream %d: %w", i, err)
		}
	}
	if h.Streams, err = Memory(w.p.pid, "VmRSS"); err != nil {
		return h, err
	}
	for i, s := range all { // they are open still
		if err := s.call(w.c, i); err != nil {
			return h, err
		}
	}
	return h, nil
}

// hear opens the stream of what a server sends unasked, on a connection of
// its own.
func (s *session) hear(c *conn) error {
	if _, err := c.c.Write(append(s.listen, "\r\n"...)); err != nil {
		return err
	}
	var a answer
	if _, err := c.head(&a); err != nil {
		return err
	}
	if a.status != 200 || !a.stream {
		return fmt.Errorf("the server answers %d", a.status)
	}
	return nil
}

// close ends a session.
func (s *session) close(c *conn) error {
	a, err := c.do(s.end, nil)
	if err == nil && a.status/100 != 2 {
		err = fmt.Errorf("the end of a session: the server answers %d %.300s", a.status, a.body)
	}
	return err
}
