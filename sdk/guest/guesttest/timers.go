//go:build !wasip1

package guesttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// Bounds of timers, as in the real host.
const (
	slots      = 8
	maxMessage = 2048
	maxDelay   = time.Hour
)

// timers are a Host's timers and what they have fired. Host.mu guards them.
type timers struct {
	all    []guest.Timer // by id
	inbox  []guest.Arrival
	serial int64
}

// delivery is how a Host says that it delivers.
func delivery() guest.Delivery {
	return guest.Delivery{Channel: "tool_result", Reason: "a test delivers nothing by itself"}
}

// Fire makes the timer of that id fire, as if its time had come.
func (h *Host) Fire(id int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.timers.all, func(x guest.Timer) bool { return x.ID == id && x.Remaining != 0 })
	if i < 0 {
		return fmt.Errorf("no timer %d", id)
	}
	x := &h.timers.all[i]
	x.Pending++
	if x.Remaining > 0 {
		x.Remaining--
	}
	if x.NextFire = h.now().Add(time.Duration(x.Delay) * time.Second); x.Remaining == 0 {
		x.NextFire = time.Time{}
	}
	fire := x.Delivered + x.Pending
	if k := slices.IndexFunc(h.timers.inbox, func(a guest.Arrival) bool { return a.Timer == id }); k >= 0 {
		a := &h.timers.inbox[k]
		a.Fire, a.Count, a.At = fire, a.Count+1, h.now()
		return nil
	}
	h.timers.serial++
	h.timers.inbox = append(h.timers.inbox, guest.Arrival{ID: h.timers.serial, Timer: id, Message: x.Message, Fire: fire, Count: 1, At: h.now()})
	return nil
}

// timer serves timer.* and inbox.*.
func (h *Host) timer(op string, raw json.RawMessage) ([]byte, error) {
	var m struct {
		Message string  `json:"message"`
		Delay   int64   `json:"delay_ms"`
		Repeat  *int    `json:"repeat"`
		Durable bool    `json:"durable"`
		Slot    *int    `json:"slot"`
		ID      *int    `json:"id"`
		IDs     []int64 `json:"ids"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &h.timers
	switch op {
	case "timer.set":
		x := guest.Timer{Message: m.Message, Delay: int(m.Delay / 1000), Remaining: 1, Durable: m.Durable}
		if m.Repeat != nil {
			x.Remaining = *m.Repeat
		}
		return h.setTimer(x, m.Slot)
	case "timer.list":
		return reply(map[string]any{"timers": append([]guest.Timer{}, t.all...), "delivery": delivery()})
	case "timer.cancel":
		ended := []int{}
		t.all = slices.DeleteFunc(t.all, func(x guest.Timer) bool {
			meant := m.ID == nil || *m.ID == x.ID
			if meant {
				ended = append(ended, x.ID)
			}
			return meant
		})
		t.inbox = slices.DeleteFunc(t.inbox, func(a guest.Arrival) bool { return m.ID == nil || *m.ID == a.Timer })
		if m.ID != nil && len(ended) == 0 {
			return nil, &sdk.Error{Kind: sdk.NotFound, Op: op, What: fmt.Sprintf("no callback %d", *m.ID)}
		}
		return reply(map[string]any{"cancelled": ended})
	case "inbox.read":
		return reply(map[string]any{"entries": append([]guest.Arrival{}, t.inbox...)})
	}
	n := 0
	t.inbox = slices.DeleteFunc(t.inbox, func(a guest.Arrival) bool {
		if !slices.Contains(m.IDs, a.ID) {
			return false
		}
		n++
		h.delivered(a)
		return true
	})
	return reply(map[string]any{"acknowledged": n})
}

// delivered counts what was handed over. h is locked.
func (h *Host) delivered(a guest.Arrival) {
	h.timers.all = slices.DeleteFunc(h.timers.all, func(x guest.Timer) bool { return x.ID == a.Timer && x.Remaining == 0 })
	for i := range h.timers.all {
		if x := &h.timers.all[i]; x.ID == a.Timer {
			x.Delivered, x.Pending = x.Delivered+a.Count, x.Pending-a.Count
		}
	}
}

// setTimer serves timer.set. h is locked.
func (h *Host) setTimer(x guest.Timer, wished *int) ([]byte, error) {
	const op = "timer.set"
	delay := time.Duration(x.Delay) * time.Second
	taken := map[int]bool{}
	for _, o := range h.timers.all {
		if o.Remaining != 0 {
			taken[o.ID] = true
		}
	}
	switch {
	case x.Message == "" || len([]rune(x.Message)) > maxMessage || delay < time.Second || delay > maxDelay || x.Remaining == 0 || x.Remaining < -1:
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: op, What: "no such timer can be set"}
	case len(taken) >= slots:
		return nil, &sdk.Error{Kind: sdk.Limit, Op: op, What: fmt.Sprintf("all callback slots full (max %d)", slots), Hint: "cancel one first"}
	case wished != nil && !taken[*wished]:
		x.ID = *wished
	default:
		for taken[x.ID] {
			x.ID++
		}
	}
	x.NextFire = h.now().Add(delay)
	h.timers.all = append(h.timers.all, x)
	slices.SortStableFunc(h.timers.all, func(a, b guest.Timer) int { return a.ID - b.ID })
	return reply(map[string]any{"id": x.ID, "message": x.Message, "delay_seconds": x.Delay, "next_fire_at": x.NextFire,
		"remaining": x.Remaining, "durable": x.Durable, "delivery": delivery()})
}
