package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/sdk"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func initialize(capabilities string) string {
	return `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"tester","version":"1"}}}`
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func expect(t *testing.T, got, pattern string) {
	t.Helper()
	if !matches(pattern, got) {
		t.Fatalf("got  %s\nwant %s", got, pattern)
	}
}

func callLine(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

func TestCancelledCallIsNotAnswered(t *testing.T) {
	h := newHouse()
	s := serve(t, h, Options{})
	for i, id := range []string{`1`, `"a\u0062"`, `9007199254740993`} {
		s.send(callLine(id, "wait", `{"gate":"never"}`))
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"bored"}}`)
		ping := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 100+i)
		expect(t, s.ask(ping), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, 100+i))
	}
	s.in.Close()
	if rest, err := io.ReadAll(s.out); err != nil || len(rest) > 0 {
		t.Fatalf("answered after all: %s %v", rest, err)
	}
}

// A tool that ignores its cancellation is not answered either.
func TestCancelledStubbornCallIsNotAnswered(t *testing.T) {
	h := newHouse()
	s := serve(t, h, Options{})
	s.send(callLine(`1`, "stubborn", `{"gate":"g"}`),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	expect(t, s.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`), `{"jsonrpc":"2.0","id":2,"result":{}}`)
	close(h.gate("g"))
	s.in.Close()
	if rest, _ := io.ReadAll(s.out); len(rest) > 0 {
		t.Fatalf("answered after all: %s", rest)
	}
}

func TestCancelInsideBatch(t *testing.T) {
	s := serve(t, newHouse(), Options{})
	s.send(`[` + callLine(`1`, "wait", `{"gate":"never"}`) + `,` + callLine(`2`, "echo", `{}`) + `]`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	expect(t, s.recv(), `[{"jsonrpc":"2.0","id":2,"result":{...}}]`)
}

func TestDuplicateIDInFlight(t *testing.T) {
	h := newHouse()
	s := serve(t, h, Options{})
	s.send(callLine(`7`, "wait", `{"gate":"g"}`))
	expect(t, s.ask(callLine(`7`, "echo", `{}`)), `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,...}}`)
	expect(t, s.ask(`{"jsonrpc":"2.0","id":7,"method":"ping"}`), `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,...}}`)
	close(h.gate("g"))
	expect(t, s.recv(), `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"opened"}],"isError":false}}`)
	expect(t, s.ask(callLine(`7`, "echo", `{}`)), `{"jsonrpc":"2.0","id":7,"result":{...}}`)
}

func TestQueueIsBounded(t *testing.T) {
	h := newHouse()
	s := serve(t, h, Options{Options: conversation.Options{Concurrency: 2, Queue: 1}})
	for id := 1; id <= 3; id++ { // two run, one waits
		s.send(callLine(fmt.Sprint(id), "wait", `{"gate":"g"}`))
	}
	expect(t, s.ask(callLine(`4`, "echo", `{}`)), `{"jsonrpc":"2.0","id":4,"error":{"code":-32000,"message":"limit: server busy",...}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`) // while it waits
	close(h.gate("g"))
	got := s.recv() + s.recv()
	if strings.Contains(got, `"id":3`) || strings.Count(got, "opened") != 2 {
		t.Fatalf("got %s", got)
	}
	expect(t, s.ask(callLine(`5`, "echo", `{}`)), `{"jsonrpc":"2.0","id":5,"result":{...}}`)
	for _, c := range h.seen() {
		if c.Tool == "wait" && strings.Contains(string(c.Args), "3") {
			t.Fatal("a call ran that was cancelled while it waited")
		}
	}
}

func TestLegacyElicitation(t *testing.T) {
	h := newHouse()
	s := serve(t, h, Options{Options: conversation.Options{Concurrency: 1}})
	s.ask(initialize(`{"elicitation":{"form":{}}}`))
	s.send(callLine(`1`, "ask", `{"rounds":2}`))
	var q struct {
		ID     string
		Method string
		Params map[string]any
	}
	recv := func() {
		t.Helper()
		line := s.recv()
		if err := json.Unmarshal([]byte(line), &q); err != nil || q.Method != "elicitation/create" || q.Params["mode"] != "form" || q.Params["message"] != "Your name?" {
			t.Fatalf("not a question: %s", line)
		}
	}
	recv()
	// Nothing is held while a human thinks: the only slot is free.
	expect(t, s.ask(callLine(`2`, "echo", `{"message":"meanwhile"}`)), `{"jsonrpc":"2.0","id":2,"result":{...meanwhile...}}`)
	s.send(`{"jsonrpc":"2.0","id":"` + q.ID + `","result":{"action":"accept","content":{"n":"x"}}}`)
	recv()
	s.send(`{"jsonrpc":"2.0","id":"` + q.ID + `","result":{"action":"accept","content":{"n":"y"}}}`)
	expect(t, s.recv(), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"accept {\"n\":\"y\"} after 2"}],"isError":false}}`)
	for answer, want := range map[string]string{
		`"result":{"action":"decline"}`:              "decline  after 1",
		`"result":{"action":"cancel"}`:               "cancel  after 1",
		`"error":{"code":-32601,"message":"no"}`:     "cancel  after 1",
		`"result":{"action":"accept","content":"x"}`: "cancel  after 1",
		`"result":7`:                                     "cancel  after 1",
		`"result":{"action":"accept"}`:                   "accept  after 1",
		`"result":{"action":"accept","content":null}`:    "accept  after 1",
		`"result":{"action":"accept","content":{"n":1}}`: `accept {\"n\":1} after 1`,
	} {
		s.send(callLine(`3`, "ask", `{}`))
		recv()
		s.send(`{"jsonrpc":"2.0","id":"` + q.ID + `",` + answer + `}`)
		expect(t, s.recv(), `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"`+want+`"}],"isError":false}}`)
	}
	if c := h.seen()[0]; !c.Client.Form || c.Client.URL || c.Client.Name != "tester" {
		t.Errorf("client seen as %+v", c.Client)
	}
}

func TestElicitationEndsAfterEightRounds(t *testing.T) {
	s := serve(t, newHouse(), Options{})
	s.ask(initialize(`{"elicitation":{}}`))
	s.send(callLine(`1`, "ask", `{"rounds":99}`))
	questions := 0
	for {
		line := s.recv()
		var q struct{ Method, ID string }
		if json.Unmarshal([]byte(line), &q) != nil || q.Method == "" {
			expect(t, line, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"limit: ...}`)
			break
		}
		questions++
		s.send(`{"jsonrpc":"2.0","id":"` + q.ID + `","result":{"action":"accept","content":{}}}`)
	}
	if questions != 8-1 {
		t.Errorf("asked %d times", questions)
	}
}

func TestCancelWhileAsking(t *testing.T) {
	s := serve(t, newHouse(), Options{})
	s.ask(initialize(`{"elicitation":{}}`))
	s.send(callLine(`1`, "ask", `{}`))
	var q struct{ ID string }
	if err := json.Unmarshal([]byte(s.recv()), &q); err != nil {
		t.Fatal(err)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	expect(t, s.recv(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"`+q.ID+`"}}`)
	s.send(`{"jsonrpc":"2.0","id":"`+q.ID+`","result":{"action":"accept"}}`, // too late
		`{"jsonrpc":"2.0","id":"stranger","result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}`)
	expect(t, s.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`), `{"jsonrpc":"2.0","id":2,"result":{}}`)
}

func TestListChanged(t *testing.T) {
	h := newHouse()
	s := serve(t, h, Options{})
	change := func() {
		h.mu.Lock()
		h.version++
		h.mu.Unlock()
		h.changes <- conversation.Tools
		h.changes <- conversation.Tools // one notification for both
	}
	s.ask(initialize(`{}`))
	expect(t, s.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), `...version 1...`)
	s.send(initialized)
	s.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	change()
	expect(t, s.recv(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`)
	expect(t, s.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`), `{"jsonrpc":"2.0","id":3,...version 2...`)
}

func TestTwoListensOnOneStream(t *testing.T) {
	h := newHouse()
	s := serve(t, h, Options{})
	listen := func(id, want string) string {
		return s.ask(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":{` + want + `},` + modernMeta + `}}`)
	}
	ack := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`
	note := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`
	expect(t, listen(`"one"`, `"toolsListChanged":true`), fmt.Sprintf(ack, `"one"`))
	expect(t, listen(`2.5`, `"toolsListChanged":true`), fmt.Sprintf(ack, `2.5`))
	h.changes <- conversation.Tools
	got := map[string]bool{s.recv(): true, s.recv(): true}
	if !got[fmt.Sprintf(note, `"one"`)] || !got[fmt.Sprintf(note, `2.5`)] {
		t.Fatalf("got %v", got)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"one"}}`)
	for len(h.changes) > 0 || subscribers(s, h) {
	}
	h.changes <- conversation.Tools
	expect(t, s.recv(), fmt.Sprintf(note, `2.5`))
	s.send(`{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{` + modernMeta + `}}`)
	expect(t, s.recv(), `{"jsonrpc":"2.0","id":3,"error":{"code":-32602,...}}`)
}

// subscribers reports whether the cancelled listen of the test above is still
// in flight: its id is then refused.
func subscribers(s *session, _ *house) bool {
	got := s.ask(`{"jsonrpc":"2.0","id":"one","method":"tools/list","params":{` + modernMeta + `}}`)
	return strings.Contains(got, `"error"`)
}

func TestListensAreBounded(t *testing.T) {
	s := serve(t, newHouse(), Options{})
	for i := range 16 + 1 {
		got := s.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, i, modernMeta))
		if refused := strings.Contains(got, `"code":-32000`); refused != (i == 16) {
			t.Fatalf("listen %d: %s", i, got)
		}
	}
}

func TestPages(t *testing.T) {
	h := newHouse()
	h.pages = 3
	s := serve(t, h, Options{})
	cursor, names := "", ""
	for page := 0; ; page++ {
		var m struct {
			Result struct {
				Tools      []struct{ Name string }
				NextCursor string
			}
		}
		if err := json.Unmarshal([]byte(s.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"`+cursor+`"}}`)), &m); err != nil {
			t.Fatal(err)
		}
		for _, tool := range m.Result.Tools {
			names += tool.Name + " "
		}
		if cursor = m.Result.NextCursor; cursor == "" {
			break
		}
		if strings.Contains(cursor, "after") {
			t.Fatal("the cursor is not opaque")
		}
	}
	if names != "tool0 tool1 tool2 " {
		t.Fatalf("listed %s", names)
	}
	page, _, _ := message.AppendList(nil, "tools", nil, "nonsense")
	_, sealed, _ := strings.Cut(string(page), `"nextCursor":`)
	expect(t, s.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":`+sealed+`}}`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,...}}`)
}

func TestKeepAlive(t *testing.T) {
	h := newHouse()
	s := serve(t, h, Options{Options: conversation.Options{KeepAlive: time.Millisecond}})
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"gate":"g"},"_meta":{"progressToken":"t"}}}`)
	last := -1.0
	for range 5 {
		var m struct {
			Method string
			Params struct {
				ProgressToken string
				Progress      float64
			}
		}
		if err := json.Unmarshal([]byte(s.recv()), &m); err != nil || m.Method != "notifications/progress" || m.Params.ProgressToken != "t" || m.Params.Progress <= last {
			t.Fatalf("%+v %v", m, err)
		}
		last = m.Params.Progress
	}
	close(h.gate("g"))
	for {
		if line := s.recv(); strings.Contains(line, `"id":1`) {
			break
		}
	}
	s.in.Close()
	if rest, _ := io.ReadAll(s.out); len(rest) > 0 {
		t.Fatalf("said after the answer: %s", rest)
	}
}

func TestWhatTheBackendLearns(t *testing.T) {
	h := newHouse()
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	scope := sdk.Scope{Caller: "local:me", Workspace: "/w"}
	piped(t, h, Options{Scope: scope}, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"\u0041"},"_meta":{"traceparent":"`+trace+`","skill/narrow":{"filesystem":[]},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"me","version":"2"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}}}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","_meta":{"traceparent":"00-evil\nline"}}}`)
	calls := h.seen()
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	for _, c := range calls {
		if c.Scope.Session == "" || c.Scope.Caller != "local:me" || c.Scope.Workspace != "/w" {
			t.Errorf("scope %+v", c.Scope)
		}
		if c.Client.Name != "me" {
			if c.Trace != "" || c.Args != nil || c.Narrow != nil {
				t.Errorf("call %+v", c)
			}
			continue
		}
		if c.Trace != trace || string(c.Narrow) != `{"filesystem":[]}` || string(c.Args) != `{"message":"\u0041"}` || !c.Client.URL || c.Client.Form {
			t.Errorf("call %+v", c)
		}
	}
}

func TestLongLines(t *testing.T) {
	huge := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"+`{"jsonrpc":"2.0","id":2,"x":"`),
		io.LimitReader(filler{}, 100<<20), strings.NewReader(`"}`+"\n"+`{"jsonrpc":"2.0","id":3,"method":"ping"}`+"\n"+`{"cut":"`), io.LimitReader(filler{}, 70<<20))
	var out bytes.Buffer
	if err := Serve(context.Background(), newHouse(), huge, &out, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":1,"result"`, `"id":3,"result"`, `"code":-32600`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("missing %s in %s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "line too long"); n != 2 {
		t.Errorf("%d complaints", n)
	}
}

type filler struct{}

func (filler) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestLargeArgumentsPass(t *testing.T) {
	message := strings.Repeat("é", 1<<20)
	got := piped(t, newHouse(), Options{}, callLine(`1`, "echo", `{"message":"`+message+`"}`))
	if len(got) != 1 || !strings.Contains(got[0], message) {
		t.Fatal("the message was mangled")
	}
}

func TestHostileLines(t *testing.T) {
	bomb := strings.Repeat("[", 1<<20)
	for name, line := range map[string]string{
		"not UTF-8":        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"\xff\"}",
		"NUL":              "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\x00ng\"}",
		"only NUL":         "\x00\x00\x00",
		"bomb":             bomb,
		"closed bomb":      bomb + strings.Repeat("]", 1<<20),
		"bomb in params":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":` + strings.Repeat(`{"a":`, 2000) + `1` + strings.Repeat(`}`, 2000) + `}}`,
		"UTF-16":           "\xff\xfe{\x00}\x00",
		"lone brace":       "{",
		"control":          "{\"jsonrpc\":\"2.0\",\"id\":\"\t\",\"method\":\"ping\"}",
		"bad escape":       `{"jsonrpc":"2.0","id":"\x","method":"ping"}`,
		"short escape":     `{"jsonrpc":"2.0","id":"\u12`,
		"leading zero":     `{"jsonrpc":"2.0","id":01,"method":"ping"}`,
		"trailing comma":   `{"jsonrpc":"2.0","id":1,"method":"ping",}`,
		"two on one line":  `{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`,
		"single quotes":    `{'jsonrpc':'2.0'}`,
		"HTTP":             "GET / HTTP/1.1",
		"Content-Length":   "Content-Length: 40",
		"not a number":     `{"jsonrpc":"2.0","id":NaN,"method":"ping"}`,
		"deep id":          `{"jsonrpc":"2.0","id":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `,"method":"ping"}`,
		"unfinished batch": `[{"jsonrpc":"2.0","id":1,"method":"ping"},`,
	} {
		got := piped(t, newHouse(), Options{}, line+"\n"+`{"jsonrpc":"2.0","id":99,"method":"ping"}`)
		if len(got) != 2 || !matches(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,...}}`, got[0]) && !matches(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,...}}`, got[1]) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestErrorsDoNotEchoWithoutBound(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":["` + long + `"]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"9` + long + `","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		callLine(`1`, long, `{}`),
	} {
		if got := piped(t, newHouse(), Options{}, line); len(got) != 1 || len(got[0]) > 4*2048 {
			t.Errorf("%d bytes for %s…", len(got[0]), line[:60])
		}
	}
}

// The reader runs a lone call itself; however long that takes, reading goes on
// and every answer comes once. The relay runs 16 calls elsewhere after a slow one.
func TestReaderIsReplacedWhileItRunsACall(t *testing.T) {
	h := newHouse()
	s := serve(t, h, Options{})
	for i := range 48 {
		gate := fmt.Sprint("g", i)
		s.send(callLine(`"slow"`, "wait", `{"gate":"`+gate+`"}`))
		for j := range 3 {
			id := fmt.Sprint(100*i + j)
			expect(t, s.ask(callLine(id, "echo", `{"message":"`+id+`"}`)), `{"jsonrpc":"2.0","id":`+id+`,"result":{...`+id+`...}}`)
		}
		close(h.gate(gate))
		expect(t, s.recv(), `{"jsonrpc":"2.0","id":"slow","result":{...opened...}}`)
	}
}
