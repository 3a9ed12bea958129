package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/ask/form"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// AppendQuestion appends the members "method" and "params" of q; id is for
// questions that the client refers to later.
func AppendQuestion(dst []byte, q *sdk.Question, id string) []byte {
	l := wire.NewList(dst)
	method := map[sdk.QuestionKind]string{sdk.QuestionSampling: "sampling/createMessage", sdk.QuestionRoots: "roots/list"}[q.Kind]
	l.Text("method", orElse(method, "elicitation/create"))
	l.Key("params")
	if q.Kind == sdk.QuestionSampling || q.Kind == sdk.QuestionRoots {
		return append(l.B, objectOr(q.Params, "{}")...)
	}
	in := wire.NewList(append(l.B, '{'))
	in.Text("mode", string(q.Kind))
	in.Text("message", q.Message)
	if q.Kind == sdk.QuestionURL {
		in.Text("url", q.URL)
		in.Text("elicitationId", id)
	} else {
		in.Raw("requestedSchema", objectOr(q.Schema, `{"type":"object","properties":{}}`))
	}
	return append(in.B, '}')
}

// objectOr returns v on one line if it is a JSON object, else the other.
func objectOr(v raw, other string) raw {
	if v = wire.Compact(v); v != nil {
		if v = raw(strings.TrimLeft(string(v), " \t")); wire.IsObject(v) {
			return v
		}
	}
	return raw(other)
}

// NeedsUser says, to the model and as a report for a program, what the user is
// to be asked by a client that cannot ask; page is where the user can answer, or
// "".
func NeedsUser(questions map[string]sdk.Question, page string) (answer sdk.Result, report json.RawMessage, err error) {
	var b strings.Builder
	b.WriteString("needs_user: the tool needs an answer from the user, and this client cannot be asked for one")
	type question struct {
		sdk.Question
		ID string `json:"id"`
	}
	list := struct {
		NeedsUser bool       `json:"needs_user"`
		Page      string     `json:"page,omitempty"`
		Questions []question `json:"questions"`
	}{NeedsUser: true, Page: page}
	for _, id := range slices.Sorted(maps.Keys(questions)) {
		q := questions[id]
		q.Schema, q.Params = wire.Compact(q.Schema), wire.Compact(q.Params)
		list.Questions = append(list.Questions, question{q, id})
		fmt.Fprintf(&b, "\n%s: %s", id, q.Message)
		if q.URL != "" {
			fmt.Fprintf(&b, " (open %s)", q.URL)
		}
		appendFields(&b, q.Schema)
	}
	if page != "" {
		fmt.Fprintf(&b, "\nThe user can answer at %s or, in a terminal, with \"skill answer\", as long as the question is open."+
			" Tell the user so; when that is done, call the tool again with the same arguments and it gets the answer.", page)
	}
	b.WriteString("\nOr ask the user in the conversation and call the tool again with the answer in its arguments if it takes one there;" +
		" or use a client that supports elicitation")
	answer = sdk.Text(b.String())
	answer.Failed = true
	report, err = json.Marshal(list)
	return answer, report, err
}

// appendFields says what a form asks for.
func appendFields(b *strings.Builder, schema raw) {
	if schema == nil {
		return
	}
	f, err := form.Parse(schema)
	if err != nil {
		fmt.Fprintf(b, " (an object that fits %s)", schema)
		return
	}
	for i := range f.Fields {
		x := &f.Fields[i]
		fmt.Fprintf(b, "\n- %s", x.Name)
		if x.Title != x.Name {
			fmt.Fprintf(b, " (%s)", form.Line(x.Title))
		}
		if x.About != "" {
			fmt.Fprintf(b, ": %s", form.Line(x.About))
		}
		what := map[form.Kind]string{form.Choice: "one of", form.Several: "any of", form.YesNo: "true or false", form.Number: "a number", form.Integer: "a whole number"}[x.Kind]
		if what != "" {
			fmt.Fprintf(b, " [%s", what)
			for j, o := range x.Options {
				fmt.Fprintf(b, "%s %s", map[bool]string{true: ":", false: " |"}[j == 0], form.Line(o.Label))
			}
			b.WriteByte(']')
		}
	}
}

// answers reads the inputResponses of a modern call.
func answers(v raw) (map[string]sdk.Answer, error) {
	var m map[string]raw
	if err := json.Unmarshal(v, &m); err != nil {
		return nil, errors.New("not an object")
	}
	out := make(map[string]sdk.Answer, len(m))
	for id, v := range m {
		answer, err := ReadAnswer(v)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", wire.Clip(id), err)
		}
		out[id] = answer
	}
	return out, nil
}

// ReadAnswer reads the result of an elicitation, or of sampling or roots,
// which have no action: those are accepted as a whole.
func ReadAnswer(v json.RawMessage) (sdk.Answer, error) {
	var r struct {
		Action  *string `json:"action"`
		Content raw     `json:"content"`
		Role    raw     `json:"role"`
		Roots   raw     `json:"roots"`
	}
	if err := json.Unmarshal(v, &r); err != nil || !wire.IsObject(v) {
		return sdk.Answer{}, errors.New("not the result of a question")
	}
	switch {
	case r.Roots != nil || r.Action == nil && r.Role != nil:
		return sdk.Answer{Action: "accept", Content: v}, nil
	case r.Action == nil:
		return sdk.Answer{}, errors.New("neither an action nor a result")
	case *r.Action == "accept" && (wire.IsNull(r.Content) || wire.IsObject(r.Content)):
		if wire.IsNull(r.Content) {
			r.Content = nil
		}
		return sdk.Answer{Action: "accept", Content: r.Content}, nil
	case *r.Action == "decline" || *r.Action == "cancel":
		return sdk.Answer{Action: *r.Action}, nil
	}
	return sdk.Answer{}, errors.New("an action that is not accept, decline or cancel, or a content that is not an object")
}
