package streamable

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

// house is a Backend of a few tools whose names say what they do.
type house struct {
	mu      sync.Mutex
	version uint64
	calls   []sdk.Call
	ended   []error // of wait, when it was cancelled
	gates   map[string]chan struct{}
	changes chan conversation.Change
	lists   int
}

func newHouse() *house {
	return &house{version: 1, gates: map[string]chan struct{}{}, changes: make(chan conversation.Change, 16)}
}

func (h *house) gate(name string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gates[name] == nil {
		h.gates[name] = make(chan struct{})
	}
	return h.gates[name]
}

func (h *house) seen() []sdk.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]sdk.Call(nil), h.calls...)
}

// called waits until n calls have begun.
func (h *house) called(t *testing.T, n int) {
	t.Helper()
	within(t, func() bool { return len(h.seen()) >= n })
}

func (h *house) cancelled() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ended)
}

// within waits for a condition.
func within(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

func (h *house) List(_ context.Context, _ sdk.Scope, kind conversation.Kind, cursor string, _ int) (conversation.Page, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lists++
	p := conversation.Page{Version: h.version}
	switch {
	case kind != conversation.Tools:
	case cursor == "":
		p.Next = "2"
		p.Items = append(p.Items, json.RawMessage(`{"name":"echo","inputSchema":{"type":"object"}}`), json.RawMessage(`{"name":"odd","inputSchema":true,"x":"x-mcp-header"}`))
	default:
		p.Items = append(p.Items, json.RawMessage(fmt.Sprintf(`{"name":"routed","inputSchema":{"type":"object","properties":{"any":{},"region":{"type":"string","x-mcp-header":"Region%d"},"deep":{"properties":{"n":{"type":"integer","x-mcp-header":"num"},"yes":{"type":"boolean","x-mcp-header":"Yes"}}}}}}`, h.version)))
	}
	return p, nil
}

func (h *house) Watch(ctx context.Context, _ sdk.Scope) iter.Seq[conversation.Change] {
	return func(yield func(conversation.Change) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case c := <-h.changes:
				if !yield(c) {
					return
				}
			}
		}
	}
}

func (h *house) Call(ctx context.Context, c sdk.Call, emit func(sdk.Event)) (sdk.Result, error) {
	h.mu.Lock()
	h.calls = append(h.calls, c)
	h.mu.Unlock()
	var args struct {
		Message string `json:"message"`
		Gate    string `json:"gate"`
		N       int    `json:"n"`
	}
	if c.Args != nil {
		_ = json.Unmarshal(c.Args, &args)
	}
	switch c.Tool {
	case "echo", "routed":
		return sdk.Text(args.Message), nil
	case "wait":
		select {
		case <-h.gate(args.Gate):
			return sdk.Text("opened"), nil
		case <-ctx.Done():
			h.mu.Lock()
			h.ended = append(h.ended, ctx.Err())
			h.mu.Unlock()
			return sdk.Result{}, &sdk.Error{Kind: sdk.Canceled, Op: "house.Call", What: "wait", Err: ctx.Err()}
		}
	case "stubborn":
		<-h.gate(args.Gate)
		return sdk.Text("too late"), nil
	case "events":
		for i := range args.N {
			emit(sdk.Event{Kind: sdk.EventProgress, Progress: float64(i), Message: args.Message})
		}
		if args.Gate != "" {
			<-h.gate(args.Gate)
		}
		return sdk.Text("done"), nil
	case "large":
		return sdk.Text(strings.Repeat("x", args.N)), nil
	case "ask":
		if c.State == "" {
			return sdk.Result{State: "s", Questions: map[string]sdk.Question{"name": {Kind: sdk.QuestionForm, Message: "Your name?", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`)}}}, nil
		}
		return sdk.Text(c.Answers["name"].Action + string(c.Answers["name"].Content)), nil
	case "panic":
		panic("the sky is falling")
	}
	return sdk.Result{}, &sdk.Error{Kind: sdk.NotFound, Op: "catalog.Resolve", What: fmt.Sprintf("unknown tool %q", c.Tool)}
}

// A site is a served house.
type site struct {
	*house
	t    *testing.T
	h    *Handler
	addr string
	url  string // of /mcp
	stop context.CancelFunc
	done chan error
}

// serve serves a house over a real port until the test ends, and then checks
// that nothing is left of it.
func serve(t *testing.T, o Options) *site {
	return serveRoom(t, o, conversation.Options{Name: "skill", Version: "1"})
}

func serveRoom(t *testing.T, o Options, c conversation.Options) *site {
	t.Helper()
	before := goroutines()
	s := &site{house: newHouse(), t: t, done: make(chan error, 1)}
	o.Room = conversation.NewRoom(s.house, c)
	if o.Scope.Caller == "" {
		o.Scope.Caller = "local:tester"
	}
	l, err := Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.url = "http://" + s.addr + "/mcp"
	s.h = New(o)
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	go func() { s.done <- s.h.Serve(ctx, l, 5*time.Second) }()
	t.Cleanup(func() {
		s.stop()
		if err := s.wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		leaks(t, before)
	})
	return s
}

func (s *site) wait() error {
	select {
	case err := <-s.done:
		s.done <- err
		return err
	case <-time.After(90 * time.Second):
		return errors.New("it does not end")
	}
}

// A reply is what came back.
type reply struct {
	status int
	head   http.Header
	body   string
}

// do sends one request. head is "key: value" pairs; an empty value removes what
// is there by default.
func (s *site) do(method, path, body string, head ...string) reply {
	s.t.Helper()
	r := s.request(s.t.Context(), method, path, body, head...)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%v after %q", err, text)
	}
	return reply{res.StatusCode, res.Header, string(text)}
}

func (s *site) request(ctx context.Context, method, path, body string, head ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for _, h := range head {
		k, v, _ := strings.Cut(h, ":")
		v = strings.TrimSpace(v)
		switch {
		case k == "Host":
			r.Host = v
		case v == "":
			r.Header.Del(k)
		case k[0] == '+':
			r.Header.Add(k[1:], v)
		default:
			r.Header.Set(k, v)
		}
	}
	return r
}

func (s *site) post(body string, head ...string) reply {
	s.t.Helper()
	return s.do("POST", "/mcp", body, head...)
}

func call(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// modern sends a modern request with the headers that it must have.
func (s *site) modern(id, method, name, params string, head ...string) reply {
	s.t.Helper()
	return s.post(modernBody(id, method, params), append(modernHead(method, name), head...)...)
}

func modernBody(id, method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + modernMeta + `}}`
}

func modernHead(method, name string) []string {
	return []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: " + method, "Mcp-Name: " + name}
}

func initializeBody(version, capabilities string) string {
	return `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":` + capabilities + `,"clientInfo":{"name":"tester","version":"1"}}}`
}

// open opens a session and returns the headers of its requests.
func (s *site) open(version, capabilities string, head ...string) []string {
	s.t.Helper()
	r := s.post(initializeBody(version, capabilities), head...)
	id := r.head.Get(sessionHeader)
	if r.status != 200 || id == "" {
		s.t.Fatalf("initialize: %+v", r)
	}
	head = append(head, sessionHeader+": "+id, versionHeader+": "+version)
	if r := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, head...); r.status != http.StatusAccepted || r.body != "" {
		s.t.Fatalf("initialized: %+v", r)
	}
	return head
}

// An sse is one event as it came.
type sse struct{ name, id, data, retry string }

// A feed is an open stream of events.
type feed struct {
	t    *testing.T
	res  *http.Response
	r    *bufio.Reader
	stop context.CancelFunc
}

func (s *site) stream(method, path, body string, head ...string) *feed {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	res, err := http.DefaultClient.Do(s.request(ctx, method, path, body, head...))
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(res.Body)
		s.t.Fatalf("no stream: %d %s", res.StatusCode, text)
	}
	return &feed{s.t, res, bufio.NewReader(res.Body), cancel}
}

// next returns the next event; false at the end of the stream.
func (f *feed) next() (e sse, ok bool) {
	f.t.Helper()
	some := false
	for {
		line, err := f.r.ReadString('\n')
		if err != nil {
			return e, false
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch key {
		case "":
			if line == "\n" && some {
				return e, true
			}
			continue
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "retry":
			e.retry = value
		}
		some = true
	}
}

// want returns the next event, which must contain a text.
func (f *feed) want(text string) sse {
	f.t.Helper()
	e, ok := f.next()
	if !ok || !strings.Contains(e.data, text) {
		f.t.Fatalf("got %+v %v, want %s", e, ok, text)
	}
	return e
}

// end makes sure that the stream ends without another event.
func (f *feed) end() {
	f.t.Helper()
	if e, ok := f.next(); ok {
		f.t.Fatalf("one event too many: %+v", e)
	}
}

// raw opens a connection to say what no client says.
func (s *site) raw(text string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		s.t.Fatal(err)
	}
	return c
}
