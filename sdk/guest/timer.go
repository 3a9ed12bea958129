package guest

import "time"

// A TimerSpec says what is to come back to the session, and when.
type TimerSpec struct {
	Message string        // at most 2048 characters
	Delay   time.Duration // whole seconds, 1 to 3600
	Repeat  int           // how often it fires, each time after Delay; -1: for ever; 0 means 1
	Durable bool          // outlives the session: it passes to another one of the caller in the workspace
	Slot    *int          // the id that is wished for, 0 to 7, if it is free
}

// A Timer is one of the skill's in the session of the call.
type Timer struct {
	ID        int       `json:"id"` // 0 to 7, unless it has come from another session
	Message   string    `json:"message"`
	Delay     int       `json:"delay_seconds"`
	NextFire  time.Time `json:"next_fire_at"` // zero if it fires no more
	Remaining int       `json:"remaining"`    // how often it still fires; -1: for ever
	Delivered int       `json:"delivered"`    // of its fires, those that were handed to the client
	Pending   int       `json:"pending"`      // and those that wait for that
	Durable   bool      `json:"durable"`
}

// A Delivery says how what timers fire gets to the client's model.
type Delivery struct {
	Channel string `json:"channel"` // "claude/channel", "resource_updated", "tool_result" or "none"
	Reason  string `json:"reason"`
}

// An Arrival is a timer that has fired, once or more often, and of which the
// client was not told yet.
type Arrival struct {
	ID      int64     `json:"id"`    // for Acknowledge
	Timer   int       `json:"timer"` // its id
	Message string    `json:"message"`
	Fire    int       `json:"fire"`   // the number of the last fire
	Count   int       `json:"count"`  // fires that this stands for
	Missed  int       `json:"missed"` // intervals that went by beside them
	At      time.Time `json:"at"`     // of the last fire
}

// SetTimer makes a message come back to the session of the call. When it has
// fired, the host hands it to the client; no code of the skill runs. The error
// has kind sdk.Limit if there are 8 already, and sdk.Denied without the
// capability client = ["callback"].
func (c *Call) SetTimer(s TimerSpec) (Timer, Delivery, error) {
	var reply struct {
		Timer
		Delivery Delivery `json:"delivery"`
	}
	_, err := c.do("timer.set", struct {
		Message string `json:"message"`
		Delay   int64  `json:"delay_ms"`
		Repeat  int    `json:"repeat,omitempty"`
		Durable bool   `json:"durable,omitempty"`
		Slot    *int   `json:"slot,omitempty"`
	}{s.Message, s.Delay.Milliseconds(), s.Repeat, s.Durable, s.Slot}, &reply)
	return reply.Timer, reply.Delivery, err
}

// Timers lists the skill's timers in the session by their ids, and those that
// fire no more while the client was not told of all their fires.
func (c *Call) Timers() ([]Timer, Delivery, error) {
	var reply struct {
		Timers   []Timer  `json:"timers"`
		Delivery Delivery `json:"delivery"`
	}
	_, err := c.do("timer.list", nil, &reply)
	return reply.Timers, reply.Delivery, err
}

// CancelTimer ends a timer, or all of the skill's in the session if id is nil,
// with what of them waits in the inbox. It returns the ids of those. The error
// has kind sdk.NotFound if there is none of that id.
func (c *Call) CancelTimer(id *int) ([]int, error) {
	var reply struct {
		Cancelled []int `json:"cancelled"`
	}
	_, err := c.do("timer.cancel", struct {
		ID *int `json:"id,omitempty"`
	}{id}, &reply)
	return reply.Cancelled, err
}

// Inbox returns what the skill's timers have fired in the session and the client
// was not told, the oldest first, and how many fires there was no room for.
func (c *Call) Inbox() (arrivals []Arrival, lost int, err error) {
	var reply struct {
		Entries []Arrival `json:"entries"`
		Lost    int       `json:"lost"`
	}
	_, err = c.do("inbox.read", nil, &reply)
	return reply.Entries, reply.Lost, err
}

// Acknowledge takes arrivals out of the inbox, whose client is told of them no
// more, and returns how many there were. The host does so by itself with what it
// has handed over.
func (c *Call) Acknowledge(ids ...int64) (int, error) {
	var reply struct {
		Acknowledged int `json:"acknowledged"`
	}
	_, err := c.do("inbox.ack", struct {
		IDs []int64 `json:"ids"`
	}{ids}, &reply)
	return reply.Acknowledged, err
}
