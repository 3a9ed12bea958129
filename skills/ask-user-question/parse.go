package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/sdk"
)

// Bounds of what is asked.
const (
	maxQuestions = 4
	maxOptions   = 8 // more than are asked for, because models do not count well
	maxHeader    = 12
	maxLabel     = 200 // bytes, as the following
	maxAbout     = 500
	maxText      = 2000
	maxAll       = 24 << 10
)

const (
	choice = "choice"
	multi  = "multi"
	text   = "text"
	yesno  = "yesno"
)

// A question is one that is put to the user.
type question struct {
	ID      string // as the caller calls it
	Text    string
	Header  string
	Kind    string
	Options []option
	Example string // of a text
}

type option struct{ Label, About string }

// example is what every complaint about the questions ends with.
const example = `want a list of 1 to 4 questions, such as [{"question": "Which database should it use?", "header": "Database", ` +
	`"options": [{"label": "Postgres", "description": "runs already"}, {"label": "SQLite", "description": "needs no server"}], "multiSelect": false}]`

func bad(format string, args ...any) error {
	return &sdk.Error{Kind: sdk.Invalid, What: "questions_json: " + fmt.Sprintf(format, args...), Hint: example}
}

// A loose question is one in any of the spellings that models know from other
// tools.
type loose struct {
	ID       any           `json:"id"`
	Question string        `json:"question"`
	Prompt   string        `json:"prompt"`
	Text     string        `json:"text"`
	Header   string        `json:"header"`
	Title    string        `json:"title"`
	Type     string        `json:"type"`
	Options  []looseOption `json:"options"`
	Choices  []looseOption `json:"choices"`
	Several1 truth         `json:"multiSelect"`
	Several2 truth         `json:"multi_select"`
	Several3 truth         `json:"multiple"`
	Example  string        `json:"placeholder"`
}

type looseOption struct{ option }

func (o *looseOption) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &o.Label) == nil {
		return nil
	}
	var in struct{ Label, Value, Name, Text, Description, Desc string }
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("an option is a text, or an object with a label")
	}
	o.Label = first(in.Label, in.Name, in.Text, in.Value)
	o.About = first(in.Description, in.Desc)
	return nil
}

// A truth is a boolean, or the word for one.
type truth bool

func (t *truth) UnmarshalJSON(b []byte) error {
	switch s := strings.ToLower(strings.Trim(string(b), `"`)); s {
	case "true", "yes":
		*t = true
	case "false", "no", "null", "":
	default:
		return fmt.Errorf("%s is neither true nor false", s)
	}
	return nil
}

func first(all ...string) string {
	for _, s := range all {
		if s = clean(s); s != "" {
			return s
		}
	}
	return ""
}

func clean(s string) string { return strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd")) }

// parse reads the questions, and says what it had to change.
func parse(in string) (qs []question, warnings []string, err error) {
	if len(in) > maxAll {
		return nil, nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("questions_json: %d bytes are too many", len(in)), Hint: fmt.Sprintf("at most %d", maxAll)}
	}
	list, err := listOf(json.RawMessage(in))
	if err != nil {
		return nil, nil, err
	}
	if n := len(list); n == 0 || n > maxQuestions {
		return nil, nil, bad("%d questions", n)
	}
	seen := map[string]bool{}
	for i, raw := range list {
		q, warning, err := questionOf(i+1, raw)
		if err != nil {
			return nil, nil, err
		}
		if seen[q.ID] {
			return nil, nil, bad("two questions have the id %.40q", q.ID)
		}
		seen[q.ID] = true
		if warning != "" {
			warnings = append(warnings, warning)
		}
		qs = append(qs, q)
	}
	return qs, warnings, nil
}

// listOf finds the list in what was given: itself, the member "questions" of an
// object, a single question, or any of these in a string.
func listOf(in json.RawMessage) (list []json.RawMessage, err error) {
	for range 4 {
		var inner string
		if !strings.HasPrefix(strings.TrimSpace(string(in)), `"`) || json.Unmarshal(in, &inner) != nil {
			break
		}
		in = json.RawMessage(inner)
	}
	var object map[string]json.RawMessage
	switch err := json.Unmarshal(in, &list); {
	case err == nil && list != nil:
		return list, nil
	case json.Unmarshal(in, &object) == nil && object != nil:
		if inner, ok := object["questions"]; ok {
			return listOf(inner)
		}
		return []json.RawMessage{in}, nil
	case !json.Valid(in):
		return nil, bad("this is not JSON: %v", err)
	}
	return nil, bad("this is no list")
}

func questionOf(n int, raw json.RawMessage) (q question, warning string, err error) {
	var in loose
	var alone string
	if json.Unmarshal(raw, &alone) == nil {
		in.Question = alone
	} else if err := json.Unmarshal(raw, &in); err != nil {
		return q, "", bad("question %d: %v", n, err)
	}
	q = question{ID: fmt.Sprintf("q%d", n), Text: first(in.Question, in.Prompt, in.Text), Header: first(in.Header, in.Title), Example: clean(in.Example)}
	switch id := in.ID.(type) {
	case string:
		q.ID = first(id, q.ID)
	case float64:
		q.ID = fmt.Sprint(id)
	}
	for _, o := range append(in.Options, in.Choices...) {
		q.Options = append(q.Options, option{first(o.Label), clean(o.About)})
	}
	if q.Kind, err = kindOf(in.Type, bool(in.Several1 || in.Several2 || in.Several3), len(q.Options)); err != nil {
		return q, "", bad("question %d: %v", n, err)
	}
	if err := q.check(); err != nil {
		return q, "", bad("question %d: %v", n, err)
	}
	if q.Header == "" {
		q.Header = fmt.Sprintf("Question %d", n)
	}
	if utf8.RuneCountInString(q.Header) > maxHeader {
		short := strings.TrimSpace(string([]rune(q.Header)[:maxHeader]))
		warning = fmt.Sprintf("the header %.80q of question %d is longer than %d characters and was cut to %q", q.Header, n, maxHeader, short)
		q.Header = short
	}
	return q, warning, nil
}

// kindOf is the kind that a type names, or that the rest amounts to.
func kindOf(name string, several bool, options int) (string, error) {
	switch strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name)) {
	case "":
	case "choice", "singlechoice", "single", "select", "radio":
		if several {
			return multi, nil
		}
		return choice, nil
	case "multi", "multichoice", "multiple", "multiselect", "multiplechoice", "checkbox":
		return multi, nil
	case "text", "freetext", "input", "string", "open":
		return text, nil
	case "yesno", "boolean", "bool", "confirm":
		return yesno, nil
	default:
		return "", fmt.Errorf("type %.40q: want choice, multi, text or yesno", name)
	}
	switch {
	case options == 0:
		return text, nil
	case several:
		return multi, nil
	}
	return choice, nil
}

func (q *question) check() error {
	if q.Kind == text || q.Kind == yesno {
		q.Options = nil
	}
	switch n := len(q.Options); {
	case q.Text == "":
		return fmt.Errorf("it has no text under \"question\"")
	case len(q.Text) > maxText || len(q.Example) > maxAbout || len(q.ID) > maxLabel:
		return fmt.Errorf("its texts are too long: %d bytes at most", maxText)
	case n == 1 || n > maxOptions, n == 0 && (q.Kind == choice || q.Kind == multi):
		return fmt.Errorf("it has %d options: 2 to 4 are wanted", n)
	}
	if q.Kind == yesno {
		q.Options = []option{{Label: "Yes"}, {Label: "No"}}
	}
	seen := map[string]bool{}
	for i, o := range q.Options {
		switch key := strings.ToLower(o.Label); {
		case o.Label == "":
			return fmt.Errorf("option %d has no label", i+1)
		case len(o.Label) > maxLabel || len(o.About) > maxAbout:
			return fmt.Errorf("option %d is too long: a label has %d bytes at most, a description %d", i+1, maxLabel, maxAbout)
		case seen[key]:
			return fmt.Errorf("two options have the label %.80q", o.Label)
		default:
			seen[key] = true
		}
	}
	return nil
}
