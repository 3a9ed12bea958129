package socket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/sdk"
)

// writeTime is how long the other end may take to take a line.
const writeTime = 10 * time.Second

// Serve lets the user answer what is open in room, on a socket in dir, until ctx
// is done. Others are turned away, and warn is told.
func Serve(ctx context.Context, dir string, room *ask.Room, warn func(error)) error {
	if !supported {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "ask", What: "this system does not say who is at the other end of a socket"}
	}
	l, name, err := listen(dir)
	if err != nil {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "ask", What: `the socket for "skill answer"`, Err: err}
	}
	defer os.Remove(name)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	slots := make(chan struct{}, maxConns)
	var work sync.WaitGroup
	defer work.Wait()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				c.Close()
			}
			return nil
		}
		if err != nil {
			return &sdk.Error{Kind: sdk.Unavailable, Op: "ask", What: `the socket for "skill answer"`, Err: err}
		}
		if err := same(c); err != nil {
			warn(fmt.Errorf("ask: turned away a connection of %w", err))
			c.Close()
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			c.Close()
			continue
		}
		work.Go(func() {
			defer func() { <-slots }()
			serve(ctx, c, room)
		})
	}
}

// listen makes a socket that only the user can connect to. It gets the name by
// which it is found when somebody listens: one that nobody listens on is taken
// for that of a host that died.
func listen(dir string) (l net.Listener, name string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, "", err
	}
	defer d.Close()
	if err := private(d); err != nil {
		return nil, "", err
	}
	short := strings.ToLower(rand.Text()[:12])
	hidden := "." + short
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: place(d, hidden), Net: "unix"})
	if err != nil {
		return nil, "", err
	}
	u.SetUnlinkOnClose(false)
	name = filepath.Join(dir, short+suffix)
	if err = os.Chmod(filepath.Join(dir, hidden), 0o600); err == nil {
		err = os.Rename(filepath.Join(dir, hidden), name)
	}
	if err != nil {
		u.Close()
		return nil, "", errors.Join(err, os.Remove(filepath.Join(dir, hidden)))
	}
	return u, name, nil
}

// serve answers one connection.
func serve(ctx context.Context, c net.Conn, room *ask.Room) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	s := &session{wire: newWire(c), room: room}
	for {
		var r request
		if s.read(&r) != nil {
			break
		}
		switch r.Op {
		case "list":
			open, _ := room.Open()
			for i := range open {
				s.say(event{Open: &open[i]})
			}
			s.say(event{Done: true})
		case "answer":
			if err := room.Answer(r.ID, ask.Terminal, r.Reply); err != nil {
				s.say(errorEvent(err))
			} else {
				s.say(event{Done: true})
			}
		case "watch":
			s.watch(ctx)
		default:
			s.say(event{Error: &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("no operation %.20q", r.Op)}})
		}
	}
	if s.leave != nil {
		s.leave()
		<-s.left
	}
}

// A session is one connection.
type session struct {
	*wire
	room  *ask.Room
	mu    sync.Mutex // of what is written
	leave func()     // nil until it watches
	left  chan struct{}
}

func (s *session) say(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.SetWriteDeadline(time.Now().Add(writeTime)) != nil || s.write(e) != nil {
		s.Close() // which ends the reading, too
	}
}

// watch tells what opens and what is over, from now on.
func (s *session) watch(ctx context.Context) {
	if s.leave != nil {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	detach := s.room.Attach()
	s.left = make(chan struct{})
	s.leave = func() { stop(); detach() }
	go func() {
		defer close(s.left)
		told := map[string]bool{}
		for {
			open, changed := s.room.Open()
			now := map[string]bool{}
			for i := range open {
				if now[open[i].ID] = true; !told[open[i].ID] {
					s.say(event{Open: &open[i]})
				}
			}
			for id := range told {
				if !now[id] {
					s.say(event{Closed: id})
				}
			}
			told = now
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
}
