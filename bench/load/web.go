package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A web is a server on streamable HTTP.
type web struct {
	t    Target
	p    process
	addr string
	c    *conn // what is asked one at a time
	s    *session
}

// startWeb starts t and waits until it listens.
func startWeb(t Target) (*web, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	cmd, said := t.command()
	for i, a := range cmd.Args {
		cmd.Args[i] = strings.ReplaceAll(a, "{addr}", addr)
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &web{t: t, addr: addr}
	w.p = process{cmd.Process.Pid, func() error {
		if w.c != nil {
			w.c.c.Close()
		}
		return terminate(cmd)
	}, said}
	for begin := time.Now(); ; time.Sleep(200 * time.Microsecond) {
		if w.c, err = dial(addr); err == nil {
			return w, nil
		}
		if time.Since(begin) > 30*time.Second {
			return nil, w.p.stop(fmt.Errorf("it does not listen: %w", err))
		}
	}
}

// freeAddr returns an address that nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (w *web) process() *process { return &w.p }

// terminate ends a server as an operator does. One that does not end is killed.
func terminate(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil { // Windows has none
		err := cmd.Process.Kill()
		_ = cmd.Wait() // its status says that it was killed
		return err
	}
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() && ctx.Err() == nil {
		return nil // a server without a handler of its own ends by the signal
	}
	return err
}

func (w *web) list() (b []byte, err error) {
	if w.s == nil {
		if w.s, err = w.t.open(w.c, w.addr); err != nil {
			return nil, err
		}
	}
	a, err := w.c.do(w.s.listing, w.t.listing())
	if err != nil {
		return nil, err
	}
	return a.body, a.check(`"tools"`)
}

func (w *web) single(id int) error { return w.s.call(w.c, id) }

// full has Outstanding connections, each with one call at a time.
func (w *web) full(n int) ([]time.Duration, error) {
	took := make([]time.Duration, n)
	errs := make([]error, Outstanding)
	var all sync.WaitGroup
	for g := range Outstanding {
		all.Go(func() {
			c, err := dial(w.addr)
			if err != nil {
				errs[g] = err
				return
			}
			defer c.c.Close()
			for id := g; id < n; id += Outstanding {
				begin := time.Now()
				if err := w.s.call(c, id); err != nil {
					errs[g] = err
					return
				}
				took[id] = time.Since(begin)
			}
		})
	}
	all.Wait()
	return took, cmp.Or(errs...) // one is enough: the others are alike
}

// check returns an error unless the answer is a result with what is wanted.
func (a answer) check(want string) error {
	if a.status != 200 {
		return fmt.Errorf("the server answers %d %.300s", a.status, a.body)
	}
	return check(a.body, want)
}

// A session is what the requests to a server have in common. Where there are
// no sessions it has no id.
type session struct {
	t              Target
	id             string
	calls, listing []byte // heads of requests
	end, listen    []byte
}

// open makes the handshake that t needs.
func (t Target) open(c *conn, addr string) (*session, error) {
	s := &session{t: t}
	post := "POST /mcp HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	if t.Modern {
		post += "Mcp-Protocol-Version: " + modern + "\r\nMcp-Method: "
		s.calls, s.listing = []byte(post+"tools/call\r\nMcp-Name: "+t.Tool+"\r\n"), []byte(post+"tools/list\r\n")
		return s, nil
	}
	a, err := c.do([]byte(post), []byte(initialize))
	if err = errors.Join(err, a.check("protocolVersion")); err != nil {
		return nil, err
	}
	common := "Mcp-Protocol-Version: " + legacy + "\r\n"
	if t.Session {
		if s.id = a.session; s.id == "" {
			return nil, fmt.Errorf("%s opens no session", t.Name)
		}
		common += "Mcp-Session-Id: " + s.id + "\r\n"
		s.end = []byte("DELETE /mcp HTTP/1.1\r\nHost: " + addr + "\r\n" + common)
		s.listen = []byte("GET /mcp HTTP/1.1\r\nHost: " + addr + "\r\nAccept: text/event-stream\r\n" + common)
	}
	s.calls = []byte(post + common)
	s.listing = s.calls
	if a, err = c.do(s.calls, []byte(initialized)); err != nil || a.status/100 != 2 {
		return nil, errors.Join(err, fmt.Errorf("initialized: the server answers %d %.300s", a.status, a.body))
	}
	return s, nil
}

func (s *session) call(c *conn, id int) error {
	body := s.t.appendCall(c.call[:0], id)
	c.call = body
	a, err := c.do(s.calls, body)
	if err != nil {
		return err
	}
	if err := a.check(""); err != nil {
		return err
	}
	return s.t.checkCall(a.body, id)
}
