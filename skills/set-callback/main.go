// Set-callback is the skill behind the tool SetCallback: messages that come back
// to the session later. It only sets timers and tells of them; what they fire is
// kept and delivered by the host, and runs no code.
package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

type request struct {
	Action       string `json:"action" doc:"set a callback, list all, cancel one or all" enum:"set,list,cancel"`
	Message      string `json:"message,omitempty" doc:"With set: what you are told each time it fires; write down all that you need to know then" maxlen:"2048"`
	DelaySeconds int    `json:"delay_seconds,omitempty" doc:"With set: seconds to wait (1-3600), before the first fire and between fires" min:"0" max:"3600"`
	RepeatCount  int    `json:"repeat_count,omitempty" doc:"With set: times to fire before it ends, -1 for ever; without it (or with 0) 20" min:"-1" max:"100000"`
	CallbackID   *int   `json:"callback_id,omitempty" doc:"Callback slot (0-7). With cancel: which one; without it all are cancelled. With set: the slot to take if it is free" min:"0"`
	Durable      bool   `json:"durable,omitempty" doc:"With set: keep it when this session ends; it passes to another session in this workspace"`
}

type reply struct {
	Callbacks []callback `json:"callbacks" doc:"those that are set, and those that have fired and whose message is not delivered yet"`
	Delivery  delivery   `json:"delivery"`
	Cancelled []int      `json:"cancelled,omitempty" doc:"slots that this call has cancelled"`
}

type callback struct {
	ID         int    `json:"id"`
	Message    string `json:"message"`
	NextFireAt string `json:"next_fire_at,omitempty" doc:"when it fires next; absent if it fires no more" format:"date-time"`
	Delay      int    `json:"delay_seconds,omitempty"`
	Remaining  int    `json:"remaining" doc:"times that it still fires, -1 for ever"`
	Delivered  int    `json:"delivered" doc:"fires that were delivered"`
	Pending    int    `json:"pending" doc:"fires that wait to be delivered"`
	Via        string `json:"via" doc:"how it is delivered next" enum:"claude/channel,resource_updated,tool_result,none"`
	Durable    bool   `json:"durable"`
}

type delivery struct {
	Channel string `json:"channel" doc:"claude/channel: as an event that wakes the model; resource_updated: the client is told that callback://inbox has changed; tool_result: with the result of the next tool call; none: not by this process" enum:"claude/channel,resource_updated,tool_result,none"`
	Reason  string `json:"reason"`
}

var _ = guest.Tool("SetCallback", "Set a message that comes back to you later, once or again and again: a reminder to look at a build, a server or a file. "+
	"It is delivered when you are idle if the client can be told, and with the result of your next tool call in any case. At most 8 are set at once; what fires while nobody listens comes once, with a count.",
	setCallback, guest.Title("Callbacks"), guest.Annotations{})

// defaultRepeat is how often a callback fires that does not say.
const defaultRepeat = 20

func setCallback(c *guest.Call, in request) (guest.Reply[reply], error) {
	switch in.Action {
	case "set", "":
		return set(c, in)
	case "list":
		return show(c, "", nil)
	case "cancel":
		return cancel(c, in)
	}
	return guest.Reply[reply]{}, invalid(fmt.Sprintf("unknown action %q", in.Action), "set, list or cancel")
}

func set(c *guest.Call, in request) (guest.Reply[reply], error) {
	switch {
	case strings.TrimSpace(in.Message) == "":
		return guest.Reply[reply]{}, invalid("set: no message", "message is what comes back to you")
	case in.DelaySeconds == 0:
		return guest.Reply[reply]{}, invalid("set: no delay_seconds", "1 to 3600")
	}
	repeat := in.RepeatCount
	if repeat == 0 {
		repeat = defaultRepeat
	}
	t, _, err := c.SetTimer(guest.TimerSpec{Message: in.Message, Delay: time.Duration(in.DelaySeconds) * time.Second, Repeat: repeat, Durable: in.Durable, Slot: slot(in.CallbackID)})
	if err != nil {
		return guest.Reply[reply]{}, err
	}
	return show(c, fmt.Sprintf("Callback %d is set: it fires %s, the first time at %s.", t.ID, times(t.Remaining, t.Delay), clock(t.NextFire)), nil)
}

// slot is a slot that can be wished for.
func slot(id *int) *int {
	if id != nil && *id > 7 {
		return nil
	}
	return id
}

// times says how often, and how far apart.
func times(n, delay int) string {
	switch n {
	case -1:
		return fmt.Sprintf("every %d s until it is cancelled", delay)
	case 1:
		return fmt.Sprintf("once, in %d s", delay)
	}
	return fmt.Sprintf("%d times, every %d s", n, delay)
}

func cancel(c *guest.Call, in request) (guest.Reply[reply], error) {
	ended, err := c.CancelTimer(in.CallbackID)
	if err != nil {
		return guest.Reply[reply]{}, err
	}
	note := fmt.Sprintf("Cancelled %d callbacks.", len(ended))
	switch len(ended) {
	case 0:
		note = "There was nothing to cancel."
	case 1:
		note = fmt.Sprintf("Cancelled callback %d.", ended[0])
	}
	return show(c, note, ended)
}

// show tells of all callbacks, behind what was done.
func show(c *guest.Call, note string, ended []int) (guest.Reply[reply], error) {
	timers, d, err := c.Timers()
	if err != nil {
		return guest.Reply[reply]{}, err
	}
	r := reply{Callbacks: []callback{}, Delivery: delivery(d), Cancelled: ended}
	var text strings.Builder
	if note != "" {
		text.WriteString(note + "\n")
	}
	for _, t := range timers {
		v := callback{ID: t.ID, Message: t.Message, Delay: t.Delay, Remaining: t.Remaining, Delivered: t.Delivered, Pending: t.Pending, Via: d.Channel, Durable: t.Durable}
		if !t.NextFire.IsZero() {
			v.NextFireAt = t.NextFire.UTC().Format(time.RFC3339)
		}
		r.Callbacks = append(r.Callbacks, v)
		text.WriteString(line(t))
	}
	if len(timers) == 0 && note == "" {
		text.WriteString("No callbacks are set.\n")
	}
	if len(timers) > 0 {
		text.WriteString("Delivery: " + d.Reason + ".\n")
	}
	return guest.Reply[reply]{Text: text.String(), Structured: r}, nil
}

// line tells of one callback.
func line(t guest.Timer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- %d: ", t.ID)
	if t.Remaining == 0 {
		b.WriteString("fires no more")
	} else {
		fmt.Fprintf(&b, "next at %s", clock(t.NextFire))
		if t.Remaining > 0 {
			fmt.Fprintf(&b, ", %d left", t.Remaining)
		}
	}
	if t.Delivered > 0 {
		fmt.Fprintf(&b, ", %d delivered", t.Delivered)
	}
	if t.Pending > 0 {
		fmt.Fprintf(&b, ", %d pending", t.Pending)
	}
	if t.Durable {
		b.WriteString(", durable")
	}
	fmt.Fprintf(&b, ": %s\n", clip(t.Message))
	return b.String()
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// clip makes one short line of a message, which the structured content has whole.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func invalid(what, hint string) error {
	return &sdk.Error{Kind: sdk.Invalid, What: what, Hint: hint}
}

func main() {}
