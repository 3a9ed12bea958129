package streamable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/mcp/conversation"
)

// named tells callers apart by what they say that they are.
func named(r *http.Request) (string, string, error) {
	who := r.Header.Get("Authorization")
	if who == "" {
		return "", "", &Refusal{Status: http.StatusUnauthorized, Challenge: "Bearer", Err: errors.New("a token is needed")}
	}
	return "token:" + who, "", nil
}

const ada, bob = "Authorization: ada", "Authorization: bob"

// block makes n calls that wait for a gate, and returns where their answers
// come.
func (s *site) block(n int, gate string, head ...string) chan reply {
	s.t.Helper()
	out := make(chan reply, n)
	for i := range n {
		r := s.request(s.t.Context(), "POST", "/mcp", call(fmt.Sprint(i+1), "wait", `{"gate":"`+gate+`"}`), head...)
		go func() {
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				out <- reply{body: err.Error()}
				return
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				text = []byte(err.Error())
			}
			out <- reply{res.StatusCode, res.Header, string(text)}
		}()
	}
	return out
}

// slots_held: the calls of one caller that do not end keep no other caller from
// its own.
func TestShareOfSlots(t *testing.T) {
	s := serveRoom(t, Options{Authenticate: named}, conversation.Options{Concurrency: 8, Queue: 12})
	ways := map[string][]string{"alone": {ada}, "session": s.open("2025-06-18", `{}`, ada)}
	before := 0
	for name, head := range ways {
		t.Run(name, func(t *testing.T) {
			// Two run and three wait: a quarter of both. Three are refused.
			answers := s.block(8, name, head...)
			for range 3 {
				r := <-answers
				if r.status != 200 || !strings.Contains(r.body, "limit: server busy") || !strings.Contains(r.body, "share") {
					t.Errorf("%+v", r)
				}
			}
			s.called(t, before+2)
			for i := range 4 { // more than there would be slots if those that wait had some
				if r := s.post(call("9", "echo", `{"message":"hello"}`), bob); r.status != 200 || !strings.Contains(r.body, `"text":"hello"`) {
					t.Errorf("another caller's call %d: %+v", i, r)
				}
				if r := s.modern("9", "tools/call", "echo", `"name":"echo","arguments":{"message":"hello"}`, bob); r.status != 200 || !strings.Contains(r.body, `"text":"hello"`) {
					t.Errorf("another caller's modern call %d: %+v", i, r)
				}
			}
			if n := len(s.seen()) - before; n != 2+8 {
				t.Errorf("%d calls run or ran", n)
			}
			close(s.gate(name))
			for range 5 {
				if r := <-answers; r.status != 200 || !strings.Contains(r.body, "opened") {
					t.Errorf("%+v", r)
				}
			}
			before = len(s.seen())
		})
	}
}

// Callers who are not told apart have all there is.
func TestNoShareOfSlots(t *testing.T) {
	s := serveRoom(t, Options{}, conversation.Options{Concurrency: 8, Queue: 8})
	answers := s.block(8, "g")
	s.called(t, 8)
	close(s.gate("g"))
	for range 8 {
		if r := <-answers; r.status != 200 || !strings.Contains(r.body, "opened") {
			t.Errorf("%+v", r)
		}
	}
}

// Who waits for its user has no slot of its share meanwhile.
func TestShareOfWhoAsks(t *testing.T) {
	s := serveRoom(t, Options{Authenticate: named}, conversation.Options{Concurrency: 4, Queue: 4})
	head := s.open("2025-06-18", `{"elicitation":{}}`, ada)
	f := s.stream("POST", "/mcp", call("1", "ask", `{}`), head...)
	q := f.want("elicitation/create")
	if r := s.post(call("2", "echo", `{"message":"hello"}`), head...); r.status != 200 || !strings.Contains(r.body, "hello") {
		t.Fatalf("%+v", r)
	}
	answers := s.block(1, "g", ada) // has the only slot of the share now
	s.called(t, 3)
	_, rest, _ := strings.Cut(q.data, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if r := s.post(`{"jsonrpc":"2.0","id":"`+id+`","result":{"action":"accept","content":{"n":"Ada"}}}`, head...); r.status != 202 {
		t.Errorf("%+v", r)
	}
	close(s.gate("g"))
	if r := <-answers; r.status != 200 {
		t.Errorf("%+v", r)
	}
	f.want(`accept{\"n\":\"Ada\"}`)
	f.end()
}

// sessions_hoarded: one caller cannot open all the sessions that there may be.
func TestShareOfSessions(t *testing.T) {
	s := serve(t, Options{Authenticate: named, Limits: Limits{Sessions: 8}})
	first := s.open("2025-11-25", `{}`, ada)
	s.open("2025-11-25", `{}`, ada)
	isError(t, s.post(initializeBody("2025-11-25", `{}`), ada), 503, -32000, "share")
	refused := s.do("GET", "/sse", "", ada)
	isError(t, refused, 503, -32000, "share")
	for range 2 {
		s.open("2025-11-25", `{}`, bob)
	}
	if r := s.do("DELETE", "/mcp", "", first...); r.status != 204 {
		t.Fatalf("%+v", r)
	}
	s.open("2025-11-25", `{}`, ada)
}

// A session that its caller seems to have forgotten makes room within the share.
func TestShareOfSessionsMakesRoom(t *testing.T) {
	s := serve(t, Options{Authenticate: named, Limits: Limits{Sessions: 4}})
	head := s.open("2025-11-25", `{}`, ada)
	s.h.sessions.mu.Lock()
	for _, x := range s.h.sessions.byID {
		x.used.Store(1)
	}
	s.h.sessions.mu.Unlock()
	s.open("2025-11-25", `{}`, ada)
	isError(t, s.post(ping, head...), 404, -32000, "session")
}

// streams_hoarded: one caller cannot open all the streams that there may be.
func TestShareOfStreams(t *testing.T) {
	s := serve(t, Options{Authenticate: named, Limits: Limits{Streams: 8}})
	body, head := modernBody("5", listenMethod, `"notifications":{"toolsListChanged":true}`), modernHead(listenMethod, "")
	mine := append(head[:len(head):len(head)], ada)
	var feeds []*feed
	for range 2 {
		f := s.stream("POST", "/mcp", body, mine...)
		f.want("acknowledged")
		feeds = append(feeds, f)
	}
	isError(t, s.post(body, mine...), 503, -32000, "share")
	session := s.open("2025-11-25", `{}`, ada)
	isError(t, s.do("GET", "/mcp", "", session...), 503, -32000, "share")
	isError(t, s.post(call("1", "echo", `{}`), session...), 503, -32000, "share")
	isError(t, s.do("GET", "/sse", "", ada), 503, -32000, "share")
	f := s.stream("POST", "/mcp", body, append(head[:len(head):len(head)], bob)...)
	f.want("acknowledged")
	feeds[0].stop()
	within(t, func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		res, err := http.DefaultClient.Do(s.request(ctx, "POST", "/mcp", body, mine...))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode == 200
	})
}
