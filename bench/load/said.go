package load

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// maxSaid is how much of what a server said is kept.
const maxSaid = 4 << 10

// said keeps the end of what a server writes to its standard error, for when
// it fails: what it says when it does not is no part of a table.
type said struct {
	mu   sync.Mutex
	last []byte
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = append(s.last, b...)
	s.last = s.last[max(0, len(s.last)-maxSaid):]
	return len(b), nil
}

// of adds what was said to an error, if there is one.
func (s *said) of(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || len(s.last) == 0 {
		return err
	}
	return fmt.Errorf("%w; the server says: %s", err, s.last)
}

// command returns what starts t, and hears what it says.
func (t Target) command() (*exec.Cmd, *said) {
	cmd := exec.Command(t.Args[0], t.Args[1:]...)
	cmd.Env = append(os.Environ(), t.Env...)
	s := &said{}
	cmd.Stderr = s
	return cmd, s
}
