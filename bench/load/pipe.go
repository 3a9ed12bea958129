package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// A pipe is a server on its standard input and output.
type pipe struct {
	t     Target
	p     process
	w     io.WriteCloser
	r     *bufio.Reader
	buf   []byte
	shook bool
}

func startPipe(t Target) (*pipe, error) {
	cmd, said := t.command()
	w, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &pipe{t: t, w: w, r: bufio.NewReaderSize(out, 1<<20)}
	p.p = process{cmd.Process.Pid, func() error { // the end of its input is the end
		w.Close()
		_, err := io.Copy(io.Discard, p.r)
		return errors.Join(err, cmd.Wait())
	}, said}
	return p, nil
}

func (p *pipe) process() *process { return &p.p }

func (p *pipe) list() ([]byte, error) {
	if !p.t.Modern && !p.shook {
		b, err := p.ask([]byte(initialize))
		if err = errors.Join(err, check(b, "")); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(p.w, initialized+"\n"); err != nil {
			return nil, err
		}
		p.shook = true
	}
	b, err := p.ask(p.t.listing())
	return b, errors.Join(err, check(b, `"tools"`))
}

func (p *pipe) single(id int) error {
	p.buf = p.t.appendCall(p.buf[:0], id)
	b, err := p.ask(p.buf)
	if err != nil {
		return err
	}
	return p.t.checkCall(b, id)
}

func (p *pipe) ask(message []byte) ([]byte, error) {
	if _, err := p.w.Write(append(message, '\n')); err != nil {
		return nil, err
	}
	return p.answer()
}

// answer reads until an answer, passing over notifications. It is good until
// the next.
func (p *pipe) answer() ([]byte, error) {
	for {
		b, err := p.r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(b, []byte(`"method":"notifications/`)) {
			return b, nil
		}
	}
}

// full keeps Outstanding calls under way. What is to be sent is sent when
// nothing more can be read without waiting, so that the driver does not spend
// the server's time on system calls.
func (p *pipe) full(n int) ([]time.Duration, error) {
	sent, took := make([]time.Time, n), make([]time.Duration, n)
	next := 0
	p.buf = p.buf[:0]
	for got := 0; got < n; got++ {
		if p.r.Buffered() == 0 {
			at := time.Now()
			for ; next < min(got+Outstanding, n); next++ {
				p.buf = append(p.t.appendCall(p.buf, next), '\n')
				sent[next] = at
			}
			if _, err := p.w.Write(p.buf); err != nil {
				return nil, err
			}
			p.buf = p.buf[:0]
		}
		b, err := p.answer()
		if err != nil {
			return nil, err
		}
		id, ok := number(b)
		if !ok || id >= next || took[id] != 0 {
			return nil, fmt.Errorf("not an answer that is awaited: %.300s", b)
		}
		took[id] = time.Since(sent[id])
		if err := check(b, p.t.Want); err != nil {
			return nil, err
		}
	}
	return took, nil
}
