package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
)

// An Asker has ways to the user of a call beside the call's client. Whichever
// way an answer comes first, that one counts.
type Asker interface {
	// Attached reports whether a form would be seen: somebody is there who is
	// shown questions of scope as they come, or the client can open an address.
	Attached(scope sdk.Scope, address bool) bool

	// Put opens the questions of a call, which lives as long as ctx and waits for
	// an answer until Leave.
	// Asked before by the same call, in the same round, they may have an answer.
	// It returns nil if there is no such way.
	Put(ctx context.Context, call *sdk.Call, round int, questions map[string]sdk.Question) Asked

	// Find returns what was left with that state, or nil.
	Find(ctx context.Context, scope sdk.Scope, state string) Asked
}

// Asked is what a call has asked.
type Asked interface {
	// Address is where a page shows it, or "".
	Address() string

	// Wait waits for an answer that comes beside the client, and reports whether
	// there is one. alone says that no client asks; then it does not wait if
	// nobody is there.
	Wait(ctx context.Context, alone bool) bool

	// Take makes mine the answer if it is the first. It returns the one that
	// counts, or nil.
	Take(mine map[string]sdk.Answer) map[string]sdk.Answer

	// Leave says that the call waits no more. If it may be made again, what was
	// asked stays open, and a state is what the client will come back with.
	Leave(again bool, state string)
}

// An inquiry is what one call asks its user, round by round.
type inquiry struct {
	*call
	p     *purpose
	sc    *sdk.Call             // as it is made next
	early map[string]sdk.Answer // of a client that answers before it is asked
	asked []Asked
	again bool // the call has come to no end, and may be made again
}

// begin looks at what the client brings. It reports whether the call is answered
// by that already.
func (q *inquiry) begin() (answered bool) {
	sc, asker := q.sc, q.room.o.Asker
	if sc.State == "" {
		q.early, sc.Answers = came(sc.Answers, "call"), nil
		return false
	}
	given := sc.Answers
	sc.Answers = came(forms(given), "mrtr")
	if asker == nil {
		return false
	}
	a := asker.Find(q.ctx, sc.Scope, sc.State)
	if a == nil {
		return false
	}
	q.asked = append(q.asked, a)
	refused, opened := paged(given)
	switch {
	case refused != nil:
		sc.Answers = a.Take(refused)
	case opened || len(given) == 0 && !q.peer.Client.Form:
		return q.page(a)
	case len(sc.Answers) > 0:
		sc.Answers = a.Take(sc.Answers)
	default:
		sc.Answers = a.Take(nil)
	}
	return false
}

// page waits for the answer of a client that has opened the answer page. If it
// takes long the client comes back with the same state.
func (q *inquiry) page(a Asked) (answered bool) {
	ctx, stop := context.WithTimeout(q.ctx, q.room.o.Poll)
	defer stop()
	q.outside(func() { a.Wait(ctx, false) })
	if q.ctx.Err() != nil {
		q.cancelled()
		return true
	}
	if q.sc.Answers = a.Take(nil); q.sc.Answers == nil && ctx.Err() != nil {
		q.later(&sdk.Result{State: q.sc.State}, a)
		return true
	}
	return false
}

// put puts the questions of r to the user, and reports whether the call is to be
// made with their answers. Otherwise it is answered.
func (q *inquiry) put(r *sdk.Result, round int) (next bool) {
	var a Asked
	if asker := q.room.o.Asker; asker != nil {
		if a = asker.Put(q.ctx, q.sc, round, r.Questions); a != nil {
			q.asked = append(q.asked, a)
		}
	}
	if answers := q.known(r, a); answers != nil && round < maxRounds {
		q.sc.Answers, q.sc.State = answers, r.State
		return true
	}
	can := q.peer.CanAsk(r.Questions)
	address := ""
	if a != nil && !can && q.peer.Client.URL {
		address = a.Address()
	}
	switch {
	case can && q.era.Modern:
		q.later(r, a)
		return false
	case address != "" && q.era.Modern:
		q.later(&sdk.Result{State: r.State, Questions: onPage(r.Questions, q.sc.Tool, address)}, a)
		return false
	case !can && a == nil:
		q.needsUser(r, q.p, q.sc, "")
		return false
	case round >= maxRounds:
		q.p.fail(q.call, &sdk.Error{Kind: sdk.Limit, Op: "mcp.Call",
			What: fmt.Sprintf("the tool asked its user more than %d times", maxRounds)}, q.sc)
		return false
	}
	var err error
	var answers map[string]sdk.Answer
	q.outside(func() { // a human may think for long: hold nothing meanwhile
		switch {
		case can:
			answers, err = q.client(a, r.Questions)
		case address != "":
			answers, err = q.client(a, onPage(r.Questions, q.sc.Tool, address))
		default:
			a.Wait(q.ctx, true)
			answers = a.Take(nil)
		}
	})
	return q.heard(r, a, answers, err)
}

// heard takes what came of a question that was put while the call waited.
func (q *inquiry) heard(r *sdk.Result, a Asked, answers map[string]sdk.Answer, err error) (next bool) {
	switch {
	case q.ctx.Err() != nil:
		q.cancelled()
	case err != nil && err != errGone:
		q.p.fail(q.call, err, q.sc)
	case answers == nil:
		page := ""
		if a != nil && err == nil {
			page = a.Address()
		}
		q.again = true
		q.end() // before the client knows: it may make the call again at once
		q.needsUser(r, q.p, q.sc, page)
	default:
		q.sc.Answers, q.sc.State = answers, r.State
		return true
	}
	return false
}

// cancelled answers a call that was cancelled while it waited. What a client
// asks itself is not asked any more. One that cannot may have lost its patience
// only, and make the call again.
func (q *inquiry) cancelled() {
	q.again = !q.peer.Client.Form
	q.p.fail(q.call, &sdk.Error{Kind: sdk.Canceled, Op: "mcp.Call", What: "canceled while it waited for an answer"}, q.sc)
}

// known returns answers that were there before r asked: the client's, or what
// the user answered beside it to an earlier call.
func (q *inquiry) known(r *sdk.Result, a Asked) map[string]sdk.Answer {
	answers := foreseen(r.Questions, q.early)
	if answers != nil {
		q.early = nil
	}
	if a == nil {
		return answers
	}
	return a.Take(answers)
}

// later answers with questions that the client brings the answers to.
func (q *inquiry) later(r *sdk.Result, a Asked) {
	if a != nil {
		q.asked = slices.DeleteFunc(q.asked, func(x Asked) bool { return x == a })
		a.Leave(true, r.State)
	}
	q.inputRequired(r)
}

// end lets go of what was asked.
func (q *inquiry) end() {
	for _, a := range q.asked {
		a.Leave(q.again, "")
	}
	q.asked = nil
}

// client asks the client, beside all others: with the questions themselves, or
// to open the page that has them.
func (q *inquiry) client(a Asked, questions map[string]sdk.Question) (map[string]sdk.Answer, error) {
	if a == nil {
		return q.asks.ask(q.ctx, q.out, questions)
	}
	ctx, stop := context.WithCancel(q.ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if a.Wait(ctx, false) {
			stop()
		}
	}()
	mine, err := q.asks.ask(ctx, q.out, questions)
	refused, opened := paged(mine)
	switch {
	case opened: // what he says there is the answer
		<-heard
		mine = nil
	case refused != nil:
		mine = refused
	}
	stop()
	<-heard
	if answers := a.Take(mine); answers != nil {
		return answers, nil
	}
	return nil, err
}

// pagePrefix begins the name of the one question that stands for others, which
// the page at its address asks. Their names follow.
const pagePrefix = "page:"

// onPage is the question to open the page where the others are asked.
func onPage(questions map[string]sdk.Question, tool, address string) map[string]sdk.Question {
	ids := slices.Sorted(maps.Keys(questions))
	name, _ := json.Marshal(ids) // strings: it cannot fail
	said := []string{fmt.Sprintf("%s needs an answer from you, on a page of this machine:", tool)}
	for _, id := range ids {
		said = append(said, questions[id].Message)
	}
	return map[string]sdk.Question{pagePrefix + string(name): {Kind: sdk.QuestionURL, Message: strings.Join(said, "\n"), URL: address}}
}

// paged reads the answer to onPage: opened says that the client's user went to
// the page, and refused is what he said if he did not want to.
func paged(given map[string]sdk.Answer) (refused map[string]sdk.Answer, opened bool) {
	for name, a := range given {
		list, ok := strings.CutPrefix(name, pagePrefix)
		var ids []string
		if !ok || json.Unmarshal([]byte(list), &ids) != nil {
			continue
		}
		if a.Action == "accept" {
			return nil, true
		}
		refused = map[string]sdk.Answer{}
		for _, id := range ids {
			refused[id] = sdk.Answer{Action: a.Action, Channel: "url"}
		}
		return refused, false
	}
	return nil, false
}

// forms are the answers that are none to onPage.
func forms(given map[string]sdk.Answer) map[string]sdk.Answer {
	out := map[string]sdk.Answer{}
	for name, a := range given {
		if !strings.HasPrefix(name, pagePrefix) {
			out[name] = a
		}
	}
	return out
}

// came notes on answers which way they came. Nobody else can have: a client's
// own word for it is not read.
func came(answers map[string]sdk.Answer, channel string) map[string]sdk.Answer {
	for id, a := range answers {
		a.Channel = channel
		answers[id] = a
	}
	return answers
}

// pollTime is the default of Options.Poll: clients wait for a minute.
const pollTime = 45 * time.Second
