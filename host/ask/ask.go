// Package ask keeps the questions of calls that wait for their user, so that
// ways beside the call's client can show and answer them: the answer page,
// "skill answer" in another terminal, the host's own terminal. The first answer
// wins, whichever way it comes. What it keeps is bounded, and it keeps nothing
// for long.
//
// It does not know how a question is shown, how an answer travels, what a tool
// makes of it, or what anybody is allowed: an answer grants nothing.
package ask

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/ask/form"
	"github.com/skillhost/skill/sdk"
)

// The ways an answer can come, as sdk.Answer.Channel has them.
const (
	MRTR        = "mrtr"        // from a client, with the call made again
	Elicitation = "elicitation" // from a client, asked in mid-call
	URL         = "url"         // from a client that was given an address
	Page        = "page"        // from the answer page
	Terminal    = "terminal"    // from "skill answer"
	TTY         = "tty"         // from the host's own terminal
	Call        = "call"        // with the call, before anybody was asked
)

// Bounds of what is kept.
const (
	maxOpen   = 64        // sets of questions
	maxScope  = 16        // of them of one scope
	maxSize   = 128 << 10 // bytes of one set
	maxBytes  = 2 << 20   // of all
	maxAnswer = 64 << 10  // bytes of what is filled in
)

// A Display shows questions to whoever sits at the host's own terminal.
type Display interface {
	// Owned reports whether there is a terminal that is the host's to draw on.
	Owned() bool

	// Ask shows a view and calls give with what was filled in, until give takes
	// it or ctx is done.
	Ask(ctx context.Context, v View, give func(Reply) error) error
}

// Options set up a Room. The zero value of each field means its default.
type Options struct {
	Keep    time.Duration                               // how long a question stays open; 10 min
	Local   func(caller string) bool                    // whether a caller is the user of this machine; nil: nobody is
	Name    func(c *sdk.Call) (tool, skill string)      // for people; nil: as the call has it
	Record  func(v View, channel string, r Reply) error // before an answer counts; nil: nobody does
	Display Display                                     // nil: there is none
	Log     func(error)                                 // what the operator must know; nil: nobody
}

// A Room keeps the open questions of one host.
type Room struct {
	o    Options
	key  [32]byte // of the tokens
	turn chan struct{}

	mu       sync.Mutex
	asked    map[string]*entry   // by id
	same     map[[32]byte]*entry // by who asks what
	states   map[[32]byte]*entry // by the state that a client carries
	changed  chan struct{}       // closed at the next change
	page     func() (string, error)
	watchers int
	bytes    int

	owned struct {
		sync.Mutex
		at time.Time
		is bool
	}
}

// New returns a Room.
func New(o Options) *Room {
	o.Keep = cmp.Or(o.Keep, 10*time.Minute)
	if o.Local == nil {
		o.Local = func(string) bool { return false }
	}
	if o.Name == nil {
		o.Name = func(c *sdk.Call) (string, string) { return c.Tool, "" }
	}
	if o.Record == nil {
		o.Record = func(View, string, Reply) error { return nil }
	}
	if o.Log == nil {
		o.Log = func(error) {}
	}
	r := &Room{o: o, turn: make(chan struct{}, 1), asked: map[string]*entry{}, same: map[[32]byte]*entry{},
		states: map[[32]byte]*entry{}, changed: make(chan struct{})}
	rand.Read(r.key[:])
	return r
}

// Offer makes f, which may start it, tell where the answer page is: an address
// that ends in a slash.
func (r *Room) Offer(f func() (string, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.page = f
}

// A View is a set of questions as people see it. Its texts are safe to show.
type View struct {
	ID        string    `json:"id"` // short, and not secret
	Tool      string    `json:"tool"`
	Skill     string    `json:"skill,omitempty"`
	Client    string    `json:"client,omitempty"`
	Workspace string    `json:"workspace,omitempty"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	Parts     []Part    `json:"parts"`

	call sdk.Call // without what it was called with
}

// Asker is the call that asks, without its arguments.
func (v *View) Asker() sdk.Call { return v.call }

// A Part is one question.
type Part struct {
	ID      string `json:"id"`
	Message string `json:"message,omitempty"`
	URL     string `json:"url,omitempty"` // to open; the answer is whether it was
	form.Form
}

// A Reply is what somebody answered to a View: to all of it at once.
type Reply struct {
	Action string                         `json:"action"`           // "accept", "decline" or "cancel"
	Filled map[string]map[string][]string `json:"filled,omitempty"` // by part and field, as form.Form.Read takes it
}

// viewOf makes a view of questions; not all can be shown.
func viewOf(questions map[string]sdk.Question) (parts []Part, err error) {
	for _, id := range slices.Sorted(maps.Keys(questions)) {
		q := questions[id]
		p := Part{ID: id, Message: form.Plain(q.Message)}
		switch q.Kind {
		case sdk.QuestionForm:
			if p.Form, err = form.Parse(q.Schema); err != nil {
				return nil, err
			}
		case sdk.QuestionURL:
			p.URL = q.URL
		default:
			return nil, fmt.Errorf("a question of kind %q is not for people", q.Kind)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// Put opens the questions that a call, which lives as long as ctx, asks in a
// round, and waits for until Leave.
// If the same call has asked them before in that round and nobody waits for them,
// they are those, with their answer if they have one. It returns nil if there is
// no way to the call's user but its client.
func (r *Room) Put(ctx context.Context, c *sdk.Call, round int, questions map[string]sdk.Question) *Asked {
	if !r.o.Local(c.Scope.Caller) {
		return nil
	}
	parts, err := viewOf(questions)
	if err != nil {
		return nil
	}
	text, err := json.Marshal(struct {
		Scope     sdk.Scope
		Kind      sdk.CallKind
		Tool      string
		Args      any
		Round     int
		Questions map[string]sdk.Question
	}{c.Scope, c.Kind, c.Tool, plainArgs(c.Args), round, questions})
	if err != nil || len(text) > maxSize+len(c.Args) {
		return nil
	}
	a := &entry{room: r, same: sha256.Sum256(text), size: max(0, len(text)-len(c.Args)), done: make(chan struct{})}
	tool, skill := r.o.Name(c)
	now := time.Now()
	a.view = View{Tool: form.Line(tool), Skill: form.Line(skill), Client: form.Line(c.Client.Name), Workspace: form.Line(c.Scope.Workspace),
		Since: now, Until: now.Add(r.o.Keep), Parts: parts, call: sdk.Call{Kind: c.Kind, Tool: c.Tool, Scope: c.Scope, Client: c.Client}}
	return r.admit(ctx, a)
}

// plainArgs are arguments however they were spaced and ordered. What was said to
// one call is said to no other: to remove one file is not to remove another.
func plainArgs(args json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(args)
	}
	return v
}

// admit makes a known, or returns the one that stands for it; nil if there are
// too many.
func (r *Room) admit(ctx context.Context, a *entry) *Asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was := r.same[a.same]; was != nil {
		if held := was.hold(ctx); held != nil {
			return held
		}
	}
	mine := 0
	for _, x := range r.asked {
		if x.view.call.Scope == a.view.call.Scope {
			mine++
		}
	}
	if len(r.asked) >= maxOpen || mine >= maxScope || r.bytes+a.size > maxBytes {
		r.o.Log(&sdk.Error{Kind: sdk.Limit, Op: "ask", What: fmt.Sprintf("too many questions are open to show another one of tool %q", a.view.Tool)})
		return nil
	}
	for a.view.ID == "" || r.asked[a.view.ID] != nil {
		a.view.ID = strings.ToLower(rand.Text()[:6])
	}
	r.asked[a.view.ID], r.same[a.same] = a, a
	r.bytes += a.size
	a.timer = time.AfterFunc(r.o.Keep, a.expire)
	r.tell()
	return a.hold(ctx)
}

// tell wakes those who wait for a change. r is locked.
func (r *Room) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// drop forgets a.
func (r *Room) drop(a *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked[a.view.ID] != a {
		return
	}
	delete(r.asked, a.view.ID)
	if r.same[a.same] == a {
		delete(r.same, a.same)
	}
	if r.states[a.state] == a {
		delete(r.states, a.state)
	}
	r.bytes -= a.size
	r.tell()
}

// Find returns the questions that the client of scope answers with that state,
// which it then waits for; nil if they are not known.
func (r *Room) Find(ctx context.Context, scope sdk.Scope, state string) *Asked {
	r.mu.Lock()
	a := r.states[sha256.Sum256([]byte(state))]
	r.mu.Unlock()
	if a == nil || a.view.call.Scope != scope {
		return nil
	}
	return a.hold(ctx)
}

// Open lists what can be answered, the oldest first, and returns a channel that
// is closed when there may be others.
func (r *Room) Open() (open []View, changed <-chan struct{}) {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.asked))
	changed = r.changed
	r.mu.Unlock()
	for _, a := range all {
		if v, ok := a.open(); ok {
			open = append(open, v)
		}
	}
	slices.SortFunc(open, func(a, b View) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID)) })
	return open, changed
}

// Attach says that somebody watches: questions are shown to him as they come.
// He does until detach, which is to be called once.
func (r *Room) Attach() (detach func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.watchers--
	}
}

// Shows reports whether there is an answer page for who asks in scope.
func (r *Room) Shows(scope sdk.Scope) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.page != nil && r.o.Local(scope.Caller)
}

func (r *Room) watched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watchers > 0
}

// ownedFor is how long it is taken for granted whose the terminal is. At every
// question it is looked at anew.
const ownedFor = time.Second

// Attached reports whether somebody is there who would see a question of scope
// at once.
func (r *Room) Attached(scope sdk.Scope) bool {
	if !r.o.Local(scope.Caller) {
		return false
	}
	if watched := r.watched(); watched || r.o.Display == nil {
		return watched
	}
	r.owned.Lock()
	defer r.owned.Unlock()
	if now := time.Now(); now.Sub(r.owned.at) > ownedFor {
		r.owned.at, r.owned.is = now, r.o.Display.Owned()
	}
	return r.owned.is
}
