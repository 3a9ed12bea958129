package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/mcp/conversation"
)

// What a client makes the host remember or repeat is bounded, whatever the size
// of a request may be.
func TestMemoryOfAClient(t *testing.T) {
	long := strings.Repeat("x", 10000)
	for name, v := range map[string]struct{ ask, want string }{
		"huge_id":              {`{"jsonrpc":"2.0","id":"` + long + `","method":"ping"}`, `{"jsonrpc":"2.0","id":"` + long + `","error":{"code":-32600,...}}`},
		"huge_progress_token":  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"events","_meta":{"progressToken":"` + long + `"}}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,...}}`},
		"huge_subscription":    {`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x://` + long + `"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,...}}`},
		"huge_listen":          {`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x://` + long + `"]},` + modernMeta + `}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,...}}`},
		"many_listened_to":     {`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":[` + strings.Repeat(`"x://`+long[:5000]+`",`, 60) + `"x:y"]},` + modernMeta + `}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,...}}`},
		"unsubscribes_nothing": {`{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"x://y"}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newHouse(), Options{})
			expect(t, s.ask(v.ask), v.want)
		})
	}
	t.Run("subscriptions_add_up", func(t *testing.T) {
		s := serve(t, newHouse(), Options{})
		subscribe := func(verb string, i int) string {
			return s.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/%s","params":{"uri":"x://%d/%s"}}`, verb, i, long[:5000]))
		}
		i := 0
		for ; i < 100 && matches(`{"jsonrpc":"2.0","id":1,"result":{}}`, subscribe("subscribe", i)); i++ {
		}
		if i < 40 || i == 100 {
			t.Fatalf("%d subscriptions of 5 kB", i)
		}
		expect(t, subscribe("subscribe", 0), `{"jsonrpc":"2.0","id":1,"result":{}}`) // it is there
		expect(t, subscribe("unsubscribe", 0), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		expect(t, subscribe("subscribe", i), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
	t.Run("huge_name", func(t *testing.T) {
		h := newHouse()
		s := serve(t, h, Options{})
		s.ask(strings.Replace(initialize(`{}`), "tester", strings.Repeat("ä", 5000), 1))
		s.ask(callLine(`1`, "echo", `{}`))
		if n := len(h.seen()[0].Client.Name); n > 256 || n < 250 {
			t.Errorf("%d bytes", n)
		}
	})
}

// batch_amplification: a small batch does not make the host gather a huge answer.
func TestBatchOfLargeAnswers(t *testing.T) {
	s := serve(t, newHouse(), Options{})
	big := `{"message":"` + strings.Repeat("x", 2<<20) + `"}`
	var all []string
	for i := range 12 {
		all = append(all, callLine(fmt.Sprint(i), "echo", big))
	}
	all = append(all, callLine(`99`, "echo", `{"message":"small"}`))
	answer := s.ask("[" + strings.Join(all, ",") + "]")
	var got []struct {
		ID     int
		Result *struct{}
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || len(got) != 13 {
		t.Fatalf("%d answers: %v", len(got), err)
	}
	whole := 0
	for _, a := range got {
		if a.Result != nil {
			whole++
		} else if a.ID == 99 || !strings.HasPrefix(a.Error.Message, "limit:") {
			t.Errorf("%+v", a)
		}
	}
	if len(answer) > 17<<20 || whole < 7 || whole > 8 {
		t.Errorf("%d bytes, %d answers of 13", len(answer), whole)
	}
}

// rootsClient is a client that confines its server, and has been asked where to.
func rootsClient(t *testing.T, h *house) (s *session, question func() string) {
	s = serve(t, h, Options{Options: conversation.Options{Concurrency: 1}})
	s.ask(initialize(`{"roots":{"listChanged":true}}`))
	s.send(initialized)
	return s, func() string {
		t.Helper()
		var q struct{ ID, Method string }
		line := s.recv()
		if json.Unmarshal([]byte(line), &q) != nil || q.Method != "roots/list" {
			t.Fatalf("asked %s", line)
		}
		return q.ID
	}
}

func rootsAnswer(id string, uris ...string) string {
	var list []map[string]string
	for _, u := range uris {
		list = append(list, map[string]string{"uri": u})
	}
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": map[string]any{"roots": list}})
	return string(b)
}

func wantRoots(t *testing.T, h *house, want ...string) {
	t.Helper()
	calls := h.seen()
	if got := calls[len(calls)-1].Roots; !reflect.DeepEqual(got, want) {
		t.Errorf("a call had the roots %q, want %q", got, want)
	}
}

// cancel_race: a call that is cancelled while the client is asked for its roots
// does not make it one that has none: the next call asks again.
func TestCancelledQuestionForRoots(t *testing.T) {
	h := newHouse()
	s, question := rootsClient(t, h)
	s.send(callLine(`1`, "echo", `{}`))
	question()
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	s.recv() // the question is withdrawn
	s.send(callLine(`2`, "echo", `{}`))
	s.send(rootsAnswer(question(), "file:///a"))
	s.recv()
	wantRoots(t, h, "file:///a")
	if n := len(h.seen()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// Who waits for the roots while they change waits for the new ones. Nobody has a
// slot meanwhile: there is one only.
func TestRootsChangeWhileAsked(t *testing.T) {
	h := newHouse()
	s, question := rootsClient(t, h)
	s.send(callLine(`1`, "echo", `{}`))
	first := question()
	s.send(callLine(`2`, "echo", `{"message":"second"}`))
	s.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	s.send(rootsAnswer(first, "file:///a"))
	for range 2 { // the answer to 1, and another question, in any order
		line := s.recv()
		if strings.Contains(line, "roots/list") {
			var q struct{ ID string }
			_ = json.Unmarshal([]byte(line), &q)
			s.send(rootsAnswer(q.ID, "file:///b"))
		}
	}
	s.recv()
	for _, c := range h.seen() { // the calls may run in any order
		if strings.Contains(string(c.Args), "second") && !reflect.DeepEqual(c.Roots, []string{"file:///b"}) {
			t.Errorf("the second call had the roots %q", c.Roots)
		}
	}
}

func TestTooManyRoots(t *testing.T) {
	h := newHouse()
	s, question := rootsClient(t, h)
	s.send(callLine(`1`, "echo", `{}`))
	many := []string{"file:///" + strings.Repeat("x", 10000)}
	for i := range 300 {
		many = append(many, fmt.Sprintf("file:///%d", i))
	}
	s.send(rootsAnswer(question(), many...))
	s.recv()
	wantRoots(t, h, many[1:257]...)
}
