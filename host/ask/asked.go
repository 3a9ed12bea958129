package ask

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/ask/form"
	"github.com/skillhost/skill/sdk"
)

// Asked is a set of questions as one call waits for it.
type Asked struct {
	*entry
	ctx context.Context // of the call
}

// An entry is a set of questions that a call has asked. One call at a time waits
// for it.
type entry struct {
	room  *Room
	same  [32]byte
	state [32]byte // guarded by room.mu
	size  int
	timer *time.Timer
	done  chan struct{} // closed when it is not open any more

	mu      sync.Mutex
	view    View // but for Until, and ID before it is admitted, never changed
	stage   stage
	holder  *Asked // nil: no call waits
	used    bool   // the holder has the answer
	answers map[string]sdk.Answer
}

// A stage is how far a set of questions is.
type stage int

const (
	stageOpen     stage = iota
	stageAnswered       // beside the client; the call may not know yet
	stageOver           // by the client, or by time
)

// hold makes a call wait for a; nil if another one does, or none can. A call that
// was cancelled before it had an answer waits no more.
func (a *entry) hold(ctx context.Context) *Asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stage == stageOver || a.holder != nil && (a.used || a.holder.ctx.Err() == nil) {
		return nil
	}
	a.holder = &Asked{a, ctx}
	return a.holder
}

// open returns the view if a can be answered.
func (a *entry) open() (View, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view, a.stage == stageOpen
}

// carry notes that the client answers with that state, some time.
func (a *entry) carry(state string) {
	r := a.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.states[a.state] == a {
		delete(r.states, a.state)
	}
	a.state = sha256.Sum256([]byte(state))
	if r.asked[a.view.ID] == a {
		r.states[a.state] = a
	}
}

// Wait waits until somebody beside the client has answered, and reports whether
// that is so. alone says that no client asks the user meanwhile: then the host's
// own terminal is a way, and if nobody is there Wait returns at once.
func (a *Asked) Wait(ctx context.Context, alone bool) bool {
	var ended chan struct{} // nil: never
	if d := a.room.o.Display; alone && d != nil && d.Owned() {
		ctx, stop := context.WithCancel(ctx)
		shown := make(chan struct{})
		go func() { defer close(shown); a.show(ctx, d) }()
		defer func() { stop(); <-shown }()
		ended = shown
	} else if alone && !a.room.watched() {
		return a.has()
	}
	for {
		select {
		case <-a.done:
			return a.has()
		case <-ctx.Done():
			return a.has()
		case <-ended: // the terminal is gone
			if ended = nil; !a.room.watched() {
				return a.has()
			}
		}
	}
}

func (a *entry) has() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stage == stageAnswered
}

// show asks at the host's own terminal, which shows one question at a time.
func (a *entry) show(ctx context.Context, d Display) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-a.done:
			stop()
		case <-ctx.Done():
		}
	}()
	select {
	case a.room.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-a.room.turn }()
	v, ok := a.open()
	if !ok {
		return
	}
	if err := d.Ask(ctx, v, func(r Reply) error { return a.room.Answer(v.ID, TTY, r) }); err != nil && ctx.Err() == nil {
		a.room.o.Log(fmt.Errorf("ask: the terminal: %w", err))
	}
}

// Take ends the question for the client: with its own answers, if it is the
// first, else with those that came another way. Without its own, it takes those
// that there are. It returns nil if there are none.
func (a *Asked) Take(mine map[string]sdk.Answer) map[string]sdk.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.holder != a: // the call was cancelled, and made again
		return nil
	case a.stage == stageAnswered:
		a.used = true
		return a.answers
	case a.stage == stageOpen && mine != nil:
		a.end(stageOver)
	}
	return mine
}

// end makes a one that cannot be answered any more. a is locked.
func (a *entry) end(s stage) {
	a.stage = s
	close(a.done)
}

// Leave says that the call waits no more. If again is set, it may be made again:
// what is open stays open, and an answer that it took is there to be taken; with
// a state, Find knows it by that. Otherwise all is forgotten.
func (a *Asked) Leave(again bool, state string) {
	if again && state != "" {
		a.carry(state)
	}
	a.mu.Lock()
	if a.holder != a {
		a.mu.Unlock()
		return
	}
	a.holder, a.used = nil, false
	gone := a.stage == stageOver || !again
	if gone && a.stage == stageOpen {
		a.end(stageOver)
	}
	if gone {
		a.stage = stageOver
	}
	a.mu.Unlock()
	if gone {
		a.timer.Stop()
		a.room.drop(a.entry)
	}
}

// expire ends what nobody has answered in time, and forgets an answer that
// nobody has asked for.
func (a *entry) expire() {
	a.mu.Lock()
	switch {
	case a.stage == stageAnswered && time.Now().Before(a.view.Until): // in the last moment
		a.mu.Unlock()
		return
	case a.stage == stageOpen:
		a.end(stageOver)
	}
	a.stage = stageOver
	a.mu.Unlock()
	a.room.drop(a)
}

// Address is where the answer page shows the question, or "" if there is none.
func (a *Asked) Address() string {
	r := a.room
	r.mu.Lock()
	page := r.page
	r.mu.Unlock()
	if page == nil {
		return ""
	}
	base, err := page()
	if err != nil {
		r.o.Log(fmt.Errorf("ask: the answer page: %w", err))
		return ""
	}
	return base + r.token(a.view.ID)
}

// token proves that its bearer was told of the question: it is derived, so that
// none is kept, and good until the question is answered.
func (r *Room) token(id string) string {
	mac := hmac.New(sha256.New, r.key[:])
	mac.Write([]byte(id))
	return id + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil)[:20]))
}

// ErrOver is the error of an answer to a question that is not open any more.
var ErrOver = &sdk.Error{Kind: sdk.NotFound, Op: "ask", What: "this question is not open any more", Hint: "it was answered, or its time was over"}

// ByToken returns what a token gives access to. Kind NotFound if that is
// nothing any more, or never was.
func (r *Room) ByToken(token string) (View, error) {
	id, _, _ := strings.Cut(token, "-")
	if !hmac.Equal([]byte(r.token(id)), []byte(token)) {
		return View{}, ErrOver
	}
	a := r.byID(id)
	if a == nil {
		return View{}, ErrOver
	}
	v, ok := a.open()
	if !ok {
		return View{}, ErrOver
	}
	return v, nil
}

func (r *Room) byID(id string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[id]
}

// Faults are what is wrong with what was filled in, by part.
type Faults map[string][]form.Fault

func (f Faults) Error() string {
	var all []string
	for id, list := range f {
		for _, x := range list {
			all = append(all, fmt.Sprintf("%s.%s: %s", id, x.Field, x.What))
		}
	}
	return strings.Join(all, "; ")
}

// Answer answers the question of that id, by one of the ways beside the client.
// The error is ErrOver if somebody was faster, Faults if what was filled in does
// not fit, and any other if the answer could not be recorded: then it does not
// count.
func (r *Room) Answer(id, channel string, reply Reply) error {
	a := r.byID(id)
	if a == nil {
		return ErrOver
	}
	answers, err := a.view.read(channel, &reply)
	if err != nil {
		return err
	}
	if err := a.give(channel, reply, answers); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell()
	return nil
}

// give makes answers those of a, unless somebody was faster.
func (a *entry) give(channel string, reply Reply, answers map[string]sdk.Answer) error {
	r := a.room
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stage != stageOpen {
		return ErrOver
	}
	if err := r.o.Record(a.view, channel, reply); err != nil {
		return err
	}
	for id, x := range answers {
		x.Took = time.Since(a.view.Since).Milliseconds()
		answers[id] = x
	}
	a.answers = answers
	a.view.Until = time.Now().Add(r.o.Keep) // for the call that may come for it
	a.timer.Reset(r.o.Keep)
	a.end(stageAnswered)
	return nil
}

// read makes answers of a reply.
func (v *View) read(channel string, reply *Reply) (map[string]sdk.Answer, error) {
	if b, err := json.Marshal(reply); err != nil || len(b) > maxAnswer {
		return nil, &sdk.Error{Kind: sdk.Limit, Op: "ask", What: fmt.Sprintf("the answer is over %d bytes", maxAnswer)}
	}
	answers := map[string]sdk.Answer{}
	faults := Faults{}
	for _, p := range v.Parts {
		a := sdk.Answer{Action: reply.Action, Channel: channel}
		switch {
		case reply.Action == "decline" || reply.Action == "cancel":
		case reply.Action != "accept":
			return nil, &sdk.Error{Kind: sdk.Invalid, Op: "ask", What: fmt.Sprintf("action %.20q", reply.Action), Hint: "want accept, decline or cancel"}
		case p.URL == "":
			content, wrong := p.Read(reply.Filled[p.ID])
			if wrong != nil {
				faults[p.ID] = wrong
			}
			a.Content = content
		}
		answers[p.ID] = a
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return answers, nil
}
