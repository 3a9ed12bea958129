// Package conversation is one client's talk with the house in the Model Context
// Protocol: it takes the client's messages, in every revision, and answers each
// request once under its exact id. What it cannot answer itself (which tools
// there are, what a call does) it asks a Backend.
//
// It does not know how messages travel, who the client's user is, what a skill
// is, or how a tool runs. It decides nothing: whether a call is allowed is the
// Backend's answer.
package conversation

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/relay"
	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// A raw is a JSON value as it stood in a message; nil if it was absent.
type raw = json.RawMessage

// A Kind names a set of things that a client can list.
type Kind string

// The kinds, by the member that holds their list.
const (
	Tools     Kind = "tools"
	Resources Kind = "resources"
	Templates Kind = "resourceTemplates"
	Prompts   Kind = "prompts"
)

// A Page is one part of a list.
type Page struct {
	Items   []json.RawMessage // each a JSON object as MCP defines it
	Next    string            // the Backend's cursor for the next page, or empty
	Version uint64            // changes whenever the set does; 0: not to be kept
}

// A Change says that a set is another one, or that the resource URI is.
type Change struct {
	Kind Kind
	URI  string
}

// A Backend is the house behind the door.
type Backend interface {
	// List returns at most n of the things of that kind that exist for scope.
	// A cursor is empty or a Next of an earlier Page; one that no longer fits
	// is an *sdk.Error of kind Invalid.
	List(ctx context.Context, scope sdk.Scope, kind Kind, cursor string, n int) (Page, error)

	// Call runs one tool, or what else c.Kind says. It may call emit, from any
	// goroutine, until it returns. The Call's slices are not reused.
	Call(ctx context.Context, c sdk.Call, emit func(sdk.Event)) (sdk.Result, error)

	// Watch yields what changes for scope, until ctx is done.
	Watch(ctx context.Context, scope sdk.Scope) iter.Seq[Change]
}

// Options of a Room. The zero value of each field means its default.
type Options struct {
	Name         string        // the server's name; "skill"
	Version      string        // the server's version; "0.0.0"
	Instructions string        // for the client's model
	Concurrency  int           // calls that run at once; 64
	Queue        int           // requests that wait beyond those; 1024
	KeepAlive    time.Duration // silence after which a call with a progress token reports that it lives; 10 s
	Logger       *slog.Logger  // for the operator, never for the client; discards
	Tasks        *task.Tasks   // of all conversations; nil: calls do not become tasks
	TaskAfter    time.Duration // how long a call may take that is not to be a task at once; 5 s
	Inbox        Inbox         // what comes for sessions; nil: nothing does
	Asker        Asker         // ways to the user of a call beside its client; nil: there is none
	Poll         time.Duration // how long a call waits that comes back for an answer from the page; 45 s
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "skill"
	}
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 64
	}
	if o.Queue <= 0 {
		o.Queue = 1024
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 10 * time.Second
	}
	if o.Poll <= 0 {
		o.Poll = pollTime
	}
	if o.TaskAfter <= 0 {
		o.TaskAfter = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}

// A Room is what the conversations with all clients share.
type Room struct {
	b        Backend
	o        Options
	server   raw // this server's Implementation
	met      atomic.Pointer[introduction]
	slots    *relay.Slots
	extra    map[string]func(*call) // what extensions serve, by method
	settings map[string]raw         // of the extensions, by name
	lists    lists
	watchers watchers
}

// NewRoom returns the Room of one house.
func NewRoom(b Backend, o Options) *Room {
	r := &Room{b: b, o: o.withDefaults()}
	l := wire.NewList([]byte("{"))
	l.Text("name", r.o.Name)
	l.Text("version", r.o.Version)
	r.server = append(l.B, '}')
	r.slots = relay.NewSlots(r.o.Concurrency, r.o.Queue)
	r.watchers.room = r
	r.extend()
	return r
}

// extend adds what the Backend can do beyond the core of the protocol.
func (r *Room) extend() {
	r.extra, r.settings = map[string]func(*call){}, map[string]raw{}
	if l, ok := r.b.(Library); ok {
		r.settings[skillsExtension] = raw(`{"directoryRead":true}`)
		r.extra["skills/list"] = func(c *call) { go c.list(Skills) }
		r.extra["skills/get"] = func(c *call) { go c.serveSkill(l) }
		r.extra["resources/directory/read"] = func(c *call) { go c.serveDirectory(l) }
	}
	if r.o.Tasks != nil {
		r.settings[message.TasksExtension] = raw("{}")
		r.extra["tasks/get"] = func(c *call) { c.ofTasks((*call).getTask) }
		r.extra["tasks/update"] = func(c *call) { c.ofTasks((*call).updateTask) }
		r.extra["tasks/cancel"] = func(c *call) { c.ofTasks((*call).cancelTask) }
	}
}

// Slots bound the calls of all conversations.
func (r *Room) Slots() *relay.Slots { return r.slots }

// Server is this server's Implementation, a JSON object.
func (r *Room) Server() json.RawMessage { return r.server }

// Logger is the operator's.
func (r *Room) Logger() *slog.Logger { return r.o.Logger }

// An introduction is a peer as a request's _meta spelled it.
type introduction struct {
	version, client, abilities raw
	peer                       *message.Peer
}
