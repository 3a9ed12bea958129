package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/skillhost/skill/sdk"
)

// ErrAsk is the error of Ask while the user has not answered. The handler
// returns it (it may wrap it), the host asks the user, however long that
// takes, and calls the tool again from the top.
var ErrAsk = errors.New("the user has to be asked first")

// state is what passes from one round of questions to the next.
type state struct {
	Answers map[string]sdk.Answer      `json:"answers,omitempty"` // of all rounds
	Once    map[string]json.RawMessage `json:"once,omitempty"`
}

func (s *state) read(in sdk.Input) error {
	s.Answers, s.Once = map[string]sdk.Answer{}, map[string]json.RawMessage{}
	if in.State != "" {
		if err := json.Unmarshal([]byte(in.State), s); err != nil {
			return &sdk.Error{Kind: sdk.Invalid, What: "the state of an earlier round", Err: err}
		}
	}
	maps.Copy(s.Answers, in.Answers)
	return nil
}

// Ask returns the user's answer to q once there is one, and ErrAsk before. id
// tells the questions of a tool apart and must be the same in every round.
// Since the handler runs again from the top, what it does before Ask happens
// again: see Once. Several questions may be asked before ErrAsk is returned;
// the user gets them together. To decline is an answer, not an error. What the
// client can be asked, Client says; the answer to a question of kind
// sdk.QuestionSampling or sdk.QuestionRoots is the client's whole result. These
// two need client = ["sampling"] or ["roots"] in the manifest: the call is
// refused without.
func (c *Call) Ask(id string, q sdk.Question) (sdk.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.state.Answers[id]; ok {
		return a, nil
	}
	if q.Kind == "" {
		q.Kind = sdk.QuestionForm
	}
	c.asked[id] = q
	return sdk.Answer{}, ErrAsk
}

// AskAll asks several questions together and returns all answers once they are
// there, and ErrAsk before. It is Ask for each of them.
func (c *Call) AskAll(questions map[string]sdk.Question) (map[string]sdk.Answer, error) {
	answers := make(map[string]sdk.Answer, len(questions))
	var missing error
	for id, q := range questions {
		a, err := c.Ask(id, q)
		if err != nil {
			missing = err
			continue
		}
		answers[id] = a
	}
	if missing != nil {
		return nil, missing
	}
	return answers, nil
}

// Once runs do in the first round that comes to it and returns the same value,
// through JSON, in every later round, without running do again. An error is
// not kept.
func Once[T any](c *Call, id string, do func() (T, error)) (T, error) {
	c.mu.Lock()
	kept, ok := c.state.Once[id]
	c.mu.Unlock()
	var v T
	if ok {
		if err := json.Unmarshal(kept, &v); err != nil {
			return v, fmt.Errorf("once %q: %w", id, err)
		}
		return v, nil
	}
	v, err := do()
	if err != nil {
		return v, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return v, fmt.Errorf("once %q: %w", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Once[id] = b
	return v, nil
}

func (c *Call) asking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked) > 0
}

// questions is the Result that asks the user.
func (c *Call) questions() (sdk.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := json.Marshal(c.state)
	return sdk.Result{Questions: c.asked, State: string(b)}, err
}
