package guest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

// TestAsk goes through rounds as a host does: the questions' answers come one
// round at a time, and the handler starts from the top in each.
func TestAsk(t *testing.T) {
	effects := 0
	ask = func(c *guest.Call) (string, error) {
		id, err := guest.Once(c, "reserve", func() (int, error) { effects++; return 40 + effects, nil })
		if err != nil {
			return "", err
		}
		if _, err := guest.Once(c, "fails", func() (int, error) { return 0, errors.New("not yet") }); err == nil {
			return "", errors.New("the error was lost")
		}
		a, errA := c.Ask("colour", sdk.Question{Message: "which?", Schema: json.RawMessage(`{"type":"object"}`)})
		b, errB := c.Ask("size", sdk.Question{Kind: sdk.QuestionURL, URL: "https://x"})
		if err := errors.Join(errA, errB); err != nil {
			return "", fmt.Errorf("asking: %w", err)
		}
		sure, err := c.Ask("sure", sdk.Question{Message: "sure?"})
		if err != nil {
			return "ignored", nil // swallowing the error does not lose the question
		}
		return fmt.Sprintf("%d %s %s %s", id, a.Content, b.Action, sure.Action), nil
	}
	in := sdk.Input{Tool: "ask"}
	r, err := guest.Run(t.Context(), &guesttest.Host{}, in)
	if err != nil || len(r.Questions) != 2 || r.Questions["colour"].Kind != sdk.QuestionForm || r.Questions["size"].URL != "https://x" || r.State == "" || r.Content != nil {
		t.Fatalf("round 1: %+v, %v", r, err)
	}
	in.State, in.Answers = r.State, map[string]sdk.Answer{"colour": {Action: "accept", Content: json.RawMessage(`{"c":"red"}`)}, "size": {Action: "decline"}}
	r, err = guest.Run(t.Context(), &guesttest.Host{}, in)
	if err != nil || len(r.Questions) != 1 || r.Questions["sure"].Message != "sure?" || r.Content != nil {
		t.Fatalf("round 2: %+v, %v", r, err)
	}
	in.State, in.Answers = r.State, map[string]sdk.Answer{"sure": {Action: "cancel"}}
	r, err = guest.Run(t.Context(), &guesttest.Host{}, in)
	if err != nil || r.Questions != nil || r.State != "" || r.Content[0].Text != `41 {"c":"red"} decline cancel` {
		t.Fatalf("round 3: %+v, %v", r, err)
	}
	if effects != 1 {
		t.Errorf("the effect happened %d times", effects)
	}
	in.State = "{"
	if _, err := guest.Run(t.Context(), &guesttest.Host{}, in); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("a broken state: %v", err)
	}
}

// TestAskAll asks two at once, and has both answers or none.
func TestAskAll(t *testing.T) {
	ask = func(c *guest.Call) (string, error) {
		a, err := c.AskAll(map[string]sdk.Question{"model": {Kind: sdk.QuestionSampling, Params: json.RawMessage(`{}`)}, "roots": {Kind: sdk.QuestionRoots}})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(len(a), string(a["model"].Content), a["roots"].Action, c.Client().Sampling), nil
	}
	in := sdk.Input{Tool: "ask", Client: sdk.Client{Sampling: true}}
	r, err := guest.Run(t.Context(), &guesttest.Host{}, in)
	if err != nil || len(r.Questions) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	in.State, in.Answers = r.State, map[string]sdk.Answer{"model": {Action: "accept", Content: json.RawMessage(`{"role":"assistant"}`)}}
	r, err = guest.Run(t.Context(), &guesttest.Host{}, in)
	if err != nil || len(r.Questions) != 1 || r.Questions["roots"].Kind != sdk.QuestionRoots {
		t.Fatalf("with one answer: %+v, %v", r, err)
	}
	in.State, in.Answers = r.State, map[string]sdk.Answer{"roots": {Action: "decline"}}
	r, err = guest.Run(t.Context(), &guesttest.Host{}, in)
	if err != nil || r.Content[0].Text != `2{"role":"assistant"}declinetrue` {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestAnnounce(t *testing.T) {
	ask = func(c *guest.Call) (string, error) { return "", errors.Join(c.Announce("tools"), c.Updated("x://1")) }
	h := &guesttest.Host{}
	if _, err := h.Call(t.Context(), "ask", "{}"); err != nil || fmt.Sprint(h.Announced()) != "[tools x://1]" {
		t.Errorf("%v, %v", h.Announced(), err)
	}
}

// TestContents checks that each type of content passes through a frame.
func TestContents(t *testing.T) {
	priority := 0.0
	note := guest.Text("t")
	note.Audience, note.Priority, note.Modified = []string{"user"}, &priority, "2026-11-22"
	want := sdk.Result{Content: []sdk.Content{note, guest.Image([]byte("i"), "image/png"), guest.Audio([]byte("a"), "audio/wav"), guest.Document("x://d", "text/plain", "d"),
		guest.Blob("x://b", "", nil), guest.Link("x://l", "l"), guest.Says("assistant", guest.Text("r"))}}
	frame, err := sdk.AppendResult(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sdk.ParseResult(frame); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAskThenFail: a real error is not hidden behind an open question.
func TestAskThenFail(t *testing.T) {
	ask = func(c *guest.Call) (string, error) {
		if _, err := c.Ask("q", sdk.Question{}); err == nil {
			return "", errors.New("answered by nobody")
		}
		return "", errors.New("something else")
	}
	if r, err := run(t, "ask", "{}"); sdk.KindOf(err) != sdk.Guest || r.Questions != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
