package conversation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// InboxURI is the resource that clients subscribe to who want to be told when
// there is something in their session's Inbox.
const InboxURI = "callback://inbox"

// An Inbox is what has come for sessions while nobody asked, such as callbacks
// that have fired. It goes to the client with the answer to its next tools/call,
// and who listens is told when it comes.
type Inbox interface {
	// Waiting reports whether there may be anything for scope, in no time.
	Waiting(scope sdk.Scope) bool

	// Begin notes that a tool runs for scope until done: nobody is told anything
	// meanwhile. It is asked only if there may be anything.
	Begin(scope sdk.Scope) (done func())

	// Take returns what goes with an answer to scope, and how much was lost.
	// written, nil if there is nothing, is told what became of the answer.
	Take(ctx context.Context, scope sdk.Scope) (came []Arrival, lost int, written func(ok bool))

	// Join lets l be told what comes for scope, until leave. over says that the
	// session has ended.
	Join(scope sdk.Scope, l *Listener) (leave func(over bool))
}

// An Arrival is a callback that has fired.
type Arrival struct {
	Callback int
	Skill    string // that has set it
	Message  string
	Fire     int // the number of the last fire
	Count    int // fires that this stands for
	Missed   int // intervals that went by beside them
	Last     time.Time
	Told     bool // the client was told of it
}

// A Listener is a client that can be told of something without having asked.
type Listener struct {
	Wakes bool        // its model may be woken
	Hears func() bool // it wants to be told at present, also if it does not wake
	Busy  func() bool // a tool runs for it
	Tell  func([]Arrival)
}

// mailbox is a Conversation's end of the Inbox.
type mailbox struct {
	mu     sync.Mutex
	leave  func(over bool)
	closed bool
}

// attend lets a client that introduced itself for good be told of what comes for
// its session, which ends with the Conversation.
func (t *Conversation) attend() {
	in := t.room.o.Inbox
	m := &t.mailbox
	m.mu.Lock()
	defer m.mu.Unlock()
	if in == nil || m.leave != nil || m.closed {
		return
	}
	wakes := t.legacy.Load().Channel
	m.leave = in.Join(t.scope, &Listener{Wakes: wakes, Hears: func() bool { return t.ears.subscribed(InboxURI) }, Busy: t.busy, Tell: func(came []Arrival) {
		for i := 0; wakes && i < len(came); i++ {
			notify(t.out, came[i].event())
		}
		if t.ears.subscribed(InboxURI) {
			notify(t.out, message.Updated(InboxURI, nil))
		}
	}})
}

func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.leave != nil {
		m.leave(true)
		m.leave = nil
	}
}

func (t *Conversation) busy() bool { return t.calls.count("tools/call") > 0 }

// listenToInbox tells a modern client that listens when something comes for its
// session.
func (c *call) listenToInbox(uris map[string]struct{}, say func([]wire.List)) (leave func()) {
	in := c.room.o.Inbox
	if _, ok := uris[InboxURI]; in == nil || !ok {
		return func() {}
	}
	left := in.Join(c.scope, &Listener{Hears: func() bool { return true }, Busy: c.busy, Tell: func([]Arrival) {
		say([]wire.List{message.Updated(InboxURI, c.msg.ID)})
	}})
	return func() { left(false) }
}

// useTool answers a tools/call, and notes meanwhile that a tool runs if that can
// matter to anybody. Whether it can may change while it does.
func (c *call) useTool() {
	in := c.room.o.Inbox
	var done func()
	if in != nil && in.Waiting(c.scope) {
		done = in.Begin(c.scope)
	}
	c.work(&tool)
	if done == nil && in != nil && in.Waiting(c.scope) {
		done = in.Begin(c.scope)
	}
	if done != nil {
		done()
	}
}

// carry puts what has come for the session into the answer to a tools/call,
// behind what the tool says. The rest of the time it takes none.
func (c *call) carry(out *wire.Buffer) {
	if in := c.room.o.Inbox; in != nil && in.Waiting(c.scope) && c.method == "tools/call" {
		if came, lost, written := in.Take(c.ctx, c.scope); written != nil {
			c.era.Also, out.Written = []sdk.Content{block(came, lost)}, written
		}
	}
}

// block tells a client's model what has come.
func block(came []Arrival, lost int) sdk.Content {
	var b strings.Builder
	fmt.Fprintf(&b, "[%d %s fired]", len(came), map[bool]string{true: "callback has", false: "callbacks have"}[len(came) == 1])
	for i := range came {
		a := &came[i]
		fmt.Fprintf(&b, "\nCallback %d, %s, at %s", a.Callback, a.fires(), a.Last.UTC().Format(time.RFC3339))
		if a.Told {
			b.WriteString(" (announced before)")
		}
		fmt.Fprintf(&b, ": %s", strings.ReplaceAll(a.Message, "\n", "\n  "))
	}
	if lost > 0 {
		fmt.Fprintf(&b, "\n(%d older fires were dropped: nobody had fetched them)", lost)
	}
	return sdk.Content{Type: sdk.TypeText, Text: b.String(), Audience: []string{"assistant"}}
}

// builtinSetter is the skill whose callbacks are the model's own words.
const builtinSetter = "set-callback"

// fires says which fires a stands for, and whose they are.
func (a *Arrival) fires() string {
	s := "fire " + strconv.Itoa(a.Fire)
	if a.Count > 1 {
		s = fmt.Sprintf("fires %d to %d", a.Fire-a.Count+1, a.Fire)
	}
	if a.Missed > 0 {
		s += fmt.Sprintf(" (%d more were missed)", a.Missed)
	}
	if a.Skill != builtinSetter {
		s += fmt.Sprintf(", set by the skill %q", a.Skill)
	}
	return s
}

// event is a as an event of a channel.
func (a *Arrival) event() wire.List {
	meta := [][2]string{{"callback_id", strconv.Itoa(a.Callback)}, {"fire", strconv.Itoa(a.Fire)}}
	if a.Count > 1 {
		meta = append(meta, [2]string{"fires", strconv.Itoa(a.Count)})
	}
	if a.Missed > 0 {
		meta = append(meta, [2]string{"missed", strconv.Itoa(a.Missed)})
	}
	if a.Skill != builtinSetter {
		meta = append(meta, [2]string{"skill", wire.Clip(a.Skill)})
	}
	return message.ChannelEvent(a.Message, meta)
}
