package ops

import (
	"context"
	"fmt"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/tasks/timer"
	"github.com/skillhost/skill/sdk"
)

// mayCallBack is the access that a timer amounts to: its message is put before
// the client's model when nobody has asked for it.
var mayCallBack = capability.Access{Kind: capability.Client, Verb: capability.Ask, Target: capability.Callback}

// A delivery says how what a timer fires gets to the client's model.
type delivery struct {
	Channel string `json:"channel"`
	Reason  string `json:"reason"`
}

// deliveries are what is told of each way.
var deliveries = map[timer.Way]delivery{
	timer.Later:   {"none", "this process ends with this call and cannot deliver anything; only a durable callback outlives it, and comes in the next session of this workspace"},
	timer.Reply:   {"tool_result", "your client declares no push; it will be delivered with your next tool call"},
	timer.Updated: {"resource_updated", "your client subscribes to callback://inbox and is told when a callback fires; the message comes with your next tool call as well"},
	timer.Event:   {"claude/channel", "it is sent to your client as a channel event; should the client not show those, it comes with your next tool call"},
}

// setter is whose timers the call may see, or an error if nobody keeps timers.
func (j *job) setter() (timer.Owner, error) {
	if j.Timers == nil {
		return timer.Owner{}, &sdk.Error{Kind: sdk.Unavailable, What: "this host keeps no timers"}
	}
	return timer.Owner{Caller: j.Scope.Caller, Workspace: j.Scope.Workspace, Session: j.Scope.Session, Skill: j.Skill}, nil
}

func timerSet(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		Message string `json:"message"`
		Delay   *int64 `json:"delay_ms"`
		Repeat  *int   `json:"repeat"`
		Durable bool   `json:"durable"`
		Slot    *int   `json:"slot"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	delay, err := span("delay_ms", m.Delay, 0, timer.MinDelay, timer.MaxDelay)
	if err != nil {
		return nil, err
	}
	if m.Delay == nil || *m.Delay%1000 != 0 {
		return nil, invalid("delay_ms", fmt.Sprintf("want %d to %d, and whole seconds", timer.MinDelay.Milliseconds(), timer.MaxDelay.Milliseconds()))
	}
	if m.Slot != nil && (*m.Slot < 0 || *m.Slot >= timer.Slots) {
		return nil, invalid("slot", fmt.Sprintf("want 0 to %d", timer.Slots-1))
	}
	o, err := j.setter()
	if err != nil {
		return nil, err
	}
	if err := j.Grant.Check(mayCallBack); err != nil {
		return nil, err
	}
	s := timer.Spec{Message: m.Message, Delay: delay, Repeat: 1, Durable: m.Durable, Slot: m.Slot}
	if m.Repeat != nil {
		s.Repeat = *m.Repeat
	}
	set, err := j.Timers.Set(ctx, o, s)
	if err != nil {
		return nil, kept(err)
	}
	return reply(struct {
		timer.Timer
		Delivery delivery `json:"delivery"`
	}{set, deliveries[j.Timers.Way(o)]})
}

func timerList(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	if err := decode(f, &struct{ header }{}, 0); err != nil {
		return nil, err
	}
	o, err := j.setter()
	if err != nil {
		return nil, err
	}
	all, err := j.Timers.List(ctx, o)
	if err != nil {
		return nil, kept(err)
	}
	return reply(struct {
		Timers   []timer.Timer `json:"timers"`
		Delivery delivery      `json:"delivery"`
	}{all, deliveries[j.Timers.Way(o)]})
}

func timerCancel(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		ID *int `json:"id"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	o, err := j.setter()
	if err != nil {
		return nil, err
	}
	ended, err := j.Timers.Cancel(ctx, o, m.ID)
	if err != nil {
		return nil, kept(err)
	}
	return reply(struct {
		Cancelled []int `json:"cancelled"`
	}{ended})
}

func inboxRead(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	if err := decode(f, &struct{ header }{}, 0); err != nil {
		return nil, err
	}
	o, err := j.setter()
	if err != nil {
		return nil, err
	}
	all, lost, err := j.Timers.Inbox(ctx, o)
	if err != nil {
		return nil, kept(err)
	}
	return reply(struct {
		Entries []timer.Arrival `json:"entries"`
		Lost    int             `json:"lost,omitempty"`
	}{all, lost})
}

// maxAcknowledged bounds the entries of one request; an inbox has no more.
const maxAcknowledged = 1000

func inboxAck(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		IDs []int64 `json:"ids"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	if len(m.IDs) > maxAcknowledged {
		return nil, invalid(fmt.Sprintf("%d ids", len(m.IDs)), fmt.Sprintf("want at most %d", maxAcknowledged))
	}
	o, err := j.setter()
	if err != nil {
		return nil, err
	}
	n, err := j.Timers.Acknowledge(ctx, o, m.IDs)
	if err != nil {
		return nil, kept(err)
	}
	return reply(struct {
		Acknowledged int `json:"acknowledged"`
	}{n})
}
