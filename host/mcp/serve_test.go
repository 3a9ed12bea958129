package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

// house is a Backend of a few tools whose names say what they do.
type house struct {
	mu      sync.Mutex
	version uint64
	pages   int // how many pages the list has; 0: one
	calls   []sdk.Call
	changes chan conversation.Kind
	gates   map[string]chan struct{}
}

func newHouse() *house {
	return &house{version: 1, changes: make(chan conversation.Kind, 16), gates: map[string]chan struct{}{}}
}

// gate returns a channel that a test and a tool share.
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
	return slices.Clone(h.calls)
}

func (h *house) List(_ context.Context, _ sdk.Scope, kind conversation.Kind, cursor string, n int) (conversation.Page, error) {
	if kind != conversation.Tools {
		return conversation.Page{}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := conversation.Page{Version: h.version}
	at := 0
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, "after-%d", &at); err != nil {
			return conversation.Page{}, &sdk.Error{Kind: sdk.Invalid, Op: "house.List", What: "cursor"}
		}
	}
	if h.pages > 0 {
		p.Items = append(p.Items, json.RawMessage(fmt.Sprintf(`{"name":"tool%d","inputSchema":{"type":"object"}}`, at)))
		if at+1 < h.pages {
			p.Next = fmt.Sprintf("after-%d", at+1)
		}
		return p, nil
	}
	p.Items = append(p.Items,
		json.RawMessage(fmt.Sprintf(`{"name":"echo","description":"version %d","inputSchema":{"type":"object"}}`, h.version)),
		json.RawMessage("{\"name\":\"shaped\",\n\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":{\"type\":\"object\",\"required\":[\"x\"]}}"))
	return p, nil
}

func (h *house) Watch(ctx context.Context, _ sdk.Scope) iter.Seq[conversation.Change] {
	return func(yield func(conversation.Change) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case k := <-h.changes:
				if !yield(conversation.Change{Kind: k}) {
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
		Rounds  int    `json:"rounds"`
	}
	if c.Args != nil {
		if err := json.Unmarshal(c.Args, &args); err != nil {
			return sdk.Result{}, &sdk.Error{Kind: sdk.Invalid, Op: "schema.Check", What: "arguments", Err: err}
		}
	}
	switch c.Tool {
	case "echo":
		return sdk.Text(args.Message), nil
	case "wait":
		select {
		case <-h.gate(args.Gate):
			return sdk.Text("opened"), nil
		case <-ctx.Done():
			return sdk.Result{}, &sdk.Error{Kind: sdk.Canceled, Op: "house.Call", What: "wait", Err: ctx.Err()}
		}
	case "stubborn":
		<-h.gate(args.Gate)
		return sdk.Text("too late"), nil
	case "panic":
		panic("the sky is falling with secret 42")
	case "plain":
		return sdk.Result{}, errors.New("secret stack of the host")
	case "ask":
		return askTool(c, args.Rounds)
	case "events":
		for i := range 3 {
			emit(sdk.Event{Kind: sdk.EventProgress, Progress: float64(i), Total: 3, Message: fmt.Sprint("step ", i)})
		}
		emit(sdk.Event{Kind: sdk.EventProgress, Progress: 1, Message: "backwards"})
		emit(sdk.Event{Kind: sdk.EventPartial, Content: sdk.Content{Type: sdk.TypeText, Text: "half"}})
		emit(sdk.Event{Kind: sdk.EventLog, Level: "warning", Message: "careful"})
		emit(sdk.Event{Kind: sdk.EventLog, Level: "debug", Message: "detail"})
		return sdk.Text("done"), nil
	case "contents":
		return everything(), nil
	case "shaped", "denied":
		return sdk.Result{}, &sdk.Error{Kind: sdk.Denied, Op: "policy.Authorize", What: `filesystem.read "/etc/passwd"`, Hint: "ask the operator",
			Denial: &sdk.Denial{Capability: "filesystem.read", Resource: "/etc/passwd", Layer: "manifest", File: "skill.toml", Line: 3}}
	case "invalid", "limit", "guest", "unavailable", "canceled":
		return sdk.Result{}, fmt.Errorf("wrapped: %w", &sdk.Error{Kind: sdk.Kind(c.Tool), Op: "house.Call", What: "what", Hint: "hint"})
	}
	return sdk.Result{}, &sdk.Error{Kind: sdk.NotFound, Op: "catalog.Resolve", What: fmt.Sprintf("unknown tool %q", c.Tool), Hint: `did you mean "echo"?`}
}

// askTool asks as often as it is told to and then says what it was answered.
func askTool(c sdk.Call, rounds int) (sdk.Result, error) {
	round := len(c.State)
	if round < max(rounds, 1) {
		return sdk.Result{State: c.State + "s", Questions: map[string]sdk.Question{
			"name": {Kind: sdk.QuestionForm, Message: "Your name?", Schema: json.RawMessage("{\"type\":\"object\",\n\"properties\":{\"n\":{\"type\":\"string\"}}}")},
		}}, nil
	}
	a := c.Answers["name"]
	return sdk.Text(fmt.Sprintf("%s %s after %d", a.Action, a.Content, round)), nil
}

func everything() sdk.Result {
	return sdk.Result{
		Content: []sdk.Content{
			{Type: sdk.TypeText, Text: "bad \xff utf8, \"quoted\"\n\x00\u2028", Audience: []string{"user"}},
			{Type: sdk.TypeImage, MIME: "image/png", Data: []byte{1, 2, 3}},
			{Type: sdk.TypeAudio, MIME: "audio/wav", Data: []byte{}},
			{Type: sdk.TypeResource, URI: "file:///a", MIME: "text/plain", Text: "inside"},
			{Type: sdk.TypeResource, URI: "file:///b", MIME: "application/x", Data: []byte("blob")},
			{Type: sdk.TypeResourceLink, URI: "file:///c", Title: "C", Size: 7},
		},
		Structured: json.RawMessage("{\"a\":\n[1, 2]}"),
		Failed:     true,
		Meta:       json.RawMessage(`{"mine":{"k":1},"io.modelcontextprotocol/serverInfo":{"name":"forged"}}`),
	}
}

// A line is one client at a served stream.
type session struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
}

// serve starts a Serve; its end is awaited when the test ends.
func serve(t *testing.T, b conversation.Backend, o Options) *session {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &session{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<16), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := Serve(ctx, b, inR, outW, o)
		outW.Close()
		s.done <- err
	}()
	t.Cleanup(func() {
		inW.Close()
		go io.Copy(io.Discard, outR)
		<-s.done
		cancel()
	})
	return s
}

func (s *session) send(lines ...string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, strings.Join(lines, "\n")+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) recv() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("no answer: %v", err)
	}
	if !json.Valid([]byte(line)) {
		s.t.Fatalf("not JSON: %s", line)
	}
	return strings.TrimSuffix(line, "\n")
}

// ask sends one line and returns the next.
func (s *session) ask(line string) string {
	s.t.Helper()
	s.send(line)
	return s.recv()
}

// piped returns what a shell pipe of these lines answers, line by line.
func piped(t *testing.T, b conversation.Backend, o Options, input string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := Serve(context.Background(), b, strings.NewReader(input), &out, o); err != nil {
		t.Fatalf("Serve: %v", err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("not JSON: %q", line)
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

func TestSeedRequestAlone(t *testing.T) {
	got := piped(t, newHouse(), Options{}, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
	if len(got) != 1 || !strings.HasPrefix(got[0], `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"`) {
		t.Fatalf("got %q", got)
	}
}

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 1<<16) }
