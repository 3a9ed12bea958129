package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/skillhost/skill/sdk"
)

// maxRounds bounds how often one call may ask its user.
const maxRounds = 8

// errGone says that the client can answer no more: its input has ended.
var errGone = errors.New("the client's input has ended")

// canAsk reports whether the client can be asked all of these.
func (p *peer) canAsk(questions map[string]sdk.Question) bool {
	for _, q := range questions {
		can := false
		switch q.Kind {
		case sdk.QuestionForm:
			can = p.client.Form
		case sdk.QuestionURL:
			can = p.client.URL
		case sdk.QuestionSampling:
			can = p.sampling
		case sdk.QuestionRoots:
			can = p.roots
		}
		if !can {
			return false
		}
	}
	return true
}

// appendQuestion appends the members "method" and "params" of q; id is for
// questions that the client refers to later.
func appendQuestion(dst []byte, q *sdk.Question, id string) []byte {
	l := list{b: dst, first: true}
	method := map[sdk.QuestionKind]string{sdk.QuestionSampling: "sampling/createMessage", sdk.QuestionRoots: "roots/list"}[q.Kind]
	l.text("method", orElse(method, "elicitation/create"))
	l.key("params")
	if q.Kind == sdk.QuestionSampling || q.Kind == sdk.QuestionRoots {
		return append(l.b, objectOr(q.Params, "{}")...)
	}
	in := list{b: append(l.b, '{'), first: true}
	in.text("mode", string(q.Kind))
	in.text("message", q.Message)
	if q.Kind == sdk.QuestionURL {
		in.text("url", q.URL)
		in.text("elicitationId", id)
	} else {
		in.raw("requestedSchema", objectOr(q.Schema, `{"type":"object","properties":{}}`))
	}
	return append(in.b, '}')
}

// objectOr returns v on one line if it is a JSON object, else the other.
func objectOr(v raw, other string) raw {
	if v = compact(v); v != nil {
		if v = raw(strings.TrimLeft(string(v), " \t")); isObject(v) {
			return v
		}
	}
	return raw(other)
}

// inputRequired answers a modern call whose tool asks; the client calls again.
func (c *call) inputRequired(r *sdk.Result) {
	out := c.begin()
	if out == nil {
		return
	}
	l := c.era.open(out.b, "input_required", nil)
	l.key("inputRequests")
	in := list{b: append(l.b, '{'), first: true}
	for _, id := range slices.Sorted(maps.Keys(r.Questions)) {
		q := r.Questions[id]
		in.comma()
		in.b = append(appendString(in.b, id), ":{"...)
		in.b = append(appendQuestion(in.b, &q, id), '}')
	}
	l.b = append(in.b, '}')
	l.optional("requestState", r.State)
	out.b = append(l.b, '}')
	c.end(out)
}

// needsUser tells a client that cannot ask what its user is to be asked.
func (c *call) needsUser(r *sdk.Result, tool string) {
	var b strings.Builder
	b.WriteString("needs_user: the tool needs an answer from the user, and this client cannot be asked for one")
	type question struct {
		sdk.Question
		ID string `json:"id"`
	}
	report := struct {
		NeedsUser bool       `json:"needs_user"`
		Questions []question `json:"questions"`
	}{NeedsUser: true}
	for _, id := range slices.Sorted(maps.Keys(r.Questions)) {
		q := r.Questions[id]
		q.Schema, q.Params = compact(q.Schema), compact(q.Params)
		report.Questions = append(report.Questions, question{q, id})
		fmt.Fprintf(&b, "\n%s: %s", id, q.Message)
		if q.URL != "" {
			fmt.Fprintf(&b, " (open %s)", q.URL)
		}
		if q.Schema != nil {
			fmt.Fprintf(&b, " (an object that fits %s)", q.Schema)
		}
	}
	b.WriteString("\nAsk the user in the conversation and call the tool again with the answer in its arguments if it takes one there;" +
		" or use a client that supports elicitation")
	answer := sdk.Text(b.String())
	answer.Failed = true
	data, err := json.Marshal(report)
	if err != nil {
		c.failed(err, tool)
		return
	}
	c.report(&answer, tool, data, "skill/needs_user")
	c.reply(&answer)
}

// asks puts questions to a legacy client over the wire.
type asks struct {
	f      *front
	prefix string // of the ids of the front's own requests
	gone   chan struct{}

	mu      sync.Mutex
	next    int
	waiting map[string]chan envelope
	closed  bool
}

func newAsks(f *front) *asks {
	return &asks{f: f, prefix: "skill-ask:" + rand.Text() + ":", gone: make(chan struct{}), waiting: map[string]chan envelope{}}
}

// shut ends all waiting: no answer can come any more.
func (a *asks) shut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed = true
		close(a.gone)
	}
}

// deliver hands an answer of the client to whoever asked; others are ignored.
func (a *asks) deliver(e *envelope) {
	id, _ := text(e.id)
	a.mu.Lock()
	ch := a.waiting[id]
	delete(a.waiting, id)
	a.mu.Unlock()
	if ch != nil {
		ch <- *e
	}
}

// ask puts all questions at once and waits for the answers.
func (a *asks) ask(c *call, questions map[string]sdk.Question) (map[string]sdk.Answer, error) {
	select {
	case <-a.gone:
		return nil, errGone
	default:
	}
	names := slices.Sorted(maps.Keys(questions))
	open := make(map[string]string, len(names)) // id on the wire, by name
	replies := make(map[string]chan envelope, len(names))
	for _, name := range names {
		q := questions[name]
		open[name], replies[name] = a.send(&q)
	}
	defer func() { a.withdraw(slices.Collect(maps.Values(open))) }()
	out := make(map[string]sdk.Answer, len(names))
	for _, name := range names {
		select {
		case e := <-replies[name]:
			delete(open, name)
			out[name] = a.read(&e, questions[name].Kind)
		case <-c.ctx.Done():
			return nil, &sdk.Error{Kind: sdk.Canceled, Op: "mcp.Call", What: "canceled while it waited for an answer", Err: context.Cause(c.ctx)}
		case <-a.gone:
			return nil, errGone
		}
	}
	return out, nil
}

// send puts one question and returns its id and where its answer will come.
func (a *asks) send(q *sdk.Question) (string, chan envelope) {
	a.mu.Lock()
	a.next++
	id := a.prefix + strconv.Itoa(a.next)
	reply := make(chan envelope, 1)
	a.waiting[id] = reply
	a.mu.Unlock()
	out := newBuffer()
	out.b = append(appendString(append(out.b, `{"jsonrpc":"2.0","id":`...), id), ',')
	out.b = append(appendQuestion(out.b, q, id), "}\n"...)
	a.f.w.send(out)
	return id, reply
}

// withdraw tells the client that these questions need no answer any more.
func (a *asks) withdraw(ids []string) {
	for _, id := range ids {
		a.mu.Lock()
		_, pending := a.waiting[id]
		delete(a.waiting, id)
		a.mu.Unlock()
		if pending {
			l := list{b: []byte(notification("notifications/cancelled")), first: true}
			l.text("requestId", id)
			a.f.notify(l)
		}
	}
}

// read turns the client's reply into an answer. An error is a cancellation:
// the client could not ask.
func (a *asks) read(e *envelope, kind sdk.QuestionKind) sdk.Answer {
	if e.result == nil {
		a.f.o.Logger.Warn("the client could not ask its user", "kind", kind, "err", clip(string(e.err)))
		return sdk.Answer{Action: "cancel"}
	}
	answer, err := readAnswer(e.result)
	if err != nil {
		a.f.o.Logger.Warn("the client answered a question with nonsense", "kind", kind, "err", err)
		return sdk.Answer{Action: "cancel"}
	}
	return answer
}

// answers reads the inputResponses of a modern call.
func answers(v raw) (map[string]sdk.Answer, error) {
	var m map[string]raw
	if err := json.Unmarshal(v, &m); err != nil {
		return nil, errors.New("not an object")
	}
	out := make(map[string]sdk.Answer, len(m))
	for id, v := range m {
		answer, err := readAnswer(v)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", clip(id), err)
		}
		out[id] = answer
	}
	return out, nil
}

// readAnswer reads the result of an elicitation, or of sampling or roots,
// which have no action: those are accepted as a whole.
func readAnswer(v raw) (sdk.Answer, error) {
	var r struct {
		Action  *string `json:"action"`
		Content raw     `json:"content"`
		Role    raw     `json:"role"`
		Roots   raw     `json:"roots"`
	}
	if err := json.Unmarshal(v, &r); err != nil || !isObject(v) {
		return sdk.Answer{}, errors.New("not the result of a question")
	}
	switch {
	case r.Roots != nil || r.Action == nil && r.Role != nil:
		return sdk.Answer{Action: "accept", Content: v}, nil
	case r.Action == nil:
		return sdk.Answer{}, errors.New("neither an action nor a result")
	case *r.Action == "accept" && (isNull(r.Content) || isObject(r.Content)):
		if isNull(r.Content) {
			r.Content = nil
		}
		return sdk.Answer{Action: "accept", Content: r.Content}, nil
	case *r.Action == "decline" || *r.Action == "cancel":
		return sdk.Answer{Action: *r.Action}, nil
	}
	return sdk.Answer{}, errors.New("an action that is not accept, decline or cancel, or a content that is not an object")
}
