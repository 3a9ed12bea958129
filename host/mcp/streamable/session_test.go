package streamable

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
)

func TestAlone(t *testing.T) {
	s := serve(t, Options{})
	if r := s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`); r.status != 200 || !strings.HasPrefix(r.body, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"`) {
		t.Errorf("tools/list: %+v", r)
	}
	if r := s.do("POST", "/mcp?task_id=job-1", call("1", "echo", `{"message":"a"}`)); r.status != 200 || r.head.Get("Content-Length") == "" || r.head.Get(sessionHeader) != "" {
		t.Errorf("tools/call: %+v", r)
	}
	if got := s.seen()[0].Scope; got.Session != "task:job-1" || got.Caller != "local:tester" {
		t.Errorf("scope %+v", got)
	}
	// A batch of 2025-03-26, with everything that may be in one.
	r := s.post(`[`+call("1", "echo", `{"message":"one"}`)+`,{"jsonrpc":"2.0","method":"notifications/x"},5,`+call("2", "none", `{}`)+`]`, "Mcp-Protocol-Version: 2025-03-26")
	for _, part := range []string{`"id":1,"result"`, `"id":null,"error"`, `"id":2,"error"`} {
		if r.status != 200 || !strings.HasPrefix(r.body, "[") || !strings.Contains(r.body, part) {
			t.Errorf("batch: %s missing in %+v", part, r)
		}
	}
	for _, body := range []string{`{"jsonrpc":"2.0","method":"notifications/x"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `[{"jsonrpc":"2.0","method":"notifications/x"}]`} {
		if r := s.post(body); r.status != 202 || r.body != "" {
			t.Errorf("%s: %+v", body, r)
		}
	}
	// Who has no session cannot be asked.
	if r := s.post(call("1", "ask", `{}`)); r.status != 200 || !strings.Contains(r.body, "needs_user") && !strings.Contains(r.body, "Your name?") {
		t.Errorf("ask: %+v", r)
	}
	if r := s.post(call("1", "panic", `{}`)); r.status != 200 || !strings.Contains(r.body, "-32603") {
		t.Errorf("panic: %+v", r)
	}
}

// What is said before an answer makes it a stream.
func TestProgressWithoutSession(t *testing.T) {
	s := serve(t, Options{})
	events := `"name":"events","arguments":{"n":3},`
	for _, f := range []*feed{
		s.stream("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+events+`"_meta":{"progressToken":"p"}}}`),
		s.stream("POST", "/mcp", strings.Replace(modernBody("1", "tools/call", strings.TrimSuffix(events, ",")), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1), modernHead("tools/call", "events")...),
	} {
		for range 3 {
			if e := f.want("notifications/progress"); e.id != "" || e.name != "message" {
				t.Errorf("%+v", e)
			}
		}
		f.want(`"text":"done"`)
		f.end()
	}
}

func TestSessionLife(t *testing.T) {
	s := serve(t, Options{})
	head := s.open("2025-11-25", `{}`)
	if r := s.post(call("1", "echo", `{"message":"hello"}`), head...); r.status != 200 || r.head.Get("Content-Type") != "application/json" || !strings.Contains(r.body, "hello") {
		t.Errorf("echo: %+v", r)
	}
	if r := s.post(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, head...); r.status != 200 {
		t.Errorf("ping: %+v", r)
	}
	got := s.seen()[0].Scope
	if !strings.HasPrefix(got.Session, "http:") || strings.Contains(head[0], strings.TrimPrefix(got.Session, "http:")) {
		t.Errorf("the scope tells the id, or is none: %+v", got)
	}
	s.do("POST", "/mcp?task_id=x", call("1", "echo", `{}`), head...)
	if again := s.seen()[1].Scope; again != got {
		t.Errorf("a task_id changed the scope of a session: %+v", again)
	}
	isError(t, s.post(ping, head[0], "Mcp-Protocol-Version: 2025-06-18"), 400, -32600, "agreed")
	isError(t, s.post(`[`+ping+`]`, head[0]), 400, -32600, "batches")
	if r := s.post(ping, head[0]); r.status != 200 {
		t.Errorf("without the header: %+v", r)
	}
	if r := s.post(initializeBody("2025-11-25", `{}`), head...); !strings.Contains(r.body, "answered before") {
		t.Errorf("initialize again: %+v", r)
	}
	if r := s.do("DELETE", "/mcp", "", head...); r.status != 204 {
		t.Errorf("delete: %+v", r)
	}
	isError(t, s.post(ping, head...), 404, -32000, "session")
	isError(t, s.do("DELETE", "/mcp", "", head...), 404, -32000, "session")
	if r := s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":5}`); r.head.Get(sessionHeader) != "" || !strings.Contains(r.body, "-32602") {
		t.Errorf("bad initialize: %+v", r)
	}
	old := s.open("2025-03-26", `{}`)
	if r := s.post(`[`+ping+`,`+call("2", "echo", `{}`)+`]`, old...); r.status != 200 || !strings.HasPrefix(r.body, "[") {
		t.Errorf("batch: %+v", r)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := serve(t, Options{Limits: Limits{Sessions: 2}})
	head := s.open("2025-11-25", `{}`)
	s.open("2025-11-25", `{}`)
	r := s.post(initializeBody("2025-11-25", `{}`))
	isError(t, r, 503, -32000, "sessions")
	// One that seems forgotten makes room.
	s.h.sessions.mu.Lock()
	x := s.h.sessions.byID[strings.TrimPrefix(head[0], sessionHeader+": ")]
	s.h.sessions.mu.Unlock()
	x.used.Store(time.Now().Add(-2 * evictable).UnixNano())
	s.open("2025-11-25", `{}`)
	isError(t, s.post(ping, head...), 404, -32000, "session")
}

func TestIdleSessionsEnd(t *testing.T) {
	s := serve(t, Options{Limits: Limits{SessionIdle: 50 * time.Millisecond, sweepEvery: 5 * time.Millisecond}})
	idle, busy := s.open("2025-11-25", `{}`), s.open("2025-11-25", `{}`)
	f := s.stream("GET", "/mcp", "", busy...)
	within(t, func() bool { return s.post(ping, idle...).status == 404 || !sleep(60*time.Millisecond) })
	if r := s.post(ping, busy...); r.status != 200 {
		t.Errorf("in use: %+v", r)
	}
	f.stop()
	within(t, func() bool {
		s.h.sessions.mu.Lock()
		defer s.h.sessions.mu.Unlock()
		return len(s.h.sessions.byID) == 0
	})
	s.h.sessions.mu.Lock()
	defer s.h.sessions.mu.Unlock()
	if s.h.sessions.sweep != nil {
		t.Error("sweeps an empty room")
	}
}

func sleep(d time.Duration) bool { time.Sleep(d); return true }

func TestStandaloneStream(t *testing.T) {
	s := serve(t, Options{})
	head := s.open("2025-11-25", `{}`)
	s.changes <- conversation.Change{Kind: conversation.Tools} // before anybody hears it
	within(t, func() bool { return s.h.events.Kept() > 0 })
	f := s.stream("GET", "/mcp", "", head...)
	first := f.want("tools/list_changed")
	isError(t, s.do("GET", "/mcp", "", head...), 409, -32000, "already")
	s.changes <- conversation.Change{Kind: conversation.Prompts}
	f.want("prompts/list_changed")
	f.stop()
	within(t, func() bool { return s.h.streams.Len() == 0 })
	f = s.stream("GET", "/mcp", "", append(head, "Last-Event-ID: "+first.id)...)
	f.want("prompts/list_changed")
	// Who resumes takes over from a connection that may be dead.
	g := s.stream("GET", "/mcp", "", append(head, "Last-Event-ID: "+first.id)...)
	g.want("prompts/list_changed")
	f.end()
	if r := s.do("DELETE", "/mcp", "", head...); r.status != 204 {
		t.Errorf("delete: %+v", r)
	}
	g.end()
}

// An answer that takes its time becomes a stream, which survives its
// connection.
func TestResumption(t *testing.T) {
	s := serve(t, Options{Limits: Limits{primeAfter: time.Millisecond}})
	head := s.open("2025-11-25", `{}`)
	f := s.stream("POST", "/mcp", call("1", "wait", `{"gate":"g"}`), head...)
	prime, _ := f.next()
	if prime.id == "" || prime.data != "" || prime.retry == "" || prime.name != "prime" {
		t.Fatalf("prime %+v", prime)
	}
	f.stop()
	within(t, func() bool { return s.h.streams.Len() == 0 })
	close(s.gate("g"))
	if n := s.cancelled(); n > 0 {
		t.Error("cancelled with its connection")
	}
	f = s.stream("GET", "/mcp", "", append(head, "Last-Event-ID: "+prime.id)...)
	f.next() // how to come back again
	e := f.want(`"text":"opened"`)
	f.end()
	// Once more, as if that had been lost as well.
	f = s.stream("GET", "/mcp", "", append(head, "Last-Event-ID: "+prime.id)...)
	f.next()
	if again := f.want(`"text":"opened"`); again != e {
		t.Errorf("%+v, then %+v", e, again)
	}
	other := s.open("2025-11-25", `{}`)
	for _, id := range []string{e.id, prime.id, "x", "-0-0", strings.Replace(e.id, "-1-", "-99-", 1), e.id + "0", e.id[:8] + "-1--1", "99999999999999999999"} {
		h := head
		if id == e.id || id == prime.id {
			h = other // another session's
		}
		isError(t, s.do("GET", "/mcp", "", append(h, "Last-Event-ID: "+id)...), 400, -32600, "Last-Event-ID")
	}
}

func TestPollAfter(t *testing.T) {
	s := serve(t, Options{PollAfter: 20 * time.Millisecond})
	head := s.open("2025-11-25", `{}`)
	f := s.stream("POST", "/mcp", call("1", "wait", `{"gate":"g"}`), head...)
	prime, _ := f.next()
	f.end() // sent away
	close(s.gate("g"))
	f = s.stream("GET", "/mcp", "", append(head, "Last-Event-ID: "+prime.id)...)
	f.next()
	f.want("opened")
	// Older revisions know nothing of it.
	old := s.open("2025-06-18", `{}`)
	go func() { time.Sleep(60 * time.Millisecond); close(s.gate("h")) }()
	if r := s.post(call("1", "wait", `{"gate":"h"}`), old...); r.status != 200 || !strings.Contains(r.body, "opened") {
		t.Errorf("%+v", r)
	}
}

func TestEventsAreBounded(t *testing.T) {
	s := serve(t, Options{Limits: Limits{Events: 10_000, primeAfter: time.Millisecond}})
	head := s.open("2025-11-25", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	params := `{"name":"events","arguments":{"n":5000,"message":"` + strings.Repeat("m", 100) + `","gate":"g"},"_meta":{"progressToken":1}}`
	res, err := http.DefaultClient.Do(s.request(ctx, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`, head...))
	if err != nil {
		t.Fatal(err)
	}
	f := &feed{t, res, nil, cancel}
	f.stop() // gone while the tool talks
	within(t, func() bool { return s.h.streams.Len() == 0 })
	close(s.gate("g"))
	within(t, func() bool { n := s.h.events.Kept(); return n > 0 && n < 12_000 })
}

func TestCancelByNotification(t *testing.T) {
	s := serve(t, Options{})
	head := s.open("2025-11-25", `{}`)
	done := make(chan reply)
	go func() { done <- s.post(call(`"a"`, "wait", `{"gate":"never"}`), head...) }()
	s.called(t, 1)
	isDuplicate := s.post(call(`"a"`, "echo", `{}`), head...)
	if !strings.Contains(isDuplicate.body, "in use") {
		t.Errorf("duplicate: %+v", isDuplicate)
	}
	// Another session cannot cancel it, nor can nobody's.
	other := s.open("2025-11-25", `{}`)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`
	s.post(cancel, other...)
	s.post(cancel)
	if s.cancelled() > 0 {
		t.Fatal("cancelled by another session")
	}
	s.post(cancel, head...)
	if r := <-done; strings.Contains(r.body, `"result"`) || r.status != 200 {
		t.Errorf("answered: %+v", r)
	}
	within(t, func() bool { return s.cancelled() == 1 })
}

func TestCancelByDisconnect(t *testing.T) {
	s := serve(t, Options{})
	for i, head := range [][]string{modernHead("tools/call", "wait"), nil, s.open("2025-06-18", `{}`)} {
		ctx, cancel := context.WithCancel(t.Context())
		body := call("1", "wait", `{"gate":"g"}`)
		if i == 0 {
			body = modernBody("1", "tools/call", `"name":"wait","arguments":{"gate":"g"}`)
		}
		go http.DefaultClient.Do(s.request(ctx, "POST", "/mcp", body, head...))
		s.called(t, i+1)
		cancel()
	}
	within(t, func() bool { return s.cancelled() == 1 }) // the modern one
	time.Sleep(20 * time.Millisecond)
	if n := s.cancelled(); n != 1 {
		t.Errorf("%d cancelled", n)
	}
	close(s.gate("g"))
}

func TestElicitation(t *testing.T) {
	s := serve(t, Options{})
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		head := s.open(version, `{"elicitation":{}}`)
		f := s.stream("POST", "/mcp", call("1", "ask", `{}`), head...)
		if version >= primed {
			f.next()
		}
		q := f.want("elicitation/create")
		_, rest, _ := strings.Cut(q.data, `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		answer := `{"jsonrpc":"2.0","id":"` + id + `","result":{"action":"accept","content":{"n":"Ada"}}}`
		other := s.open(version, `{}`)
		if r := s.post(answer, other...); r.status != 202 { // another session's answer is nobody's
			t.Errorf("%+v", r)
		}
		if r := s.post(strings.Replace(answer, "Ada", "Eve", 1)); r.status != 202 {
			t.Errorf("%+v", r)
		}
		if r := s.post(answer, head...); r.status != 202 || r.body != "" {
			t.Errorf("%+v", r)
		}
		f.want(`accept{\"n\":\"Ada\"}`)
		f.end()
	}
}

func TestListen(t *testing.T) {
	s := serve(t, Options{Limits: Limits{Streams: 1, KeepAlive: 5 * time.Millisecond}})
	body, head := modernBody("5", listenMethod, `"notifications":{"toolsListChanged":true}`), modernHead(listenMethod, "")
	f := s.stream("POST", "/mcp", body, head...)
	f.want("acknowledged")
	isError(t, s.post(body, head...), 503, -32000, "streams")
	time.Sleep(20 * time.Millisecond)
	s.changes <- conversation.Change{Kind: conversation.Tools}
	if e := f.want("tools/list_changed"); e.id != "" {
		t.Errorf("%+v", e)
	}
	s.stop()
	f.want(`"id":5,"result"`)
	f.end()
	if err := s.wait(); err != nil {
		t.Error(err)
	}
}

func TestOldTransport(t *testing.T) {
	s := serve(t, Options{})
	f := s.stream("GET", "/sse", "")
	e, _ := f.next()
	if e.name != "endpoint" || !strings.HasPrefix(e.data, "/message?sessionId=") {
		t.Fatalf("%+v", e)
	}
	id := strings.TrimPrefix(e.data, "/message?sessionId=")
	say := func(body string) {
		t.Helper()
		if r := s.do("POST", e.data, body, "Accept:"); r.status != 202 {
			t.Fatalf("%+v", r)
		}
	}
	say(initializeBody("2024-11-05", `{}`))
	f.want(`"protocolVersion":"2024-11-05"`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(call("1", "echo", `{"message":"hello"}`))
	if e := f.want(`"text":"hello"`); e.id != "" || e.name != "message" {
		t.Errorf("%+v", e)
	}
	s.changes <- conversation.Change{Kind: conversation.Tools}
	f.want("list_changed")
	isError(t, s.do("POST", e.data, "{"), 400, -32700, "JSON")
	isError(t, s.post(ping, "Mcp-Session-Id: "+id), 404, -32000, "session") // not of this transport
	say(call("2", "wait", `{"gate":"never"}`))
	s.called(t, 2)
	f.stop()
	within(t, func() bool { return s.cancelled() == 1 })
	isError(t, s.do("POST", e.data, ping), 404, -32000, "session")
	s2 := s.open("2025-11-25", `{}`)
	isError(t, s.do("POST", "/message?sessionId="+strings.TrimPrefix(s2[0], sessionHeader+": "), ping), 404, -32000, "session")
}
