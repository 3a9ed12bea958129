package socket

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/sdk"
)

// replyTime is how long a host may take to answer.
const replyTime = 10 * time.Second

// A Host is a connection to a host that runs. It is for one goroutine, but for
// Close.
type Host struct {
	Name string // of its socket
	w    *wire
}

// Dial connects to all hosts that listen in dir but those in known, by their
// names. What hosts left behind that died is removed.
func Dial(ctx context.Context, dir string, known map[string]bool) (hosts []*Host, err error) {
	if !supported {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "ask", What: "this system does not say who is at the other end of a socket", Hint: "questions can be answered on the page whose address the client shows"}
	}
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := private(d); err != nil {
		return nil, err
	}
	all, err := names(d)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if known[name] {
			continue
		}
		c, err := new(net.Dialer).DialContext(ctx, "unix", place(d, name))
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(filepath.Join(dir, name)) // nobody listens, nor will
		}
		if err != nil {
			continue // it is about to end
		}
		if err := same(c); err != nil {
			c.Close()
			return hosts, &sdk.Error{Kind: sdk.Denied, Op: "ask", What: "the socket " + name + " is another user's", Err: err}
		}
		hosts = append(hosts, &Host{name, newWire(c)})
	}
	return hosts, nil
}

// Close ends the connection, and a Watch.
func (h *Host) Close() error { return h.w.Close() }

// ask says r and hands each event to f, until that returns false.
func (h *Host) ask(r request, f func(*event) bool) error {
	if err := h.w.SetDeadline(time.Now().Add(replyTime)); err != nil {
		return err
	}
	if err := h.w.write(r); err != nil {
		return err
	}
	for {
		var e event
		if err := h.w.read(&e); err != nil {
			return err
		}
		if !f(&e) {
			return nil
		}
	}
}

// List returns what is open, the oldest first.
func (h *Host) List() (open []ask.View, err error) {
	err = h.ask(request{Op: "list"}, func(e *event) bool {
		if e.Open != nil {
			open = append(open, *e.Open)
		}
		return !e.Done
	})
	return open, err
}

// Answer answers a question. The errors are those of ask.Room.Answer.
func (h *Host) Answer(id string, r ask.Reply) (err error) {
	lost := h.ask(request{Op: "answer", ID: id, Reply: r}, func(e *event) bool {
		err = e.err()
		return false
	})
	if lost != nil {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "ask", What: "the host has ended", Err: lost}
	}
	return err
}

// Watch calls opened and closed as questions open and are over, until the host
// ends or Close.
func (h *Host) Watch(opened func(ask.View), closed func(id string)) error {
	if err := h.w.write(request{Op: "watch"}); err != nil {
		return err
	}
	for {
		var e event
		if err := h.w.read(&e); err != nil {
			return err
		}
		switch {
		case e.Open != nil:
			opened(*e.Open)
		case e.Closed != "":
			closed(e.Closed)
		}
	}
}
