package dispatch

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

var colour = sdk.Question{Kind: sdk.QuestionForm, Message: "which colour", Schema: json.RawMessage(`{"type":"object","properties":{"c":{"enum":["red","blue"]}},"required":["c"]}`)}

// asks makes the guest ask n questions one after the other, as a replaying
// handler does, and then answer with all that it was told.
func asks(n int) func(context.Context, executor.Job) (sdk.Result, error) {
	return func(_ context.Context, j executor.Job) (sdk.Result, error) {
		for i := range n {
			id := string(rune('a' + i))
			if _, ok := j.Input.Answers[id]; !ok {
				return sdk.Result{Questions: map[string]sdk.Question{id: colour}, State: j.Input.State + id}, nil
			}
		}
		b, err := json.Marshal(j.Input.Answers)
		return sdk.Text(j.Input.State + " " + string(b)), err
	}
}

func accept(c string) sdk.Answer {
	return sdk.Answer{Action: "accept", Content: json.RawMessage(`{"c":"` + c + `"}`)}
}

func TestQuestions(t *testing.T) {
	h := newHouse(t)
	h.guest.run = asks(2)
	call := sdk.Call{Tool: "one-t", Args: json.RawMessage(`{"a":"x"}`), Scope: h.scope}
	r, err := h.Call(t.Context(), call, nil)
	if err != nil || len(r.Questions) != 1 || r.State == "" || strings.Contains(r.State, "a") && len(r.State) < 40 {
		t.Fatalf("%+v, %v", r, err)
	}
	call.State, call.Answers = r.State, map[string]sdk.Answer{"a": accept("red")}
	if r, err = h.Call(t.Context(), call, nil); err != nil || r.Questions["b"].Message == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	call.State, call.Answers = r.State, map[string]sdk.Answer{"b": {Action: "decline"}}
	if r, err = h.Call(t.Context(), call, nil); err != nil {
		t.Fatal(err)
	}
	if want := `ab {"a":{"action":"accept","content":{"c":"red"}},"b":{"action":"decline"}}`; r.Content[0].Text != want || r.State != "" {
		t.Errorf("%q, want %q", r.Content[0].Text, want)
	}
}

// TestSealedState lists what must not be done with a state.
func TestSealedState(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *house, c *sdk.Call)
		says   string
	}{
		"state_tampered": {func(_ *house, c *sdk.Call) {
			b := []byte(c.State)
			b[len(b)/2] ^= 1
			c.State = string(b)
		}, "not valid"},
		"state_cut":           {func(_ *house, c *sdk.Call) { c.State = c.State[:20] }, "not valid"},
		"state_forged":        {func(_ *house, c *sdk.Call) { c.State = "e30" }, "not valid"},
		"state_other_tool":    {func(_ *house, c *sdk.Call) { c.Tool = "two-t" }, "not valid"},
		"state_other_args":    {func(_ *house, c *sdk.Call) { c.Args = json.RawMessage(`{"a":"y"}`) }, "not valid"},
		"state_other_caller":  {func(_ *house, c *sdk.Call) { c.Scope.Caller = "local:eve" }, "not valid"},
		"state_other_session": {func(_ *house, c *sdk.Call) { c.Scope.Session = "s2" }, "not valid"},
		"state_expired":       {func(h *house, _ *sdk.Call) { h.Sealer.Now = func() time.Time { return time.Now().Add(25 * time.Hour) } }, "not valid"},
		"answer_wrong":        {func(_ *house, c *sdk.Call) { c.Answers = map[string]sdk.Answer{"a": accept("green")} }, "/c"},
		"answer_action":       {func(_ *house, c *sdk.Call) { c.Answers = map[string]sdk.Answer{"a": {Action: "approve"}} }, "want accept"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.guest.run = asks(1)
			call := sdk.Call{Tool: "one-t", Args: json.RawMessage(`{"a":"x"}`), Scope: h.scope}
			r, err := h.Call(t.Context(), call, nil)
			if err != nil {
				t.Fatal(err)
			}
			call.State, call.Answers = r.State, map[string]sdk.Answer{"a": accept("red")}
			good := call
			c.change(h, &call)
			h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) {
				t.Error("the guest ran")
				return sdk.Result{}, nil
			}
			if _, err := h.Call(t.Context(), call, nil); sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if name == "state_expired" {
				return
			}
			h.guest.run = asks(1) // a refused attempt spends nothing
			if _, err := h.Call(t.Context(), good, nil); err != nil {
				t.Errorf("the good answer after the bad one: %v", err)
			}
		})
	}
}

// TestAnswersForNobody: answers that nobody asked for reach no guest.
func TestAnswersForNobody(t *testing.T) {
	h := newHouse(t)
	var heard map[string]sdk.Answer
	ask := asks(1)
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		heard = j.Input.Answers
		return ask(ctx, j)
	}
	call := sdk.Call{Tool: "one-t", Args: json.RawMessage(`{"a":"x"}`), Scope: h.scope, Answers: map[string]sdk.Answer{"a": accept("red")}}
	r, err := h.Call(t.Context(), call, nil)
	if err != nil || len(r.Questions) == 0 || len(heard) != 0 {
		t.Fatalf("without a state: %v, %+v, heard %v", err, r, heard)
	}
	call.State, call.Answers = r.State, map[string]sdk.Answer{"a": accept("red"), "z": accept("red")}
	if _, err := h.Call(t.Context(), call, nil); err != nil || len(heard) != 1 || heard["a"].Action != "accept" {
		t.Errorf("%v, heard %v", err, heard)
	}
}

func TestStateOnce(t *testing.T) {
	h := newHouse(t)
	h.guest.run = asks(1)
	call := sdk.Call{Tool: "one-t", Scope: h.scope}
	r, err := h.Call(t.Context(), call, nil)
	if err != nil {
		t.Fatal(err)
	}
	call.State, call.Answers = r.State, map[string]sdk.Answer{"a": accept("blue")}
	if _, err := h.Call(t.Context(), call, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Call(t.Context(), call, nil); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("state_replayed: %v", err)
	}
	// Another host of the user opens what this one sealed, and knows what is spent.
	h.Sealer = &Sealer{Store: h.store}
	if _, err := h.Call(t.Context(), call, nil); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("state_replayed at another host: %v", err)
	}
}

func TestTooManyRounds(t *testing.T) {
	h := newHouse(t)
	h.guest.run = asks(maxRounds + 1)
	call := sdk.Call{Tool: "one-t", Scope: h.scope}
	for round := 1; ; round++ {
		r, err := h.Call(t.Context(), call, nil)
		if err != nil {
			if sdk.KindOf(err) != sdk.Limit || round != maxRounds+1 {
				t.Errorf("round %d: %v", round, err)
			}
			return
		}
		call.State, call.Answers = r.State, map[string]sdk.Answer{}
		for id := range r.Questions {
			call.Answers[id] = accept("red")
		}
	}
}

func TestBadQuestions(t *testing.T) {
	many := map[string]sdk.Question{}
	for i := range maxQuestions + 1 {
		many[string(rune('a'+i))] = colour
	}
	for name, c := range map[string]struct {
		r    sdk.Result
		kind sdk.Kind
	}{
		"schema_bad":  {sdk.Result{Questions: map[string]sdk.Question{"a": {Kind: sdk.QuestionForm, Schema: json.RawMessage(`{"type":7}`)}}}, sdk.Guest},
		"state_large": {sdk.Result{Questions: map[string]sdk.Question{"a": colour}, State: strings.Repeat("x", maxState+1)}, sdk.Limit},
		"too_many":    {sdk.Result{Questions: many}, sdk.Limit},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) { return c.r, nil }
			if _, err := h.do(t, "one-t", `{}`); sdk.KindOf(err) != c.kind {
				t.Errorf("%v, want kind %s", err, c.kind)
			}
		})
	}
}
