package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
)

// maxBody bounds an answer.
const maxBody = 64 << 20

// A conn is a connection that is kept alive. It does less than net/http's
// client, which costs more than the servers that are to be measured.
type conn struct {
	c             net.Conn
	r             *bufio.Reader
	call, out, in []byte
}

// An answer to an HTTP request. Body is good until the next request.
type answer struct {
	status  int
	session string
	body    []byte // of an event stream the data of the event that answers
	stream  bool
}

func dial(addr string) (*conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, r: bufio.NewReaderSize(c, 16<<10)}, nil
}

// do sends a request, head being its first line and headers, and reads the
// answer.
func (c *conn) do(head, body []byte) (a answer, err error) {
	c.out = append(c.out[:0], head...)
	c.out = append(c.out, "Content-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, body...)
	if _, err := c.c.Write(c.out); err != nil {
		return a, err
	}
	length, err := c.head(&a)
	if err != nil {
		return a, err
	}
	c.in = c.in[:0]
	switch {
	case length < 0:
		err = c.chunks()
	case length > maxBody:
		err = errors.New("the answer is too large")
	default:
		err = c.take(length)
	}
	a.body = c.in
	if a.stream {
		a.body = event(c.in)
	}
	return a, err
}

// head reads the first line and the headers of an answer. The length is
// negative when the body comes in chunks.
func (c *conn) head(a *answer) (length int, err error) {
	l, err := c.line()
	if err != nil {
		return 0, err
	}
	if len(l) < 12 || !bytes.HasPrefix(l, []byte("HTTP/1.1 ")) {
		return 0, fmt.Errorf("not an answer: %.100q", l)
	}
	if a.status, err = strconv.Atoi(string(l[9:12])); err != nil {
		return 0, err
	}
	for {
		l, err := c.line()
		if err != nil || len(l) == 0 {
			return length, err
		}
		key, value, _ := bytes.Cut(l, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case is(key, "Content-Length"):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		case is(key, "Transfer-Encoding"):
			length = -1
		case is(key, "Content-Type"):
			a.stream = bytes.HasPrefix(value, []byte("text/event-stream"))
		case is(key, "Mcp-Session-Id"):
			a.session = string(value)
		}
	}
}

func is(key []byte, name string) bool {
	return len(key) == len(name) && strings.EqualFold(string(key), name)
}

func (c *conn) line() ([]byte, error) {
	l, err := c.r.ReadSlice('\n')
	return textproto.TrimBytes(l), err
}

func (c *conn) chunks() error {
	for {
		l, err := c.line()
		if err != nil {
			return err
		}
		size, err := strconv.ParseUint(string(l), 16, 31)
		if err != nil {
			return err
		}
		if size > maxBody {
			return errors.New("the answer is too large")
		}
		if err := c.take(int(size)); err != nil {
			return err
		}
		if _, err := c.line(); err != nil || size == 0 {
			return err
		}
	}
}

// take appends n bytes to what was read.
func (c *conn) take(n int) error {
	at := len(c.in)
	for cap(c.in) < at+n {
		c.in = append(c.in[:cap(c.in)], 0)
	}
	c.in = c.in[:at+n]
	_, err := io.ReadFull(c.r, c.in[at:])
	return err
}

// event returns the data of the last event that has some.
func event(stream []byte) (data []byte) {
	for l := range bytes.Lines(stream) {
		if d, ok := bytes.CutPrefix(l, []byte("data:")); ok && len(bytes.TrimSpace(d)) > 0 {
			data = bytes.TrimSpace(d)
		}
	}
	return data
}
