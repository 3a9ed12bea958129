// Ask-user-question is the skill behind the tool AskUserQuestion: it puts up to
// four questions to the user in one form, and tells what was answered. How the
// form reaches the user is the host's.
package main

import (
	"encoding/json"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

type request struct {
	QuestionsJSON string          `json:"questions_json" doc:"JSON: a list of 1 to 4 questions, each {\"question\", \"header\" (12 characters at most), \"options\": [{\"label\", \"description\"}] (2 to 4), \"multiSelect\" (true: several may be chosen)}. Without options it asks for a text; \"type\" is choice, multi, text or yesno. The user can always give another answer, so add no option for that" media:"application/json" alias:"questions"`
	Answers       json.RawMessage `json:"answers,omitempty" doc:"What the user answered when you asked in the conversation, because this tool said needs_user: an object {\"q1\": \"label\", \"q2\": [\"label\", \"label\"], \"q3\": \"a text\"}, by the ids of the questions. Never answer for the user"`
}

type reply struct {
	Answers    []answer `json:"answers"`
	Channel    string   `json:"channel" doc:"the way the answer came: mrtr, elicitation or url from the client, page, terminal or tty from the user beside it, call with this call"`
	DurationMS int64    `json:"duration_ms" doc:"from the question to the answer"`
	Warnings   []string `json:"warnings,omitempty" doc:"what was changed in the questions, or could not be made out of the answer"`
}

type answer struct {
	ID         string   `json:"id"`
	Question   string   `json:"question"`
	Selected   []string `json:"selected" doc:"labels of the options that were chosen"`
	Other      string   `json:"other,omitempty" doc:"what the user wrote instead of, or beside, the options"`
	Notes      string   `json:"notes,omitempty" doc:"what the user wrote about the choice"`
	Unanswered string   `json:"unanswered,omitempty" doc:"why there is no answer" enum:"skipped,declined,dismissed"`
}

var _ = guest.Tool("AskUserQuestion", "Ask interactive multiple-choice questions via TUI. Asks the user 1 to 4 questions when a decision is theirs to make and waits for the answer; the form is shown by the client, "+
	"on a page of this machine or in a terminal. If the result says needs_user, nobody could be asked: tell the user where the questions are open, or ask in the conversation and call again with the same questions and \"answers\". "+
	"An answer is no permission for anything else.",
	ask, guest.Title("Ask the user"), guest.Annotations{ReadOnly: true})

// form is the id of the one question that this tool has for its host.
const form = "questions"

func ask(c *guest.Call, in request) (guest.Reply[reply], error) {
	var none guest.Reply[reply]
	qs, warnings, err := parse(in.QuestionsJSON)
	if err != nil {
		return none, err
	}
	out := reply{Warnings: warnings}
	if given(in.Answers) {
		out.Channel = "call"
		if err := out.take(qs, in.Answers); err != nil {
			return none, err
		}
		return out.told(), nil
	}
	began, err := guest.Once(c, "began", c.Now)
	if err != nil {
		return none, err
	}
	a, err := c.Ask(form, sdk.Question{Kind: sdk.QuestionForm, Message: message(qs), Schema: schema(qs), Lenient: true})
	if err != nil {
		return none, err
	}
	now, err := c.Now()
	if err != nil {
		return none, err
	}
	out.Channel, out.DurationMS = a.Channel, max(a.Took, now.Sub(began).Milliseconds(), 0)
	if err := out.hear(qs, a); err != nil {
		return none, err
	}
	return out.told(), nil
}

// given reports whether the caller brings the answers.
func given(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// hear takes in what the user did with the form.
func (r *reply) hear(qs []question, a sdk.Answer) error {
	why := map[string]string{"decline": "declined", "cancel": "dismissed"}[a.Action]
	if why != "" {
		for _, q := range qs {
			r.Answers = append(r.Answers, answer{ID: q.ID, Question: q.Text, Selected: []string{}, Unanswered: why})
		}
		return nil
	}
	content := map[string]any{}
	if len(a.Content) > 0 {
		if err := json.Unmarshal(a.Content, &content); err != nil {
			return &sdk.Error{Kind: sdk.Guest, What: "the answer cannot be read", Err: err}
		}
	}
	r.read(qs, content)
	return nil
}

func main() {}
