package conversation

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

const (
	settleTime       = 10 * time.Millisecond // gathers changes into one notification of each kind
	maxListens       = 16                    // subscriptions/listen of one conversation
	maxSubscriptions = 1024                  // resources of one conversation, or of one listen
)

// watchers follow the Backend for those who have ears: one for each scope,
// however many conversations it has.
type watchers struct {
	room *Room
	mu   sync.Mutex
	open map[sdk.Scope]*watcher // scopes without their sessions
}

// A watcher follows the Backend for one scope.
type watcher struct {
	stop  context.CancelFunc
	ears  map[*ear]struct{}
	due   map[Change]struct{}
	timer *time.Timer // of an announcement
}

// An ear hears changes.
type ear struct{ hear func([]Change) }

// join lets e hear what changes for scope, until the function it returns.
func (w *watchers) join(scope sdk.Scope, e *ear) (leave func()) {
	scope.Session = ""
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.open[scope]
	if o == nil {
		if w.open == nil {
			w.open = map[sdk.Scope]*watcher{}
		}
		ctx, stop := context.WithCancel(context.Background())
		o = &watcher{stop: stop, ears: map[*ear]struct{}{}, due: map[Change]struct{}{}}
		w.open[scope] = o
		changes := w.room.b.Watch(ctx, scope)
		go func() {
			for c := range changes {
				w.changed(o, c)
			}
		}()
	}
	o.ears[e] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(o.ears, e)
		if len(o.ears) == 0 && w.open[scope] == o {
			delete(w.open, scope)
			o.stop()
		}
	}
}

func (w *watchers) changed(o *watcher, c Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(o.due) < maxSubscriptions {
		o.due[c] = struct{}{}
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(settleTime, func() { w.announce(o) })
	}
}

func (w *watchers) announce(o *watcher) {
	w.mu.Lock()
	o.timer = nil
	changes := slices.Collect(maps.Keys(o.due))
	clear(o.due)
	ears := slices.Collect(maps.Keys(o.ears))
	w.mu.Unlock()
	for _, e := range ears { // may wait for a slow client: not under the lock
		e.hear(changes)
	}
}

// ears are what a legacy client hears.
type ears struct {
	t       *Conversation
	mu      sync.Mutex
	leave   func() // nil before and after
	stopped bool
	uris    map[string]struct{} // of the resources that it subscribed to
	bytes   int                 // of those
}

// legacy begins to tell the client of changes.
func (e *ears) legacy() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leave == nil && !e.stopped {
		e.leave = e.t.room.watchers.join(e.t.scope, &ear{e.hear})
	}
}

// subscribed reports whether the client subscribes to uri.
func (e *ears) subscribed(uri string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.uris[uri]
	return ok && !e.stopped
}

func (e *ears) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	if e.leave != nil {
		e.leave()
		e.leave = nil
	}
}

func (e *ears) hear(changes []Change) {
	var lines []wire.List
	e.mu.Lock()
	if !e.stopped {
		lines = told(changes, everything, e.uris, nil)
	}
	e.mu.Unlock()
	for _, l := range lines {
		notify(e.t.out, l)
	}
}

// everything is what legacy clients are told of.
var everything = message.Wishes{Tools: true, Prompts: true, Resources: true}

// told returns a notification for each of the changes that is wished for. A
// subscription is the id of a listen, or nil.
func told(changes []Change, w message.Wishes, uris map[string]struct{}, subscription raw) (lines []wire.List) {
	said := map[string]bool{}
	for _, c := range changes {
		if c.URI != "" {
			if _, ok := uris[c.URI]; ok {
				lines = append(lines, message.Updated(c.URI, subscription))
			}
			continue
		}
		set := string(c.Kind)
		if c.Kind == Templates {
			set = string(Resources)
		}
		wished := map[Kind]bool{Tools: w.Tools, Prompts: w.Prompts, Resources: w.Resources}[Kind(set)]
		if wished && !said[set] {
			said[set] = true
			lines = append(lines, message.Changed(set, subscription))
		}
	}
	return lines
}

// subscribe begins or ends a legacy client's subscription to a resource.
func (c *call) subscribe() {
	uri, ok := wire.Text(c.msg.Members.URI)
	if !ok || uri == "" {
		c.fail(wire.BadParams("uri is not a string"))
		return
	}
	if len(uri) > maxURI {
		c.fail(wire.BadParams(longURI))
		return
	}
	if !c.ears.subscribe(uri, c.method == "resources/subscribe") {
		c.fail(tooBusy("too many subscriptions"))
		return
	}
	c.done()
}

var longURI = "a URI is longer than " + strconv.Itoa(maxURI) + " bytes"

// subscribe notes that the client subscribes to uri, or no more. It reports
// false if there are too many.
func (e *ears) subscribe(uri string, begins bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, there := e.uris[uri]
	switch {
	case there == begins:
	case !begins:
		delete(e.uris, uri)
		e.bytes -= len(uri)
	case len(e.uris) >= maxSubscriptions || e.bytes+len(uri) > maxSubscribed:
		return false
	default:
		if e.uris == nil {
			e.uris = map[string]struct{}{}
		}
		e.uris[uri] = struct{}{}
		e.bytes += len(uri)
	}
	return true
}

// listen tells a modern client of changes until it cancels the request, or the
// conversation ends.
func (c *call) listen() {
	var p struct {
		Notifications *message.Wishes `json:"notifications"`
	}
	if !wire.IsObject(c.msg.Params) || json.Unmarshal(c.msg.Params, &p) != nil || p.Notifications == nil {
		c.fail(wire.BadParams("notifications is not an object that says what to listen for"))
		return
	}
	if len(p.Notifications.Tasks) > 0 && !c.peer.HasTasks() {
		c.fail(message.NoTasks())
		return
	}
	weight, ok := urisWeigh(p.Notifications.URIs)
	if !ok {
		c.fail(wire.BadParams(longURI))
		return
	}
	if len(p.Notifications.URIs) > maxSubscriptions || weight > maxSubscribed || len(p.Notifications.Tasks) > maxFollowed || c.calls.count(listenMethod) > maxListens {
		c.fail(tooBusy("too many subscriptions"))
		return
	}
	uris := map[string]struct{}{}
	for _, u := range p.Notifications.URIs {
		uris[u] = struct{}{}
	}
	p.Notifications.Tasks = c.followed(p.Notifications.Tasks)
	c.shorten()
	notify(c.out, message.Acknowledged(p.Notifications, c.msg.ID))
	var mu sync.Mutex
	over := false
	say := func(lines []wire.List) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		for _, l := range lines {
			notify(c.out, l)
		}
	}
	leave := c.room.watchers.join(c.scope, &ear{func(changes []Change) {
		say(told(changes, *p.Notifications, uris, c.msg.ID))
	}})
	if len(p.Notifications.Tasks) > 0 {
		go c.follow(p.Notifications.Tasks, say)
	}
	leaveInbox := c.listenToInbox(uris, say)
	context.AfterFunc(c.ctx, func() {
		leave()
		leaveInbox()
		mu.Lock()
		over = true
		mu.Unlock()
		if out := c.begin(); out != nil { // it ends with the conversation
			l := wire.NewList(append(out.B, `"result":{"resultType":"complete","_meta":{`...))
			l.Raw(message.MetaListen, c.msg.ID)
			l.Raw(message.MetaServer, c.era.Server)
			out.B = append(l.B, "}}"...)
			c.end(out, nil)
		}
	})
}

func (c *call) endListen() { c.stop() }

// count returns how many accepted calls are of that method.
func (r *registry) count(method string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c.method == method {
			n++
		}
	}
	return n
}
