package mcp

import (
	"math"
	"sync"
	"time"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// A pulse is what a running call says before its answer.
type pulse struct {
	mu    sync.Mutex
	c     *call // nil until it starts and after it ends
	token raw   // of the client's wish for progress, or nil
	last  float64
	timer *time.Timer
}

// start lets c speak, and reports that it lives if it says nothing for long.
func (p *pulse) start(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.c, p.last = c, math.Inf(-1)
	if t := c.msg.Meta.Token; t != nil && (t[0] == '"' || t[0] == '-' || t[0] >= '0' && t[0] <= '9') {
		p.token = t
		p.timer = time.AfterFunc(c.front.o.KeepAlive, p.beat)
	}
}

// end lets nothing pass from now on.
func (p *pulse) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.c = nil
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress(math.NaN(), 0, "")
}

// emit passes an event on, if the client wants such.
func (p *pulse) emit(e sdk.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c == nil {
		return
	}
	switch e.Kind {
	case sdk.EventProgress:
		p.progress(e.Progress, e.Total, e.Message)
	case sdk.EventPartial: // MCP knows no partial content
		p.progress(math.NaN(), 0, message.Preview(&e.Content))
	case sdk.EventLog:
		p.log(e.Level, e.Message)
	}
}

// progress sends a notification whose number is larger than the last one,
// whatever the guest says. The caller holds mu.
func (p *pulse) progress(n, total float64, text string) {
	if p.c == nil || p.token == nil {
		return
	}
	if !(n > p.last) || math.IsInf(n, 1) { // also if n is not a number
		n = 0
		if !math.IsInf(p.last, -1) {
			n = p.last + max(1, math.Abs(p.last))*1e-9
		}
	}
	p.last = n
	p.timer.Reset(p.c.front.o.KeepAlive)
	p.c.front.notify(message.Progress(p.token, n, total, text))
}

// log sends a log message if the client asked for its level. The caller holds
// mu.
func (p *pulse) log(level, text string) {
	rank := message.LevelRank(level)
	if rank == 0 {
		level, rank = "info", message.LevelRank("info")
	}
	want := int(p.c.front.clients.level.Load())
	if p.c.era.Modern {
		t, _ := wire.Text(p.c.msg.Meta.Level)
		want = message.LevelRank(t)
	}
	if want == 0 || rank < want {
		return
	}
	tool, _ := wire.Text(p.c.msg.Members.Name)
	p.c.front.notify(message.Log(level, tool, text))
}

// notify sends a notification whose params end here.
func (f *front) notify(params wire.List) {
	f.w.Send(&wire.Buffer{B: append(params.B, "}}\n"...)})
}

// settleTime gathers changes of a list into one notification.
const settleTime = 10 * time.Millisecond

// notices tells clients that a list has changed.
type notices struct {
	f           *front
	mu          sync.Mutex
	subscribers map[*call]struct{}
	timer       *time.Timer // of a notification that is due
	stopped     bool
}

func newNotices(f *front) *notices {
	return &notices{f: f, subscribers: map[*call]struct{}{}}
}

// watch follows the Backend until the front stops.
func (f *front) watch() {
	for kind := range f.b.Watch(f.base, f.o.Scope) {
		if kind == Tools {
			f.notices.changed()
		}
	}
}

func (n *notices) changed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timer == nil && !n.stopped {
		n.timer = time.AfterFunc(settleTime, n.announce)
	}
}

func (n *notices) announce() {
	var lines []wire.List
	if n.f.clients.inited.Load() {
		lines = append(lines, message.ToolsChanged(nil))
	}
	n.mu.Lock()
	n.timer = nil
	for c := range n.subscribers {
		lines = append(lines, message.ToolsChanged(c.msg.ID))
	}
	n.mu.Unlock()
	for _, l := range lines { // may wait for a slow client: not under the lock
		n.f.notify(l)
	}
}

func (n *notices) subscribe(c *call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscribers[c] = struct{}{}
}

func (n *notices) unsubscribe(c *call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.subscribers, c)
}

func (n *notices) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	if n.timer != nil {
		n.timer.Stop()
	}
}
