// Package socket lets the user of a host answer its questions from another
// terminal: each host listens on a Unix socket of its own in a directory that
// only the user can enter, and both ends ask the kernel who is at the other. What
// is said is one JSON object in each line.
//
// It does not know how a question is shown, or what becomes of an answer. Where
// the kernel does not say who is at the other end, there is no such way.
package socket

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/sdk"
)

// Bounds of a connection.
const (
	maxLine  = 1 << 20 // bytes
	maxConns = 16      // at once, of one host
)

// suffix ends the names of sockets that can be connected to.
const suffix = ".sock"

// A request is what a client says. One that watches is told what opens and what
// is over until it goes.
type request struct {
	Op    string    `json:"op"` // "list", "watch" or "answer"
	ID    string    `json:"id,omitempty"`
	Reply ask.Reply `json:"reply,omitzero"`
}

// An event is what a host says: to a list, all that is open and then Done; to
// an answer, Done or Error; to one who watches, whatever happens.
type event struct {
	Open   *ask.View  `json:"open,omitempty"`
	Closed string     `json:"closed,omitempty"` // an id
	Done   bool       `json:"done,omitempty"`
	Error  *sdk.Error `json:"error,omitempty"`
	Faults ask.Faults `json:"faults,omitempty"`
}

// errorEvent is err as it travels.
func errorEvent(err error) event {
	var faults ask.Faults
	if errors.As(err, &faults) {
		return event{Faults: faults}
	}
	var e *sdk.Error
	if !errors.As(err, &e) {
		e = &sdk.Error{Kind: sdk.Internal, What: "the host failed"}
	}
	return event{Error: e}
}

// err is the error that came.
func (e *event) err() error {
	switch {
	case e.Faults != nil:
		return e.Faults
	case e.Error != nil && e.Error.Kind == ask.ErrOver.Kind:
		return ask.ErrOver
	case e.Error != nil:
		return e.Error
	}
	return nil
}

// A wire is one end of a connection.
type wire struct {
	net.Conn
	in *bufio.Reader
}

func newWire(c net.Conn) *wire { return &wire{c, bufio.NewReaderSize(c, 4<<10)} }

// read reads one line into v.
func (w *wire) read(v any) error {
	var line []byte
	for {
		part, err := w.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return errors.New("a line is too long")
		}
		if err == nil {
			return json.Unmarshal(line, v)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func (w *wire) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// same fails unless the process at the other end is the user's own.
func same(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("not a unix socket")
	}
	uid, err := peer(u)
	if err != nil {
		return err
	}
	if uid != os.Getuid() {
		return fmt.Errorf("user %d", uid)
	}
	return nil
}

// names lists the sockets in a directory that is open.
func names(dir *os.File) ([]string, error) {
	all, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range all {
		if strings.HasSuffix(name, suffix) && !strings.HasPrefix(name, ".") {
			out = append(out, name)
		}
	}
	return out, nil
}
