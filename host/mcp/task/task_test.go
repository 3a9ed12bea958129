package task

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

func TestATaskIsInTheStoreBeforeAnybodyIsTold(t *testing.T) {
	w := newWorld(t)
	r, _ := begin(t, w.host("one"), alice)
	want(t, w.host("two"), alice, r.ID(), Working)
	r.End(End{Status: Completed, Body: json.RawMessage(`{"content":[]}`)})
	for _, h := range []*Tasks{w.host("one"), w.host("two")} {
		k := want(t, h, alice, r.ID(), Completed)
		if string(k.Body) != `{"content":[]}` || k.Expires.Sub(k.Updated) != 10*time.Minute {
			t.Errorf("%+v", k)
		}
	}
}

func TestAfterARestart(t *testing.T) {
	w := newWorld(t)
	h := w.host("one")
	done, _ := begin(t, h, alice)
	done.End(End{Status: Failed, Message: "m", Body: json.RawMessage(`{"code":1}`)})
	works, _ := begin(t, h, alice)
	asks, _ := begin(t, h, alice)
	asks.End(End{Asked: asked("q")})
	w.kill("one")
	again := w.host("two")
	if k := want(t, again, alice, done.ID(), Failed); string(k.Body) != `{"code":1}` || k.Message != "m" {
		t.Errorf("%+v", k)
	}
	if k := want(t, again, alice, works.ID(), Failed); k.Message != "the host that ran it has ended" || k.Body != nil || k.Expires.IsZero() {
		t.Errorf("%+v", k)
	}
	// What waited goes on where it is answered.
	want(t, again, alice, asks.ID(), Waiting)
	r, call, err := again.Answer(ctx, alice, asks.ID(), map[string]sdk.Answer{"1.q": {Action: "accept"}}, func(error) {})
	if err != nil || r == nil || call.Tool != "ask" {
		t.Fatalf("%v %v %+v", r, err, call)
	}
	want(t, again, alice, asks.ID(), Working)
	r.End(End{Status: Completed, Body: json.RawMessage(`1`)})
	want(t, again, alice, asks.ID(), Completed)
	// The dead host's own late words change nothing that was told.
	works.End(End{Status: Completed, Body: json.RawMessage(`2`)})
	want(t, again, alice, works.ID(), Failed)
}

func TestForeignCallersAndForgedIDs(t *testing.T) {
	w := newWorld(t)
	h := w.host("one")
	r, c := begin(t, h, alice)
	r2, _ := begin(t, h, alice)
	r2.End(End{Asked: asked("q")})
	id := r.ID()
	owners := map[string]Owner{
		"another_caller":    {"mallory", "/work", "read write"},
		"another_workspace": {"alice", "/work2", "read write"},
		"moved_border":      {"alice/", "work", "read write"},
		"fewer_rights":      {"alice", "/work", "read"},
		"no_rights":         {"alice", "/work", ""},
		"joined_rights":     {"alice", "/work", "readwrite"},
		"nobody":            {},
	}
	ids := map[string]string{"empty": "", "short": id[1:], "long": id + "A", "lower": strings.ToLower(id), "another": rand.Text(),
		"path": "../" + id[3:], "nul": id[:25] + "\x00", "place": alice.place()[:26], "slash": id[:25] + "/", "job": "17"}
	try := func(name string, o Owner, id string) {
		t.Run(name, func(t *testing.T) {
			_, err := h.Get(ctx, o, id)
			wantKind(t, err, sdk.NotFound)
			if again, _ := h.Get(ctx, o, id); again.ID != "" {
				t.Error("tells something")
			}
			wantKind(t, h.Cancel(ctx, o, id), sdk.NotFound)
			_, _, err = h.Answer(ctx, o, id, map[string]sdk.Answer{"1.q": {Action: "accept"}}, func(error) {})
			wantKind(t, err, sdk.NotFound)
		})
	}
	for name, o := range owners {
		try(name, o, id)
		try(name+"_waiting", o, r2.ID())
	}
	for name, id := range ids {
		try("id_"+name, alice, id)
	}
	if c.Err() != nil {
		t.Error("a stranger cancelled it")
	}
	want(t, h, alice, r2.ID(), Waiting)
	more := alice
	more.Rights = "admin read write"
	want(t, h, more, id, Working)
}

func asked(ids ...string) *Asked {
	a := &Asked{Call: sdk.Call{Tool: "ask", Args: json.RawMessage("{ \"a\":\"<&>\" }"), State: "s", Scope: sdk.Scope{Caller: "alice", Session: "first"}, Client: sdk.Client{Form: true}}, Questions: map[string]sdk.Question{}}
	for _, id := range ids {
		a.Questions[id] = sdk.Question{Kind: sdk.QuestionForm, Message: "?" + id}
	}
	return a
}

func TestQuestionsRoundByRound(t *testing.T) {
	w := newWorld(t)
	h, other := w.host("one"), w.host("two")
	r, _ := begin(t, h, alice)
	seen := map[string]bool{}
	for round := 1; round <= 3; round++ {
		if r.Round() != round {
			t.Fatalf("round %d", r.Round())
		}
		r.End(End{Asked: asked("a", "b")})
		k := want(t, h, alice, r.ID(), Waiting)
		if len(k.Questions) != 2 || k.Expires.IsZero() {
			t.Fatalf("%+v", k)
		}
		for key := range k.Questions {
			if seen[key] {
				t.Errorf("key %q comes twice", key)
			}
			seen[key] = true
		}
		a, b := fmt.Sprintf("%d.a", round), fmt.Sprintf("%d.b", round)
		old := fmt.Sprintf("%d.b", round-1)
		for _, keys := range [][]string{{"c"}, {"a"}, {old}, {}, {a, old}, {a}} { // of these, one counts
			answers := map[string]sdk.Answer{}
			for _, key := range keys {
				answers[key] = sdk.Answer{Action: "accept", Content: json.RawMessage(`{"n":1}`)}
			}
			if run, _, err := other.Answer(ctx, alice, r.ID(), answers, nil); run != nil || err != nil {
				t.Fatalf("%v: %v %v", keys, run, err)
			}
		}
		k = want(t, other, alice, r.ID(), Waiting)
		if _, open := k.Questions[b]; !open || len(k.Questions) != 1 {
			t.Fatalf("%+v", k.Questions)
		}
		next, call, err := other.Answer(ctx, alice, r.ID(), map[string]sdk.Answer{b: {Action: "decline"}}, func(error) {})
		if err != nil || next == nil {
			t.Fatal(next, err)
		}
		got, _ := json.Marshal(call)
		if call.State != "s" || string(call.Args) != "{ \"a\":\"<&>\" }" || call.Narrow != nil || call.Scope.Session != "first" || !call.Client.Form ||
			len(call.Answers) != 2 || call.Answers["a"].Action != "accept" || string(call.Answers["a"].Content) != `{"n":1}` || call.Answers["b"].Action != "decline" {
			t.Fatalf("%s", got)
		}
		want(t, h, alice, r.ID(), Working)
		r, h, other = next, other, h
	}
	r.End(End{Status: Completed, Body: json.RawMessage(`true`)})
	if w.rows(bodyBucket) != 1 {
		t.Errorf("%d bodies are left", w.rows(bodyBucket))
	}
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	h, other := w.host("one"), w.host("two")
	t.Run("running_here", func(t *testing.T) {
		r, c := begin(t, h, alice)
		if err := h.Cancel(ctx, alice, r.ID()); err != nil || context.Cause(c) != ErrCancelled {
			t.Fatal(err, context.Cause(c))
		}
		want(t, h, alice, r.ID(), Working) // until it has ended
		r.End(End{Status: Cancelled, Message: "m"})
		want(t, other, alice, r.ID(), Cancelled)
	})
	t.Run("running_elsewhere", func(t *testing.T) {
		r, c := begin(t, h, alice)
		if err := other.Cancel(ctx, alice, r.ID()); err != nil {
			t.Fatal(err)
		}
		within(t, func() bool { return context.Cause(c) == ErrCancelled })
		r.End(End{Status: Cancelled}) // over what the other has written
		want(t, other, alice, r.ID(), Cancelled)
	})
	t.Run("waiting", func(t *testing.T) {
		r, _ := begin(t, h, alice)
		r.End(End{Asked: asked("q")})
		if err := other.Cancel(ctx, alice, r.ID()); err != nil {
			t.Fatal(err)
		}
		want(t, h, alice, r.ID(), Cancelled)
		run, _, err := h.Answer(ctx, alice, r.ID(), map[string]sdk.Answer{"1.q": {Action: "accept"}}, nil)
		if run != nil || err != nil {
			t.Fatal("it goes on", err)
		}
	})
	t.Run("ended", func(t *testing.T) {
		r, _ := begin(t, h, alice)
		r.End(End{Status: Completed, Body: json.RawMessage(`1`)})
		for range 2 {
			if err := h.Cancel(ctx, alice, r.ID()); err != nil {
				t.Fatal(err)
			}
		}
		want(t, h, alice, r.ID(), Completed)
	})
}

func TestExpiry(t *testing.T) {
	w := newWorld(t)
	w.bound.TTL, w.bound.Wait = time.Minute, time.Hour
	h := w.host("one")
	done, _ := begin(t, h, alice)
	done.End(End{Status: Completed, Body: json.RawMessage(`1`)})
	works, _ := begin(t, h, alice)
	asks, _ := begin(t, h, alice)
	asks.End(End{Asked: asked("q")})
	w.later(59 * time.Second)
	want(t, h, alice, done.ID(), Completed)
	w.later(2 * time.Second)
	_, err := h.Get(ctx, alice, done.ID())
	wantKind(t, err, sdk.NotFound)
	want(t, h, alice, works.ID(), Working)
	want(t, h, alice, asks.ID(), Waiting)
	w.later(time.Hour)
	_, _, err = h.Answer(ctx, alice, asks.ID(), map[string]sdk.Answer{"1.q": {Action: "accept"}}, nil)
	wantKind(t, err, sdk.NotFound)
	want(t, h, alice, works.ID(), Working)
	if err := h.Sweep(ctx); err != nil || w.rows(rowBucket) != 1 || w.rows(bodyBucket) != 0 {
		t.Errorf("%v: %d rows, %d bodies", err, w.rows(rowBucket), w.rows(bodyBucket))
	}
	works.End(End{Status: Completed, Body: json.RawMessage(`1`)})
}

func TestBounds(t *testing.T) {
	w := newWorld(t)
	w.bound = Bounds{Caller: 3, All: 5, Running: 4, TTL: time.Minute}
	h := w.host("one")
	bob := Owner{Caller: "bob"}
	refused := func(o Owner) {
		t.Helper()
		_, err := h.Begin(ctx, o, nil)
		wantKind(t, err, sdk.Limit)
	}
	var runs []*Run
	for range 3 {
		r, _ := begin(t, h, alice)
		runs = append(runs, r)
	}
	refused(alice) // of hers
	runs[0].End(End{Status: Completed})
	refused(alice) // those that have ended count until they expire
	for range 2 {
		r, _ := begin(t, h, bob)
		runs = append(runs, r)
	}
	refused(bob) // in all, and at once
	for _, r := range runs {
		r.End(End{Status: Completed})
	}
	refused(bob) // in all
	w.later(2 * time.Minute)
	r, _ := begin(t, h, alice)
	r.End(End{Status: Completed})
	if n := w.rows(rowBucket); n != 1 {
		t.Errorf("%d rows", n)
	}
	if _, err := h.Begin(ctx, Owner{}, nil); err == nil {
		t.Error("a task of nobody")
	}
}

func TestLargeResult(t *testing.T) {
	w := newWorld(t)
	h := w.host("one")
	r, _ := begin(t, h, alice)
	body := bytes.Repeat([]byte("0123456789abcdef"), (2*maxPart+48)/16)
	r.End(End{Status: Completed, Body: body})
	if k := want(t, h, alice, r.ID(), Completed); !bytes.Equal(k.Body, body) || w.rows(bodyBucket) != 3 {
		t.Errorf("%d bytes in %d parts", len(k.Body), w.rows(bodyBucket))
	}
	w.later(24 * time.Hour)
	if err := h.Sweep(ctx); err != nil || w.rows(bodyBucket) != 0 {
		t.Errorf("%v: %d parts are left", err, w.rows(bodyBucket))
	}
}

func TestAnEndThatCannotBeRecorded(t *testing.T) {
	w := newWorld(t)
	s := &broken{Store: w.store}
	h := w.hostOn("one", s)
	r, _ := begin(t, h, alice)
	s.now.Store(true)
	r.End(End{Status: Completed, Body: json.RawMessage(`1`)})
	if k := want(t, h, alice, r.ID(), Completed); string(k.Body) != "1" {
		t.Errorf("%+v", k)
	}
	want(t, w.host("two"), alice, r.ID(), Working)
	s.now.Store(false)
	if err := h.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	want(t, w.host("two"), alice, r.ID(), Completed)
	if h.running(r.key) != nil {
		t.Error("it is still held")
	}
	if _, err := h.Begin(ctx, alice, nil); err != nil {
		t.Error(err)
	}
}

func TestBeginOnABrokenStore(t *testing.T) {
	w := newWorld(t)
	s := &broken{Store: w.store}
	s.now.Store(true)
	h := w.hostOn("one", s)
	_, err := h.Begin(ctx, alice, nil)
	wantKind(t, err, sdk.Unavailable)
	c, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if err := h.Close(c); err != nil || c.Err() != nil {
		t.Error("it left something running", err)
	}
}

func TestClose(t *testing.T) {
	w := newWorld(t)
	h := w.host("one")
	obeys, c := begin(t, h, alice)
	stubborn, _ := begin(t, h, alice)
	go func() {
		<-c.Done()
		obeys.End(End{Status: Cancelled, Message: context.Cause(c).Error()})
	}()
	soon, stop := context.WithTimeout(ctx, 20*time.Millisecond)
	defer stop()
	for range 2 {
		if err := h.Close(soon); err != nil {
			t.Fatal(err)
		}
	}
	stubborn.End(End{Status: Completed, Body: json.RawMessage(`1`)}) // too late
	for _, r := range []*Run{obeys, stubborn} {
		if k := want(t, w.host("two"), alice, r.ID(), Cancelled); k.Message != "the host shut down" {
			t.Errorf("%+v", k)
		}
	}
	_, err := h.Begin(ctx, alice, nil)
	wantKind(t, err, sdk.Unavailable)
}

func TestSayAndChanged(t *testing.T) {
	w := newWorld(t)
	h := w.host("one")
	r, _ := begin(t, h, alice)
	r.Say(strings.Repeat("é", maxMessage))
	if k := want(t, h, alice, r.ID(), Working); len(k.Message) > maxMessage || !strings.HasPrefix(k.Message, "éé") {
		t.Errorf("%q", k.Message)
	}
	changed := h.Changed()
	r.End(End{Status: Completed, Body: json.RawMessage(`1`)})
	select {
	case <-changed:
	default:
		t.Error("nobody is told")
	}
	r.Say("late")
	if k := want(t, h, alice, r.ID(), Completed); k.Message != "" {
		t.Errorf("%q", k.Message)
	}
}

func TestDamagedRows(t *testing.T) {
	w := newWorld(t)
	h := w.host("one")
	r, _ := begin(t, h, alice)
	r.End(End{Asked: asked("q")})
	for _, bucket := range []string{bodyBucket, rowBucket} {
		items, err := w.store.List(ctx, bucket, "", "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Put(ctx, bucket, items[0].Key, []byte(`{"questions":7,"status":8}`), store.Any); err != nil {
			t.Fatal(err)
		}
		_, err = h.Get(ctx, alice, r.ID())
		wantKind(t, err, sdk.Unavailable)
		_, _, err = h.Answer(ctx, alice, r.ID(), map[string]sdk.Answer{"1.q": {Action: "accept"}}, nil)
		wantKind(t, err, sdk.Unavailable)
	}
	begin(t, h, alice)
}
