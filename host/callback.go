package host

import (
	"context"
	"log/slog"
	"slices"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/tasks/timer"
	"github.com/skillhost/skill/sdk"
)

// newTimers makes the room of what comes back to sessions later.
func (h *Host) newTimers() *timer.Timers {
	return timer.New(timer.Options{Store: h.store, Boots: h.boots, Workspace: h.Scope().Workspace, May: h.mayCallBack,
		Log: slog.New(slog.NewTextHandler(h.options.Log, nil))})
}

// mayCallBack reports whether what a skill has set may still be put before the
// model of scope: the operator may have changed his mind since it was set.
func (h *Host) mayCallBack(owner string, scope sdk.Scope) bool {
	a := capability.Access{Kind: capability.Client, Verb: capability.Ask, Target: capability.Callback}
	return slices.ContainsFunc(h.Catalog.Skills(), func(s *manifest.Skill) bool {
		return h.owner(s) == owner && slices.ContainsFunc(h.Catalog.Of(s.Name), func(e *catalog.Entry) bool {
			layers, err := h.Dispatcher.Layers(e, scope)
			return err == nil && h.Dispatcher.Visible(e, scope) && capability.NewGrant(layers, nil).Allows(a)
		})
	})
}

// Inbox is what has come for sessions while nobody asked, for the doors.
func (h *Host) Inbox() conversation.Inbox { return inbox{h.timers} }

type inbox struct{ timers *timer.Timers }

func (i inbox) Waiting(s sdk.Scope) bool { return i.timers.Waiting(s) }

func (i inbox) Begin(s sdk.Scope) (done func()) { return i.timers.Begin(s) }

func (i inbox) Take(ctx context.Context, s sdk.Scope) ([]conversation.Arrival, int, func(bool)) {
	came, lost, written := i.timers.Take(ctx, s)
	return arrivals(came), lost, written
}

func (i inbox) Join(s sdk.Scope, l *conversation.Listener) (leave func(over bool)) {
	return i.timers.Join(s, &timer.Ear{Wakes: l.Wakes, Hears: l.Hears, Busy: l.Busy, Tell: func(came []timer.Arrival) { l.Tell(arrivals(came)) }})
}

func arrivals(came []timer.Arrival) []conversation.Arrival {
	out := make([]conversation.Arrival, len(came))
	for i, a := range came {
		out[i] = conversation.Arrival{Callback: a.Timer, Skill: a.Skill, Message: a.Message, Fire: a.Fire, Count: a.Count, Missed: a.Missed, Last: a.Last, Told: a.Told}
	}
	return out
}
