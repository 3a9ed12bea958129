package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

// beside is a room of questions as the house hands it to a conversation.
type beside struct{ *ask.Room }

func newBeside(o ask.Options) beside {
	o.Local = func(caller string) bool { return strings.HasPrefix(caller, "local:") }
	b := beside{ask.New(o)}
	b.Offer(func() (string, error) { return "http://127.0.0.1:1/answer/", nil })
	return b
}

func (b beside) Attached(s sdk.Scope, address bool) bool {
	return b.Room.Attached(s) || address && b.Shows(s)
}

func (b beside) Put(ctx context.Context, c *sdk.Call, round int, q map[string]sdk.Question) conversation.Asked {
	if a := b.Room.Put(ctx, c, round, q); a != nil {
		return a
	}
	return nil
}

func (b beside) Find(ctx context.Context, s sdk.Scope, state string) conversation.Asked {
	if a := b.Room.Find(ctx, s, state); a != nil {
		return a
	}
	return nil
}

// give answers the next question that is open, by a way beside the client.
func (b beside) give(t *testing.T, channel, name string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		open, changed := b.Open()
		if len(open) > 0 {
			r := ask.Reply{Action: "accept", Filled: map[string]map[string][]string{"name": {"n": {name}}}}
			if err := b.Answer(open[0].ID, channel, r); err != nil {
				t.Fatal(err)
			}
			return
		}
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
		}
	}
	t.Fatal("nothing is asked")
}

func asking(b beside) Options {
	return Options{Scope: sdk.Scope{Caller: "local:me", Session: "s"}, Options: conversation.Options{Asker: b, Poll: 30 * time.Second}}
}

func modernCall(id int, abilities, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask","arguments":{}%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, id, more, abilities)
}

func said(id int, what string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{...%s...}}`, id, what)
}

// last is the last call that the house has seen, and the channel of its answer.
func (h *house) channel() string {
	all := h.seen()
	return all[len(all)-1].Answers["name"].Channel
}

// A client that shows a form itself is not the only one that can answer.
func TestBesideLegacyClient(t *testing.T) {
	h, b := newHouse(), newBeside(ask.Options{})
	s := serve(t, h, asking(b))
	s.ask(initialize(`{"elicitation":{}}`))
	s.send(callLine(`1`, "ask", `{}`))
	question := s.recv()
	expect(t, question, `{"jsonrpc":"2.0","id":"skill-ask:...","method":"elicitation/create",...}`)
	b.give(t, ask.Terminal, "Eve")
	expect(t, s.recv(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"skill-ask:..."}}`)
	expect(t, s.recv(), said(1, `accept {\"n\":\"Eve\"} after 1`))
	if got := h.channel(); got != "terminal" {
		t.Errorf("channel %q", got)
	}
	// It is the client's turn to be faster. Its word for the channel is not read.
	s.send(callLine(`2`, "ask", `{}`))
	var q struct{ ID string }
	if err := json.Unmarshal([]byte(s.recv()), &q); err != nil {
		t.Fatal(err)
	}
	open, _ := b.Open()
	if len(open) != 1 || open[0].Tool != "ask" || open[0].Client != "tester" {
		t.Fatalf("%+v", open)
	}
	expect(t, s.ask(`{"jsonrpc":"2.0","id":"`+q.ID+`","result":{"action":"accept","channel":"tty","content":{"n":"Ada"}}}`), said(2, `accept {\"n\":\"Ada\"} after 1`))
	if got := h.channel(); got != "elicitation" {
		t.Errorf("channel %q", got)
	}
	if err := b.Answer(open[0].ID, ask.Page, ask.Reply{Action: "decline"}); err != ask.ErrOver {
		t.Errorf("%v", err)
	}
	// A call that its user has cancelled asks nobody any more.
	s.send(callLine(`3`, "ask", `{}`))
	s.recv()
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	expect(t, s.recv(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"skill-ask:..."}}`)
	gone(t, b)
}

// gone waits until nothing is open.
func gone(t *testing.T, b beside) {
	t.Helper()
	for {
		open, changed := b.Open()
		if len(open) == 0 {
			return
		}
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			t.Fatalf("%d questions are still open", len(open))
		}
	}
}

func TestBesideModernClient(t *testing.T) {
	const form = `{"elicitation":{"form":{}}}`
	h, b := newHouse(), newBeside(ask.Options{})
	s := serve(t, h, asking(b))
	expect(t, s.ask(modernCall(1, form, "")), `{...,"inputRequests":{"name":{"method":"elicitation/create",...}},"requestState":"s"}}`)
	// The client is first.
	expect(t, s.ask(modernCall(2, form, `,"requestState":"s","inputResponses":{"name":{"action":"accept","channel":"tty","content":{"n":"Ada"}}}`)), said(2, `accept {\"n\":\"Ada\"} after 1`))
	if got := h.channel(); got != "mrtr" {
		t.Errorf("channel %q", got)
	}
	gone(t, b)
	// Somebody else is, and the client, which was left, brings a cancellation.
	s.ask(modernCall(3, form, ""))
	b.give(t, ask.Terminal, "Eve")
	expect(t, s.ask(modernCall(4, form, `,"requestState":"s","inputResponses":{"name":{"action":"cancel"}}`)), said(4, `accept {\"n\":\"Eve\"} after 1`))
	if got := h.channel(); got != "terminal" {
		t.Errorf("channel %q", got)
	}
	// The state is used up: what was answered to it is nobody's.
	expect(t, s.ask(modernCall(5, form, `,"requestState":"s","inputResponses":{"name":{"action":"decline"}}`)), said(5, `decline  after 1`))
	// A client that answers before it is asked.
	expect(t, s.ask(modernCall(6, form, `,"inputResponses":{"name":{"action":"accept","content":{"n":"early"}}}`)), said(6, `early`))
	if got := h.channel(); got != "call" {
		t.Errorf("channel %q", got)
	}
	gone(t, b)
}

// A client that can open addresses only is sent to the page.
func TestPageForModernClient(t *testing.T) {
	const url = `{"elicitation":{"url":{}}}`
	h, b := newHouse(), newBeside(ask.Options{})
	s := serve(t, h, asking(b))
	const asks = `{...,"inputRequests":{"page:[\"name\"]":{"method":"elicitation/create","params":{"mode":"url","message":"ask needs ...Your name?","url":"http://127.0.0.1:1/answer/...","elicitationId":"..."}}},"requestState":"s"}}`
	expect(t, s.ask(modernCall(1, url, "")), asks)
	if c := h.seen()[0]; !c.Client.Form {
		t.Error("the tool is told that nobody can be asked")
	}
	s.send(modernCall(2, url, `,"requestState":"s","inputResponses":{"page:[\"name\"]":{"action":"accept"}}`))
	expect(t, s.ask(callLine(`3`, "echo", `{"message":"meanwhile"}`)), said(3, "meanwhile"))
	b.give(t, ask.Page, "Pat")
	expect(t, s.recv(), said(2, `accept {\"n\":\"Pat\"} after 1`))
	if got := h.channel(); got != "page" {
		t.Errorf("channel %q", got)
	}
	// Who does not want to open it has declined.
	s.ask(modernCall(4, url, ""))
	expect(t, s.ask(modernCall(5, url, `,"requestState":"s","inputResponses":{"page:[\"name\"]":{"action":"decline"}}`)), said(5, `decline  after 1`))
	if got := h.channel(); got != "url" {
		t.Errorf("channel %q", got)
	}
	gone(t, b)
	// page_opened_is_no_answer: of a page that is not known any more, to have
	// opened it says nothing. The user is asked again.
	before := len(h.seen())
	expect(t, s.ask(modernCall(6, url, `,"requestState":"","inputResponses":{"page:[\"name\"]":{"action":"accept"}}`)), asks)
	for _, c := range h.seen()[before:] {
		if len(c.Answers) != 0 {
			t.Errorf("an answer came of it: %+v", c.Answers)
		}
	}
}

// A page that is not answered soon is waited for in several rounds.
func TestPagePolls(t *testing.T) {
	const url = `{"elicitation":{"url":{}}}`
	h, b := newHouse(), newBeside(ask.Options{})
	o := asking(b)
	o.Poll = time.Millisecond
	s := serve(t, h, o)
	s.ask(modernCall(1, url, ""))
	expect(t, s.ask(modernCall(2, url, `,"requestState":"s","inputResponses":{"page:[\"name\"]":{"action":"accept"}}`)),
		`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required",...,"inputRequests":{},"requestState":"s"}}`)
	expect(t, s.ask(modernCall(3, url, `,"requestState":"s"`)), `{..."inputRequests":{},"requestState":"s"}}`)
	if n := len(h.seen()); n != 1 {
		t.Errorf("the tool ran %d times while the user was thinking", n)
	}
	b.give(t, ask.Page, "Pat")
	expect(t, s.ask(modernCall(4, url, `,"requestState":"s"`)), said(4, `accept {\"n\":\"Pat\"} after 1`))
}

func TestPageForLegacyClient(t *testing.T) {
	h, b := newHouse(), newBeside(ask.Options{})
	s := serve(t, h, asking(b))
	s.ask(initialize(`{"elicitation":{"url":{}}}`))
	var q struct {
		ID     string
		Params struct{ Mode, URL, Message string }
	}
	recv := func() {
		t.Helper()
		if line := s.recv(); json.Unmarshal([]byte(line), &q) != nil || q.Params.Mode != "url" || !strings.HasPrefix(q.Params.URL, "http://127.0.0.1:1/answer/") {
			t.Fatalf("%s", line)
		}
	}
	s.send(callLine(`1`, "ask", `{}`))
	recv()
	s.send(`{"jsonrpc":"2.0","id":"` + q.ID + `","result":{"action":"accept"}}`)
	s.ask(`{"jsonrpc":"2.0","id":"p","method":"ping"}`) // it was heard
	b.give(t, ask.Page, "Pat")
	expect(t, s.recv(), said(1, `accept {\"n\":\"Pat\"} after 1`))
	s.send(callLine(`2`, "ask", `{}`))
	recv()
	expect(t, s.ask(`{"jsonrpc":"2.0","id":"`+q.ID+`","result":{"action":"cancel"}}`), said(2, `cancel  after 1`))
	if got := h.channel(); got != "url" {
		t.Errorf("channel %q", got)
	}
	s.send(callLine(`3`, "ask", `{}`)) // he has not opened it, and answers elsewhere
	recv()
	b.give(t, ask.Terminal, "Tom")
	expect(t, s.recv(), `{...notifications/cancelled...}`)
	expect(t, s.recv(), said(3, `accept {\"n\":\"Tom\"} after 1`))
}

// nobody_there: a client that cannot ask gets its answer at once, and the
// question stays open for a later call.
func TestNobodyThere(t *testing.T) {
	for era, call := range map[string]func(id int) string{
		"legacy": func(id int) string { return callLine(fmt.Sprint(id), "ask", `{"rounds":2}`) },
		"modern": func(id int) string {
			return strings.Replace(modernCall(id, `{}`, ""), `"arguments":{}`, `"arguments":{"rounds":2}`, 1)
		},
	} {
		h, b := newHouse(), newBeside(ask.Options{})
		s := serve(t, h, asking(b))
		if era == "legacy" {
			s.ask(initialize(`{}`))
		}
		needs := func(id int) {
			t.Helper()
			expect(t, s.ask(call(id)), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{..."text":"needs_user: ...Your name?...http://127.0.0.1:1/answer/...skill answer...elicitation"...,"isError":true}}`, id))
		}
		needs(1)
		if h.seen()[0].Client.Form {
			t.Error("the tool is told that somebody can be asked")
		}
		needs(2)
		if open, _ := b.Open(); len(open) != 1 {
			t.Fatalf("%s: %d questions are open", era, len(open))
		}
		b.give(t, ask.Page, "one")
		needs(3) // the second round, which asks the same
		b.give(t, ask.Page, "two")
		expect(t, s.ask(call(4)), said(4, `accept {\"n\":\"two\"} after 2`))
		if got := h.channel(); got != "page" {
			t.Errorf("%s: channel %q", era, got)
		}
		gone(t, b)
	}
}

// Somebody who watches is waited for, and the tool knows that it can ask.
func TestSomebodyWatches(t *testing.T) {
	h, b := newHouse(), newBeside(ask.Options{})
	detach := b.Attach()
	defer detach()
	o := asking(b)
	o.Concurrency = 1
	s := serve(t, h, o)
	s.ask(initialize(`{}`))
	s.send(callLine(`1`, "ask", `{}`))
	expect(t, s.ask(callLine(`2`, "echo", `{"message":"the slot is free"}`)), said(2, "the slot is free"))
	b.give(t, ask.Terminal, "Eve")
	expect(t, s.recv(), said(1, `accept {\"n\":\"Eve\"} after 1`))
	if !h.seen()[0].Client.Form {
		t.Error("the tool is told that nobody can be asked")
	}
	// A client that loses its patience makes the call again.
	s.send(callLine(`3`, "ask", `{}`))
	for open := 0; open == 0; {
		views, changed := b.Open()
		if open = len(views); open == 0 {
			<-changed
		}
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	s.ask(`{"jsonrpc":"2.0","id":"p","method":"ping"}`) // it was heard
	b.give(t, ask.Terminal, "late")
	expect(t, s.ask(callLine(`4`, "ask", `{}`)), said(4, `accept {\"n\":\"late\"} after 1`))
}

// nobody_in_time: what nobody answers ends, whoever watches.
func TestNobodyInTime(t *testing.T) {
	h, b := newHouse(), newBeside(ask.Options{Keep: 20 * time.Millisecond})
	detach := b.Attach()
	defer detach()
	s := serve(t, h, asking(b))
	s.ask(initialize(`{}`))
	expect(t, s.ask(callLine(`1`, "ask", `{}`)), said(1, "needs_user: "))
	gone(t, b)
}

// remote_caller: its questions are for its own client only.
func TestBesideRemoteCaller(t *testing.T) {
	h, b := newHouse(), newBeside(ask.Options{})
	detach := b.Attach()
	defer detach()
	o := asking(b)
	o.Scope.Caller = "https://issuer/sub"
	s := serve(t, h, o)
	got := s.ask(modernCall(1, `{"elicitation":{"url":{}}}`, ""))
	expect(t, got, said(1, "needs_user: "))
	if strings.Contains(got, "127.0.0.1") || h.seen()[0].Client.Form {
		t.Errorf("%s", got)
	}
	gone(t, b)
}

// Older clients know neither lists nor oneOf.
func TestOldForms(t *testing.T) {
	h := &oldHouse{newHouse()}
	for version, old := range map[string]bool{"2025-06-18": true, "2025-11-25": false} {
		s := serve(t, h, Options{})
		s.ask(strings.Replace(initialize(`{"elicitation":{}}`), "2025-11-25", version, 1))
		s.send(callLine(`1`, "pick", `{}`))
		line := s.recv()
		var q struct{ ID string }
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		if old != strings.Contains(line, `"m_1":{"title":"m: One","type":"boolean"}`) || old != strings.Contains(line, `"enumNames":["X"]`) || old == strings.Contains(line, "anyOf") {
			t.Errorf("%s: %s", version, line)
		}
		content := map[bool]string{true: `{"m_2":true,"m_1":false,"c":"x"}`, false: `{"m":["2"],"c":"x"}`}[old]
		got := s.ask(`{"jsonrpc":"2.0","id":"` + q.ID + `","result":{"action":"accept","content":` + content + `}}`)
		var r struct {
			Result struct{ Content []struct{ Text string } }
		}
		var picked struct {
			M []string
			C string
		}
		if json.Unmarshal([]byte(got), &r) != nil || json.Unmarshal([]byte(r.Result.Content[0].Text), &picked) != nil || len(picked.M) != 1 || picked.M[0] != "2" || picked.C != "x" {
			t.Errorf("%s: %s", version, got)
		}
	}
}

// oldHouse has a tool that asks with lists.
type oldHouse struct{ *house }

func (h *oldHouse) Call(_ context.Context, c sdk.Call, _ func(sdk.Event)) (sdk.Result, error) {
	if a, ok := c.Answers["q"]; ok {
		return sdk.Text(string(a.Content)), nil
	}
	return sdk.Result{State: "s", Questions: map[string]sdk.Question{"q": {Kind: sdk.QuestionForm, Schema: json.RawMessage(
		`{"type":"object","properties":{"m":{"type":"array","items":{"anyOf":[{"const":"1","title":"One"},{"const":"2","title":"Two"}]}},"c":{"type":"string","oneOf":[{"const":"x","title":"X"}]}}}`)}}}, nil
}
