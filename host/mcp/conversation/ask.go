package conversation

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/skillhost/skill/host/ask/form"
	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// maxRounds bounds how often one call may ask its user.
const maxRounds = 8

// errGone says that the client can answer no more: its input has ended.
var errGone = errors.New("the client's input has ended")

// inputRequired answers a modern call whose tool asks; the client calls again.
func (c *call) inputRequired(r *sdk.Result) {
	if out := c.begin(); out != nil {
		out.B = c.era.InputRequired(out.B, r)
		c.end(out, nil)
	}
}

// needsUser tells a client that cannot ask what its user is to be asked; page is
// where the user can answer, or "".
func (c *call) needsUser(r *sdk.Result, p *purpose, sc *sdk.Call, page string) {
	// What only a user can answer, a model can ask in the conversation. For all
	// else, and where there is no result to say it in, it is an error.
	if flt, onlyUser := message.MissingAbilities(c.peer, r.Questions); flt != nil && (p != &tool || c.era.Modern && !onlyUser) {
		c.fail(flt)
		return
	}
	answer, report, err := message.NeedsUser(r.Questions, page)
	if err != nil {
		c.failed(err, sc.Tool)
		return
	}
	c.room.report(&answer, sc.Tool, report, "skill/needs_user")
	c.reply(&answer)
}

// foreseen returns those of the answers that are to the questions, or nil unless
// all of these are answered.
func foreseen(questions map[string]sdk.Question, answers map[string]sdk.Answer) map[string]sdk.Answer {
	out := map[string]sdk.Answer{}
	for id := range questions {
		a, ok := answers[id]
		if !ok {
			return nil
		}
		out[id] = a
	}
	return out
}

// asks puts questions to a legacy client over the wire.
type asks struct {
	t *Conversation

	mu      sync.Mutex
	prefix  string // of the ids of the host's own requests
	next    int
	waiting map[string]chan wire.Envelope
	gone    chan struct{} // made when first needed
	closed  bool
}

// shut ends all waiting: no answer can come any more.
func (a *asks) shut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed && a.gone != nil {
		close(a.gone)
	}
	a.closed = true
}

// end returns the channel that is closed when no answer can come any more.
func (a *asks) end() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone == nil {
		a.gone, a.waiting = make(chan struct{}), map[string]chan wire.Envelope{}
		a.prefix = "skill-ask:" + rand.Text() + ":"
		if a.closed {
			close(a.gone)
		}
	}
	return a.gone
}

// deliver hands an answer of the client to whoever asked; others are ignored.
func (a *asks) deliver(e *wire.Envelope) {
	id, _ := wire.Text(e.ID)
	a.mu.Lock()
	ch := a.waiting[id]
	delete(a.waiting, id)
	a.mu.Unlock()
	if ch != nil {
		ch <- *e
	}
}

// ask puts all questions at once and waits for the answers.
func (a *asks) ask(ctx context.Context, to wire.Outlet, questions map[string]sdk.Question) (map[string]sdk.Answer, error) {
	gone := a.end()
	select {
	case <-gone:
		return nil, errGone
	default:
	}
	names := slices.Sorted(maps.Keys(questions))
	open := make(map[string]string, len(names)) // id on the wire, by name
	replies := make(map[string]chan wire.Envelope, len(names))
	older := map[string]form.Older{}
	for _, name := range names {
		q := questions[name]
		if f, err := form.Parse(q.Schema); err == nil && q.Kind == sdk.QuestionForm && a.t.isOld() {
			older[name] = f.Older()
			q.Schema = older[name].Schema
		}
		open[name], replies[name] = a.send(to, &q)
	}
	defer func() { a.withdraw(to, slices.Collect(maps.Values(open))) }()
	out := make(map[string]sdk.Answer, len(names))
	for _, name := range names {
		select {
		case e := <-replies[name]:
			delete(open, name)
			answer := a.read(&e, questions[name].Kind)
			answer.Content = older[name].Restore(answer.Content)
			out[name] = answer
		case <-ctx.Done():
			return nil, &sdk.Error{Kind: sdk.Canceled, Op: "mcp.Call", What: "canceled while it waited for an answer", Err: context.Cause(ctx)}
		case <-gone:
			return nil, errGone
		}
	}
	return out, nil
}

// lastOld is the last revision whose forms have no lists and no oneOf.
const lastOld = "2025-06-18"

func (t *Conversation) isOld() bool {
	v := t.version.Load()
	return v != nil && *v <= lastOld
}

// send puts one question and returns its id and where its answer will come.
func (a *asks) send(to wire.Outlet, q *sdk.Question) (string, chan wire.Envelope) {
	a.mu.Lock()
	a.next++
	id := a.prefix + strconv.Itoa(a.next)
	reply := make(chan wire.Envelope, 1)
	a.waiting[id] = reply
	a.mu.Unlock()
	out := wire.NewBuffer()
	out.B = append(wire.AppendString(append(out.B, `{"jsonrpc":"2.0","id":`...), id), ',')
	out.B = append(message.AppendQuestion(out.B, q, id), '}')
	to.Send(out)
	return id, reply
}

// withdraw tells the client that these questions need no answer any more.
func (a *asks) withdraw(to wire.Outlet, ids []string) {
	for _, id := range ids {
		a.mu.Lock()
		_, pending := a.waiting[id]
		delete(a.waiting, id)
		a.mu.Unlock()
		if pending {
			notify(to, message.Cancelled(id))
		}
	}
}

// read turns the client's reply into an answer. An error is a cancellation:
// the client could not ask.
func (a *asks) read(e *wire.Envelope, kind sdk.QuestionKind) sdk.Answer {
	channel := "elicitation"
	if kind == sdk.QuestionURL {
		channel = "url"
	}
	cancel := sdk.Answer{Action: "cancel", Channel: channel}
	if e.Result == nil {
		a.t.room.o.Logger.Warn("the client could not ask its user", "kind", kind, "err", wire.Clip(string(e.Err)))
		return cancel
	}
	answer, err := message.ReadAnswer(e.Result)
	if err != nil {
		a.t.room.o.Logger.Warn("the client answered a question with nonsense", "kind", kind, "err", err)
		return cancel
	}
	answer.Channel = channel
	return answer
}
