package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

const patience = 30 * time.Second

var ctx = context.Background()

var alice = sdk.Scope{Caller: "local:alice", Workspace: "/w", Session: "s"}

func call(tool string) *sdk.Call {
	return &sdk.Call{Tool: tool, Args: json.RawMessage(`{"file":"a"}`), Scope: alice, Client: sdk.Client{Name: "tester"}}
}

func asks(message string) map[string]sdk.Question {
	return map[string]sdk.Question{"user": {Kind: sdk.QuestionForm, Message: message,
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}},"required":["n"]}`)}}
}

func accept(option string) Reply {
	return Reply{Action: "accept", Filled: map[string]map[string][]string{"user": {"n": {option}}}}
}

func local(caller string) bool { return strings.HasPrefix(caller, "local:") }

func newRoom(o Options) *Room {
	if o.Local == nil {
		o.Local = local
	}
	return New(o)
}

func put(t *testing.T, r *Room, c *sdk.Call, message string) *Asked {
	t.Helper()
	a := r.Put(ctx, c, 1, asks(message))
	if a == nil {
		t.Fatal("the question was not put")
	}
	return a
}

// waits starts a Wait; the channel has what it returns.
func waits(a *Asked, alone bool) chan bool {
	ch := make(chan bool, 1)
	go func() {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		ch <- a.Wait(ctx, alone)
	}()
	return ch
}

func want(t *testing.T, ch chan bool, value bool) {
	t.Helper()
	select {
	case got := <-ch:
		if got != value {
			t.Fatalf("Wait returned %t", got)
		}
	case <-time.After(patience):
		t.Fatal("Wait does not return")
	}
}

func TestAnswer(t *testing.T) {
	var recorded []string
	r := newRoom(Options{Record: func(v View, channel string, reply Reply) error {
		recorded = append(recorded, v.Tool+" "+channel+" "+reply.Action)
		return nil
	}, Name: func(c *sdk.Call) (string, string) { return c.Tool, "skill\x1b" }})
	a := put(t, r, call("T"), "Which\x1b?")
	open, changed := r.Open()
	if len(open) != 1 || open[0].Tool != "T" || open[0].Skill != "skill\ufffd" || open[0].Parts[0].Message != "Which\ufffd?" || open[0].Client != "tester" {
		t.Fatalf("%+v", open)
	}
	ch := waits(a, false)
	if err := r.Answer(open[0].ID, Page, accept("1")); err != nil {
		t.Fatal(err)
	}
	want(t, ch, true)
	<-changed
	got := a.Take(map[string]sdk.Answer{"user": {Action: "decline"}})
	if x := got["user"]; x.Action != "accept" || x.Channel != "page" || string(x.Content) != `{"n":"b"}` {
		t.Errorf("%+v", got)
	}
	a.Leave(false, "")
	if open, _ := r.Open(); len(open) != 0 || len(r.asked) != 0 || len(r.same) != 0 || r.bytes != 0 {
		t.Errorf("left behind: %d, %d bytes", len(r.asked), r.bytes)
	}
	if len(recorded) != 1 || recorded[0] != "T page accept" {
		t.Errorf("recorded %v", recorded)
	}
}

// two_channels_at_once: exactly one answer counts, and who gave another one is
// told so.
func TestFirstAnswerWins(t *testing.T) {
	for round := range 200 {
		r := newRoom(Options{})
		a := put(t, r, call("T"), "?")
		id := a.view.ID
		var won atomic.Int32
		var wg sync.WaitGroup
		var client map[string]sdk.Answer
		for i, channel := range []string{Page, Terminal, TTY} {
			wg.Go(func() {
				switch err := r.Answer(id, channel, accept(fmt.Sprint(i%2))); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ErrOver):
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			client = a.Take(map[string]sdk.Answer{"user": {Action: "accept", Channel: "mrtr"}})
		})
		wg.Wait()
		if client["user"].Channel == "mrtr" {
			won.Add(1)
		}
		if won.Load() != 1 {
			t.Fatalf("round %d: %d answers counted", round, won.Load())
		}
		if again := a.Take(nil); client["user"].Channel != "mrtr" && again["user"].Channel != client["user"].Channel {
			t.Fatalf("the answer changed: %+v, %+v", client, again)
		}
	}
}

func TestFaults(t *testing.T) {
	r := newRoom(Options{})
	a := put(t, r, call("T"), "?")
	var faults Faults
	if err := r.Answer(a.view.ID, Page, accept("7")); !errors.As(err, &faults) || faults["user"][0].Field != "n" {
		t.Errorf("%v", err)
	}
	if err := r.Answer(a.view.ID, Page, Reply{Action: "accept"}); !errors.As(err, &faults) {
		t.Errorf("%v", err)
	}
	if err := r.Answer(a.view.ID, Page, Reply{Action: "explode"}); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("%v", err)
	}
	// huge_answer
	if err := r.Answer(a.view.ID, Page, accept(strings.Repeat("x", maxAnswer))); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("%v", err)
	}
	if err := r.Answer(a.view.ID, Page, Reply{Action: "decline"}); err != nil {
		t.Error(err)
	}
	if err := r.Answer(a.view.ID, Page, Reply{Action: "decline"}); !errors.Is(err, ErrOver) {
		t.Errorf("answered twice: %v", err)
	}
	if got := a.Take(nil)["user"]; got.Action != "decline" || got.Content != nil {
		t.Errorf("%+v", got)
	}
}

// An answer that cannot be recorded does not count.
func TestNotRecorded(t *testing.T) {
	broken := true
	r := newRoom(Options{Record: func(View, string, Reply) error {
		if broken {
			return errors.New("no space")
		}
		return nil
	}})
	a := put(t, r, call("T"), "?")
	if err := r.Answer(a.view.ID, Page, accept("0")); err == nil || a.Take(nil) != nil {
		t.Fatalf("%v", err)
	}
	broken = false
	if err := r.Answer(a.view.ID, Page, accept("0")); err != nil || a.Take(nil) == nil {
		t.Fatal(err)
	}
}

// A call that could not wait is made again, and gets what was answered since.
func TestCallAgain(t *testing.T) {
	r := newRoom(Options{})
	a := put(t, r, call("T"), "?")
	id := a.view.ID
	a.Leave(true, "")
	spaced := call("T")
	spaced.Args = json.RawMessage(" { \"file\" : \"a\" } ")
	b := put(t, r, spaced, "?")
	if b.view.ID != id {
		t.Fatalf("it was asked anew: %s, %s", id, b.view.ID)
	}
	b.Leave(true, "")
	if err := r.Answer(id, Page, accept("0")); err != nil {
		t.Fatal(err)
	}
	c := put(t, r, call("T"), "?")
	if c.Take(nil)["user"].Channel != "page" {
		t.Fatal("the answer did not wait")
	}
	c.Leave(true, "") // the call has come to no end: it asked something else
	d := put(t, r, call("T"), "?")
	if d.Take(nil) == nil {
		t.Fatal("the answer is gone before the call has come to an end")
	}
	d.Leave(false, "")
	// replayed_consent: the next time the user is asked again.
	e := put(t, r, call("T"), "?")
	if e.Take(nil) != nil || e.view.ID == id {
		t.Fatal("an answer was used twice")
	}
	// A call that was cancelled before it had an answer leaves it to the next one.
	cancelled, cancel := context.WithCancel(ctx)
	x := r.Put(cancelled, call("X"), 1, asks("?"))
	if y := put(t, r, call("X"), "?"); y.view.ID == x.view.ID {
		t.Fatal("two calls wait for one answer")
	}
	cancel()
	r.same[x.same] = x.entry
	y := put(t, r, call("X"), "?")
	if y.view.ID != x.view.ID {
		t.Fatal("the question of a cancelled call is asked again")
	}
	x.Leave(false, "")
	if err := r.Answer(y.view.ID, Page, accept("0")); err != nil || x.Take(nil) != nil || y.Take(nil) == nil {
		t.Fatal(err)
	}
	// While one call waits, another one with the same question gets its own.
	if f := put(t, r, call("T"), "?"); f.view.ID == e.view.ID {
		t.Fatal("two calls wait for one answer")
	}
}

// other_scope: what another caller, session or tool has answered is not theirs.
func TestOtherScope(t *testing.T) {
	r := newRoom(Options{})
	a := put(t, r, call("T"), "?")
	a.Leave(true, "state")
	if err := r.Answer(a.view.ID, Page, accept("0")); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*sdk.Call){
		"caller":    func(c *sdk.Call) { c.Scope.Caller = "local:bob" },
		"workspace": func(c *sdk.Call) { c.Scope.Workspace = "/x" },
		"session":   func(c *sdk.Call) { c.Scope.Session = "other" },
		"rights":    func(c *sdk.Call) { c.Scope.Rights = "all" },
		"tool":      func(c *sdk.Call) { c.Tool = "U" },
		"kind":      func(c *sdk.Call) { c.Kind = sdk.CallPrompt },
		"argument":  func(c *sdk.Call) { c.Args = json.RawMessage(`{"file":"b"}`) }, // answer_for_another_call
	} {
		c := call("T")
		change(c)
		if x := put(t, r, c, "?"); x.Take(nil) != nil {
			t.Errorf("another %s got the answer", name)
		}
		if c.Scope != alice && r.Find(ctx, c.Scope, "state") != nil {
			t.Errorf("another %s found it by its state", name)
		}
	}
	if x := r.Put(ctx, call("T"), 2, asks("?")); x.Take(nil) != nil {
		t.Error("another round got the answer")
	}
	if x := put(t, r, call("T"), "??"); x.Take(nil) != nil {
		t.Error("another question got the answer")
	}
	if r.Find(ctx, alice, "") != nil || r.Find(ctx, alice, "other") != nil {
		t.Error("found by a state that nobody has")
	}
	if x := r.Find(ctx, alice, "state"); x == nil || x.Take(nil) == nil {
		t.Error("not found by its own state")
	}
}

// remote_caller: who is not the user of this machine is not asked on it.
func TestRemoteCaller(t *testing.T) {
	r := newRoom(Options{Display: &display{}})
	r.Offer(func() (string, error) { return "http://127.0.0.1:1/answer/", nil })
	c := call("T")
	c.Scope.Caller = "https://issuer/sub"
	if r.Put(ctx, c, 1, asks("?")) != nil || r.Attached(c.Scope) || r.Shows(c.Scope) {
		t.Error("a remote caller's question is shown here")
	}
	if New(Options{}).Put(ctx, call("T"), 1, asks("?")) != nil {
		t.Error("without Options everybody is local")
	}
}

func TestNotForPeople(t *testing.T) {
	r := newRoom(Options{})
	for _, q := range []sdk.Question{
		{Kind: sdk.QuestionSampling}, {Kind: sdk.QuestionRoots},
		{Kind: sdk.QuestionForm, Schema: json.RawMessage(`{"properties":{"a":{"type":"object"}}}`)},
		{Kind: sdk.QuestionForm, Message: strings.Repeat("x", maxSize), Schema: json.RawMessage(`{}`)},
	} {
		if r.Put(ctx, call("T"), 1, map[string]sdk.Question{"a": q, "user": asks("?")["user"]}) != nil {
			t.Errorf("%.80v was put", q)
		}
	}
	a := r.Put(ctx, call("T"), 1, map[string]sdk.Question{"u": {Kind: sdk.QuestionURL, URL: "https://x/"}})
	if err := r.Answer(a.view.ID, TTY, Reply{Action: "accept"}); err != nil || a.Take(nil)["u"].Action != "accept" {
		t.Error(err)
	}
}

// too_many_questions: a tool cannot fill the room, nor the memory.
func TestBounds(t *testing.T) {
	var said []error
	r := newRoom(Options{Log: func(err error) { said = append(said, err) }})
	for i := range maxScope {
		put(t, r, call("T"), fmt.Sprint(i)).Leave(true, "")
	}
	if r.Put(ctx, call("T"), 1, asks("one more")) != nil || len(said) != 1 || sdk.KindOf(said[0]) != sdk.Limit {
		t.Fatalf("%v", said)
	}
	n := maxScope
	for i := 0; ; i++ {
		c := call("T")
		c.Scope.Session = fmt.Sprint(i / maxScope)
		a := r.Put(ctx, c, 1, asks(fmt.Sprint(i)))
		if a == nil {
			break
		}
		n++
	}
	if n != maxOpen {
		t.Errorf("%d questions are open", n)
	}
	r = newRoom(Options{})
	big := strings.Repeat("x", maxSize-1024)
	for n = 0; r.Put(ctx, call("T"), 1, asks(fmt.Sprint(n)+big)) != nil; n++ {
	}
	if n == 0 || n > maxBytes/(maxSize-2048) || r.bytes > maxBytes {
		t.Errorf("%d large ones, %d bytes", n, r.bytes)
	}
}

// answer_after_expiry: what nobody answered in time cannot be answered later.
func TestExpiry(t *testing.T) {
	r := newRoom(Options{Keep: 20 * time.Millisecond})
	r.Offer(func() (string, error) { return "http://x/", nil })
	a := put(t, r, call("T"), "?")
	token := strings.TrimPrefix(a.Address(), "http://x/")
	detach := r.Attach()
	defer detach()
	want(t, waits(a, true), false)
	if err := r.Answer(a.view.ID, Page, accept("0")); !errors.Is(err, ErrOver) {
		t.Errorf("%v", err)
	}
	if _, err := r.ByToken(token); !errors.Is(err, ErrOver) {
		t.Errorf("%v", err)
	}
	if a.Take(nil) != nil {
		t.Error("there is an answer")
	}
	a.Leave(true, "x")
	if open, _ := r.Open(); len(open) != 0 || len(r.asked) != 0 || len(r.states) != 0 {
		t.Errorf("%d are kept", len(r.asked))
	}
	// An answer that nobody comes for goes as well.
	b := put(t, r, call("T"), "again")
	b.Leave(true, "")
	if err := r.Answer(b.view.ID, Page, accept("0")); err != nil && !errors.Is(err, ErrOver) {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		left := len(r.asked)
		r.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("an old answer is kept")
		}
	}
}

// wrong_token, token_of_another_room, replayed_token.
func TestTokens(t *testing.T) {
	r, other := newRoom(Options{}), newRoom(Options{})
	r.Offer(func() (string, error) { return "http://x/", nil })
	a := put(t, r, call("T"), "?")
	address := a.Address()
	token := strings.TrimPrefix(address, "http://x/")
	if len(token) < 30 || a.Address() != address {
		t.Fatalf("%q, then %q", address, a.Address())
	}
	id, mac, _ := strings.Cut(token, "-")
	for _, wrong := range []string{"", "-", id, id + "-", id + "-" + mac[1:], id + "-" + mac + "x", strings.ToUpper(token), id + "-" + strings.Repeat("a", len(mac)),
		strings.TrimPrefix(other.token(id), "x"), other.token("abcdef"), r.token("abcdef"), "x" + token} {
		if _, err := r.ByToken(wrong); !errors.Is(err, ErrOver) {
			t.Errorf("%q is a token: %v", wrong, err)
		}
	}
	if v, err := r.ByToken(token); err != nil || v.ID != id {
		t.Fatal(err)
	}
	if err := r.Answer(id, Page, accept("0")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ByToken(token); !errors.Is(err, ErrOver) {
		t.Errorf("a token is good after the answer: %v", err)
	}
	if put(t, other, call("T"), "?").Address() != "" {
		t.Error("an address without a page")
	}
	other.Offer(func() (string, error) { return "", errors.New("no port") })
	if put(t, other, call("T"), "??").Address() != "" {
		t.Error("an address of a page that does not start")
	}
}
