package main

import (
	"time"

	"github.com/skillhost/skill/sdk/guest"
)

// inbox is the resource callback://inbox.
type inbox struct {
	Fired []fired `json:"fired" doc:"the oldest first"`
	Lost  int     `json:"lost" doc:"fires that there was no room for"`
}

type fired struct {
	CallbackID int    `json:"callback_id"`
	Message    string `json:"message"`
	Fire       int    `json:"fire" doc:"the number of the last fire"`
	Count      int    `json:"count" doc:"fires that this stands for"`
	Missed     int    `json:"missed" doc:"intervals that went by beside them"`
	At         string `json:"at" format:"date-time"`
}

// Reading is not delivery: whether a client shows what it reads to its model,
// nobody knows. What is here comes with the next result as well.
var _ = guest.Tool("read_inbox", "Serves callback://inbox: what callbacks have fired and was not delivered yet.", func(c *guest.Call, _ struct{}) (inbox, error) {
	all, lost, err := c.Inbox()
	if err != nil {
		return inbox{}, err
	}
	out := inbox{Fired: []fired{}, Lost: lost}
	for _, a := range all {
		out.Fired = append(out.Fired, fired{a.Timer, a.Message, a.Fire, a.Count, a.Missed, a.At.UTC().Format(time.RFC3339)})
	}
	return out, nil
}, guest.Hidden())
