package streamable

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

// tray is an Inbox with something for one session.
type tray struct {
	mu      sync.Mutex
	whose   string // the session
	has     bool
	written []bool
	joined  map[*conversation.Listener]string
	over    []string
}

func (y *tray) put(session string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.whose, y.has = session, true
}

func (y *tray) Waiting(s sdk.Scope) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.has && y.whose == s.Session
}

func (y *tray) Begin(sdk.Scope) func() { return func() {} }

func (y *tray) Take(context.Context, sdk.Scope) ([]conversation.Arrival, int, func(bool)) {
	return []conversation.Arrival{{Skill: "set-callback", Message: "wake up", Fire: 1, Count: 1}}, 0, func(ok bool) {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.written = append(y.written, ok)
		y.has = y.has && !ok
	}
}

func (y *tray) Join(s sdk.Scope, l *conversation.Listener) func(bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.joined == nil {
		y.joined = map[*conversation.Listener]string{}
	}
	y.joined[l] = s.Session
	return func(over bool) {
		y.mu.Lock()
		defer y.mu.Unlock()
		delete(y.joined, l)
		if over {
			y.over = append(y.over, s.Session)
		}
	}
}

func (y *tray) is(cond func() bool) func() bool {
	return func() bool {
		y.mu.Lock()
		defer y.mu.Unlock()
		return cond()
	}
}

// one returns the only one who listens, and to which session.
func (y *tray) one(t *testing.T) (l *conversation.Listener, session string) {
	t.Helper()
	within(t, y.is(func() bool { return len(y.joined) == 1 }))
	y.mu.Lock()
	defer y.mu.Unlock()
	for l, session = range y.joined {
	}
	return l, session
}

// Each way of answering says what became of the answer.
func TestInboxOnEveryWay(t *testing.T) {
	y := &tray{}
	s := serveRoom(t, Options{Scope: sdk.Scope{Session: "mine"}}, conversation.Options{Inbox: y})
	events := "Accept: text/event-stream, application/json;q=0.1"
	for name, ask := range map[string]func(body string) string{
		"alone":         func(body string) string { return s.post(body).body },
		"alone, events": func(body string) string { return s.post(body, events).body },
		"batch":         func(body string) string { return s.post("["+body+"]", "Mcp-Protocol-Version: 2025-03-26").body },
		"modern":        func(string) string { return s.modern("1", "tools/call", "echo", `"name":"echo","arguments":{}`).body },
		"modern, events": func(string) string {
			return s.modern("1", "tools/call", "echo", `"name":"echo","arguments":{}`, events).body
		},
	} {
		y.put("mine")
		if got := ask(call("1", "echo", `{}`)); strings.Count(got, "wake up") != 1 {
			t.Errorf("%s: %s", name, got)
		}
		within(t, y.is(func() bool { return len(y.written) == 1 && y.written[0] && !y.has }))
		y.mu.Lock()
		y.written = nil
		y.mu.Unlock()
		if got := ask(call("1", "echo", `{}`)); strings.Contains(got, "wake up") {
			t.Errorf("%s, again: %s", name, got)
		}
	}
	y.put("task:t1")
	if r := s.do("POST", "/mcp?task_id=t2", call("1", "echo", `{}`)); strings.Contains(r.body, "wake up") {
		t.Errorf("another task's: %s", r.body)
	}
	if r := s.do("POST", "/mcp?task_id=t1", call("1", "echo", `{}`)); !strings.Contains(r.body, "wake up") {
		t.Errorf("the task's own: %s", r.body)
	}
}

// A client of a session is told on the stream that belongs to no request, and
// its answers carry what has come. The end of the session is said.
func TestInboxOfASession(t *testing.T) {
	y := &tray{}
	s := serveRoom(t, Options{}, conversation.Options{Inbox: y})
	head := s.open("2025-11-25", `{"experimental":{"claude/channel":{}}}`)
	l, session := y.one(t)
	if !l.Wakes || !strings.HasPrefix(session, "http:") {
		t.Errorf("%+v %s", l, session)
	}
	apart := s.stream("GET", "/mcp", "", append(head, "Accept: text/event-stream")...)
	l.Tell([]conversation.Arrival{{Callback: 1, Skill: "set-callback", Message: "wake up", Fire: 2, Count: 1}})
	apart.want(`{"jsonrpc":"2.0","method":"notifications/claude/channel","params":{"content":"wake up","meta":{"callback_id":"1","fire":"2"}}}`)
	y.put(session)
	for _, more := range [][]string{nil, {"Accept: text/event-stream, application/json;q=0.1"}} {
		if r := s.post(call("7", "echo", `{}`), append(head, more...)...); !strings.Contains(r.body, "wake up") {
			t.Errorf("%+v", r)
		}
		within(t, y.is(func() bool { return !y.has && y.written[len(y.written)-1] }))
		y.put(session)
	}
	if r := s.post(call("8", "echo", `{}`)); strings.Contains(r.body, "wake up") {
		t.Errorf("who has no session got it: %+v", r)
	}
	if r := s.do("DELETE", "/mcp", "", head...); r.status != 204 {
		t.Errorf("%+v", r)
	}
	within(t, y.is(func() bool { return len(y.over) == 1 && y.over[0] == session && len(y.joined) == 0 }))
}

// A modern client listens by a request; the end of that is no end of a session.
func TestInboxListen(t *testing.T) {
	y := &tray{}
	s := serveRoom(t, Options{Scope: sdk.Scope{Session: "mine"}}, conversation.Options{Inbox: y})
	f := s.stream("POST", "/mcp", modernBody(`"sub"`, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["callback://inbox"]}`), modernHead("subscriptions/listen", "")[:2]...)
	f.want("notifications/subscriptions/acknowledged")
	l, session := y.one(t)
	if l.Wakes || !l.Hears() || session != "mine" {
		t.Errorf("%+v %s", l, session)
	}
	l.Tell([]conversation.Arrival{{}})
	f.want(`"method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"},"uri":"callback://inbox"}`)
	f.stop()
	within(t, y.is(func() bool { return len(y.joined) == 0 && len(y.over) == 0 }))
}

// An answer to a client that is gone has delivered nothing.
func TestInboxAfterFailedWrite(t *testing.T) {
	y := &tray{}
	s := serveRoom(t, Options{Scope: sdk.Scope{Session: "mine"}}, conversation.Options{Inbox: y})
	y.put("")
	v := s.deadVisit(call("1", "echo", `{}`))
	if no := s.h.post(v); no != nil {
		t.Fatalf("%+v", no)
	}
	within(t, y.is(func() bool { return len(y.written) == 1 }))
	if y.written[0] || !y.has {
		t.Errorf("%+v", y)
	}
}
