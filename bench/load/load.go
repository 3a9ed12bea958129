// Package load drives an MCP server on stdio and measures it from outside. It
// knows nothing of how the server is built.
package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Target is a server and the call that is made to it.
type Target struct {
	Name string
	Args []string // the command
	Env  []string // beside the environment's own
	Tool string
	Call string // the arguments, JSON

	Pause time.Duration // before each of the calls that are made one at a time
}

// Figures are what one round measured.
type Figures struct {
	Start      time.Duration // from exec to the first tools/list answer
	P50, P99   time.Duration // one call at a time
	Throughput float64       // calls per second with Outstanding at a time
	StartRSS   int64         // bytes, after the first tools/list
	IdleRSS    int64         // bytes, IdleAfter later, before the first call
}

// Outstanding is how many calls are under way at a time for Throughput.
const Outstanding = 32

// IdleAfter is how long a server is left alone before its idle memory is read:
// it may have work to do in the background.
const IdleAfter = 3 * time.Second

// Measure starts t, measures it, and stops it.
func Measure(t Target, sequential, pipelined int) (f Figures, err error) {
	cmd := exec.Command(t.Args[0], t.Args[1:]...)
	cmd.Env = append(os.Environ(), t.Env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return f, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return f, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return f, err
	}
	defer func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		err = errors.Join(err, cmd.Wait())
	}()
	c := &conn{w: in, r: bufio.NewReaderSize(out, 1<<20)}
	if err := c.handshake(); err != nil {
		return f, err
	}
	f.Start = time.Since(begin)
	if f.StartRSS, err = rss(cmd.Process.Pid); err != nil {
		return f, err
	}
	time.Sleep(IdleAfter)
	if f.IdleRSS, err = rss(cmd.Process.Pid); err != nil {
		return f, err
	}
	line := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", id, t.Tool, t.Call)
	}
	for range min(200, sequential) { // warm
		time.Sleep(t.Pause)
		if err := c.roundTrip(line(1)); err != nil {
			return f, err
		}
	}
	took := make([]time.Duration, sequential)
	for i := range took {
		time.Sleep(t.Pause)
		at := time.Now()
		if err := c.roundTrip(line(i)); err != nil {
			return f, err
		}
		took[i] = time.Since(at)
	}
	slices.Sort(took)
	f.P50, f.P99 = took[len(took)/2], took[len(took)*99/100]
	f.Throughput, err = c.pipeline(line, pipelined)
	return f, err
}

type conn struct {
	w io.Writer
	r *bufio.Reader
}

func (c *conn) handshake() error {
	if err := c.roundTrip(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}` + "\n"); err != nil {
		return err
	}
	if _, err := io.WriteString(c.w, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return err
	}
	return c.roundTrip(`{"jsonrpc":"2.0","id":"l","method":"tools/list","params":{}}` + "\n")
}

func (c *conn) roundTrip(line string) error {
	if _, err := io.WriteString(c.w, line); err != nil {
		return err
	}
	return c.answer()
}

// answer reads until an answer, passing over notifications.
func (c *conn) answer() error {
	for {
		b, err := c.r.ReadBytes('\n')
		if err != nil {
			return err
		}
		if bytes.Contains(b, []byte(`"method":"notifications/`)) {
			continue
		}
		if bytes.Contains(b, []byte(`"error":{`)) || bytes.Contains(b, []byte(`"isError":true`)) {
			return fmt.Errorf("the server answers %.300s", b)
		}
		return nil
	}
}

func (c *conn) pipeline(line func(int) string, n int) (float64, error) {
	begin := time.Now()
	sent := 0
	for ; sent < min(Outstanding, n); sent++ {
		if _, err := io.WriteString(c.w, line(sent)); err != nil {
			return 0, err
		}
	}
	var batch strings.Builder
	for got := 0; got < n; {
		if err := c.answer(); err != nil {
			return 0, err
		}
		got++
		if sent < n {
			batch.WriteString(line(sent))
			sent++
		}
		// Refill when nothing more can be read without waiting, so that the
		// driver does not spend the server's time on system calls.
		if c.r.Buffered() == 0 && batch.Len() > 0 {
			if _, err := io.WriteString(c.w, batch.String()); err != nil {
				return 0, err
			}
			batch.Reset()
		}
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}

// rss returns the resident memory of a process in bytes (Linux).
func rss(pid int) (int64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, nil // not Linux: not measured
	}
	for l := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("no VmRSS")
}
