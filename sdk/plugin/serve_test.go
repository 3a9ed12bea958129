//go:build unix

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

type textArgs struct {
	Text string `json:"text"`
}

var (
	_ = guest.Tool("echo", "", func(_ *guest.Call, in textArgs) (string, error) { return in.Text, nil })
	_ = guest.Tool("fail", "", func(*guest.Call, textArgs) (string, error) {
		return "", &sdk.Error{Kind: sdk.Unavailable, What: "gone", Hint: "later"}
	})
	_ = guest.Tool("say", "", func(c *guest.Call, in textArgs) (string, error) {
		c.Log("info", in.Text)
		c.Progress(1, 2, "half")
		return "", c.Partial(sdk.Content{Type: sdk.TypeImage, MIME: "image/png", Data: []byte("PNG")})
	})
	_ = guest.Tool("ask", "", func(c *guest.Call, in textArgs) (string, error) {
		f, err := c.Start(in.Text, map[string]int{"n": 1}, []byte("blob"), []byte("two")).Wait()
		return string(f.Header), err
	})
	_ = guest.Tool("late", "", func(c *guest.Call, in textArgs) (string, error) {
		go func() {
			<-answered
			c.Log("info", "too late")
			close(said)
		}()
		return "", nil
	})
	_ = guest.Tool("wait", "", func(c *guest.Call, _ textArgs) (string, error) {
		<-c.Context().Done()
		var s *sdk.Stop
		if errors.As(context.Cause(c.Context()), &s) {
			return s.Signal + " " + s.Grace.String(), nil
		}
		return context.Cause(c.Context()).Error(), nil
	})
)

var answered, said chan struct{} // of TestNext

// host speaks to a plugin that is served in this process.
type host struct {
	t      *testing.T
	stream grpc.ClientStream
	number uint32 // of the last call
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := t.TempDir()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	env := map[string]string{wire.CookieKey: wire.CookieValue, wire.SocketDirKey: dir}
	go func() { ended <- serve(func(k string) string { return env[k] }, w) }()
	line := make([]byte, 1024)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimSuffix(string(line[:n]), "\n"), "|")
	if len(parts) != 5 || parts[0] != "1" || parts[1] != "1" || parts[2] != "unix" || filepath.Dir(parts[3]) != dir || parts[4] != "grpc" {
		t.Fatalf("handshake %q", line[:n])
	}
	conn, err := grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return net.Dial("unix", parts[3]) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("serve goes on without a host")
		}
		if _, err := os.Stat(parts[3]); !os.IsNotExist(err) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	stream, err := conn.NewStream(t.Context(), &wire.Service.Streams[0], wire.RunMethod)
	if err != nil {
		t.Fatal(err)
	}
	return &host{t: t, stream: stream}
}

func (h *host) send(kind wire.Kind, id uint32, body []byte) {
	h.t.Helper()
	if err := h.stream.SendMsg(&wire.Message{Kind: kind, Id: id, Body: body}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) call(tool, text string) {
	h.t.Helper()
	args, err := json.Marshal(textArgs{text})
	if err != nil {
		h.t.Fatal(err)
	}
	header, err := json.Marshal(sdk.Input{Tool: tool, Args: args})
	if err != nil {
		h.t.Fatal(err)
	}
	h.begin(header)
}

func (h *host) begin(header []byte) {
	h.t.Helper()
	h.number++
	h.send(wire.Kind_CALL, h.number, sdk.AppendFrame(nil, header))
}

func (h *host) next(kind wire.Kind) *wire.Message {
	h.t.Helper()
	m := &wire.Message{}
	if err := h.stream.RecvMsg(m); err != nil || m.Kind != kind {
		h.t.Fatalf("got %v %q, %v, want %v", m.Kind, m.Body, err, kind)
	}
	return m
}

// result reads the result.
func (h *host) result() (sdk.Result, error) {
	h.t.Helper()
	m := h.next(wire.Kind_RESULT)
	if m.Id != h.number {
		h.t.Errorf("the result of call %d, want %d", m.Id, h.number)
	}
	return sdk.ParseResult(m.Body)
}

func (h *host) text(want string) {
	h.t.Helper()
	if r, err := h.result(); err != nil || len(r.Content) != 1 || r.Content[0].Text != want {
		h.t.Errorf("got %+v, %v, want %q", r, err, want)
	}
}

func TestResult(t *testing.T) {
	h := newHost(t)
	h.call("echo", "hello")
	h.text("hello")
}

func TestError(t *testing.T) {
	h := newHost(t)
	h.call("fail", "")
	if _, err := h.result(); sdk.KindOf(err) != sdk.Unavailable || err.Error() != "gone (later)" {
		t.Errorf("got %v", err)
	}
	h = newHost(t)
	h.call("absent", "")
	if _, err := h.result(); sdk.KindOf(err) != sdk.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestDescribe(t *testing.T) {
	h := newHost(t)
	h.begin([]byte(`{"tool":"","describe":true}`))
	r, err := h.result()
	var d sdk.Description
	if err != nil || json.Unmarshal(r.Structured, &d) != nil || len(d.Tools) != 6 {
		t.Errorf("%s, %v", r.Structured, err)
	}
}

func TestEvents(t *testing.T) {
	h := newHost(t)
	h.call("say", "aloud")
	if b := h.next(wire.Kind_LOG).Body; string(b) != `{"level":"info","message":"aloud"}` {
		t.Errorf("log %s", b)
	}
	if b := h.next(wire.Kind_PROGRESS).Body; string(b) != `{"progress":1,"total":2,"message":"half"}` {
		t.Errorf("progress %s", b)
	}
	if c, err := sdk.ParseContent(h.next(wire.Kind_PARTIAL).Body); err != nil || string(c.Data) != "PNG" {
		t.Errorf("partial %+v, %v", c, err)
	}
	h.text("")
}

func TestOperation(t *testing.T) {
	for name, c := range map[string]struct {
		reply []byte
		text  string
		kind  sdk.Kind
	}{
		"reply":   {sdk.AppendFrame(nil, []byte(`{"ok":1}`)), `{"ok":1}`, ""},
		"error":   {sdk.AppendError(nil, &sdk.Error{Kind: sdk.Denied, What: "no"}), "", sdk.Denied},
		"unknown": {nil, "", sdk.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.call("ask", "kv.get")
			m := h.next(wire.Kind_OP)
			f, err := sdk.ParseFrame(m.Body)
			if err != nil || string(f.Header) != `{"op":"kv.get","n":1,"blobs":[4,3]}` || len(f.Blobs) != 2 || string(f.Blobs[1]) != "two" || m.Id == 0 {
				t.Fatalf("%d: %s %q, %v", m.Id, f.Header, f.Blobs, err)
			}
			h.send(wire.Kind_REPLY, m.Id+7, []byte("for nobody"))
			h.send(wire.Kind_REPLY, m.Id, c.reply)
			if c.kind == "" {
				h.text(c.text)
			} else if _, err := h.result(); sdk.KindOf(err) != c.kind {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestStop(t *testing.T) {
	for body, want := range map[string]string{
		"":                                  "the call is cancelled or out of time",
		`{"signal":"TERM","grace":1000000}`: "TERM 1ms",
		"garbage":                           "the call is cancelled or out of time",
	} {
		h := newHost(t)
		h.call("wait", "")
		h.send(wire.Kind_STOP, 0, []byte(body))
		h.text(want)
	}
}

// An operation under way ends when the call is to end, and the tool can still
// answer.
func TestStopEndsOperations(t *testing.T) {
	h := newHost(t)
	h.call("ask", "slow")
	h.next(wire.Kind_OP)
	h.send(wire.Kind_STOP, 0, nil)
	if _, err := h.result(); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("got %v", err)
	}
}

// One call after another on one stream: what belongs to an earlier one does
// not touch the next one.
func TestNext(t *testing.T) {
	answered, said = make(chan struct{}), make(chan struct{})
	h := newHost(t)
	h.call("echo", "one")
	h.text("one")
	h.send(wire.Kind_STOP, 0, nil)
	h.send(wire.Kind_REPLY, 1, sdk.AppendFrame(nil, []byte(`{"stale":1}`)))
	h.call("ask", "kv.get")
	h.send(wire.Kind_REPLY, h.next(wire.Kind_OP).Id, sdk.AppendFrame(nil, []byte(`{"ok":1}`)))
	h.text(`{"ok":1}`)
	h.call("wait", "")
	h.send(wire.Kind_STOP, 0, nil)
	h.text("the call is cancelled or out of time")
	h.call("late", "")
	h.text("")
	close(answered)
	<-said
	h.call("echo", "two")
	h.text("two")
	if err := h.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := h.stream.RecvMsg(&wire.Message{}); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

func TestNoCall(t *testing.T) {
	for name, m := range map[string]*wire.Message{
		"stop_first":   {Kind: wire.Kind_STOP},
		"not_a_frame":  {Kind: wire.Kind_CALL, Body: []byte("x")},
		"not_an_input": {Kind: wire.Kind_CALL, Body: sdk.AppendFrame(nil, []byte(`{"tool":5}`))},
	} {
		h := newHost(t)
		h.send(m.Kind, m.Id, m.Body)
		if err := h.stream.RecvMsg(&wire.Message{}); err == nil || err == io.EOF {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A person who starts a plugin is told what it is.
func TestCookie(t *testing.T) {
	var out bytes.Buffer
	err := serve(func(string) string { return "" }, &out)
	if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), "plugin of skill") || out.Len() > 0 {
		t.Errorf("got %v, %q", err, out.String())
	}
}
