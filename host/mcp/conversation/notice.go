package conversation

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
		p.timer = time.AfterFunc(c.room.o.KeepAlive, p.beat)
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
		if text := message.Preview(&e.Content); p.token != nil {
			p.progress(math.NaN(), 0, text)
		} else {
			p.log("info", text)
		}
	case sdk.EventLog:
		p.log(e.Level, e.Message)
	case sdk.EventJob:
		p.c.started(e)
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
	p.timer.Reset(p.c.room.o.KeepAlive)
	notify(p.c.out, message.Progress(p.token, n, total, text))
}

// log sends a log message if the client asked for its level. The caller holds
// mu.
func (p *pulse) log(level, text string) {
	rank := message.LevelRank(level)
	if rank == 0 {
		level, rank = "info", message.LevelRank("info")
	}
	want := int(p.c.level.Load())
	if p.c.era.Modern {
		t, _ := wire.Text(p.c.msg.Meta.Level)
		want = message.LevelRank(t)
	}
	if want == 0 || rank < want {
		return
	}
	name := p.c.msg.Members.Name
	if name == nil {
		name = p.c.msg.Members.URI
	}
	tool, _ := wire.Text(name)
	notify(p.c.out, message.Log(level, tool, text))
}

// notify sends a notification whose params end here.
func notify(to wire.Outlet, params wire.List) {
	to.Send(&wire.Buffer{B: append(params.B, "}}"...)})
}
