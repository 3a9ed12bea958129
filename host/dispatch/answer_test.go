package dispatch

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

// questioned makes a call whose guest asks q, and returns it with the state.
func questioned(t *testing.T, h *house, q sdk.Question) sdk.Call {
	t.Helper()
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		if a, ok := j.Input.Answers["q"]; ok {
			return sdk.Text(a.Action + " " + string(a.Content) + " " + a.Channel), nil
		}
		return sdk.Result{Questions: map[string]sdk.Question{"q": q}}, nil
	}
	call := sdk.Call{Tool: "one-t", Args: json.RawMessage(`{"a":"x"}`), Scope: h.scope}
	r, err := h.Call(t.Context(), call, nil)
	if err != nil || r.State == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	call.State = r.State
	return call
}

// A tool may take answers that do not fit its schema: as objects, and no others.
func TestLenient(t *testing.T) {
	lenient := colour
	lenient.Lenient = true
	for content, ok := range map[string][2]bool{ // strict, lenient
		`{"c":"red"}`: {true, true}, `{"c":"green"}`: {false, true}, `{}`: {false, true}, ``: {false, true},
		`"red"`: {false, false}, `[1]`: {false, false}, `null`: {false, false}, `{"c":`: {false, false},
	} {
		for i, q := range []sdk.Question{colour, lenient} {
			h := newHouse(t)
			call := questioned(t, h, q)
			call.Answers = map[string]sdk.Answer{"q": {Action: "accept", Content: json.RawMessage(content)}}
			r, err := h.Call(t.Context(), call, nil)
			if (err == nil) != ok[i] || err == nil && !strings.HasPrefix(r.Content[0].Text, "accept "+content) || err != nil && sdk.KindOf(err) != sdk.Invalid {
				t.Errorf("%s, lenient %t: %+v %v", content, q.Lenient, r.Content, err)
			}
		}
	}
}

// The record says what the user did and which way that came, and not what he
// said.
func TestAnswersOnRecord(t *testing.T) {
	h := newHouse(t)
	call := questioned(t, h, colour)
	if e := h.last(t); e.Note != "asks the user" {
		t.Errorf("%+v", e)
	}
	call.Answers = map[string]sdk.Answer{"q": {Action: "accept", Content: json.RawMessage(`{"c":"red"}`), Channel: "page"}, "nobody": {Action: "accept", Channel: "tty"}}
	r, err := h.Call(t.Context(), call, nil)
	if err != nil || r.Content[0].Text != `accept {"c":"red"} page` {
		t.Fatalf("%+v %v", r, err)
	}
	note := ""
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	for _, e := range h.log.events {
		if e.Type == audit.TypeStart {
			note = e.Note
		}
		if strings.Contains(e.Note, "red") {
			t.Errorf("the answer is on record: %+v", e)
		}
	}
	if note != `answer to "q": accept by page` {
		t.Errorf("note %q", note)
	}
}
