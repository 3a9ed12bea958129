package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

func at() time.Time { return time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC) }

func call(t *testing.T, h *guesttest.Host, args string) (reply, string, error) {
	t.Helper()
	r, err := h.Call(t.Context(), "SetCallback", args)
	if err != nil {
		return reply{}, "", err
	}
	var out reply
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		t.Fatal(err)
	}
	return out, r.Content[0].Text, nil
}

// TestScript goes through every action in turn.
func TestScript(t *testing.T) {
	h := &guesttest.Host{Now: at}
	for i, c := range []struct {
		args string
		want string // part of the text, or of the error if it starts with "!"
		also string
	}{
		{`{"action":"list"}`, "No callbacks are set.", ""},
		{`{"action":"cancel"}`, "There was nothing to cancel.", ""},
		{`{"action":"set"}`, "!no message", ""},
		{`{"action":"set","message":" \n","delay_seconds":5}`, "!no message", ""},
		{`{"action":"set","message":"m"}`, "!no delay_seconds", ""},
		{`{"action":"set","message":"look at\nthe build","delay_seconds":60}`, "Callback 0 is set: it fires 20 times, every 60 s, the first time at 2026-11-22T05:01:00Z.", "- 0: next at 2026-11-22T05:01:00Z, 20 left: look at the build\n"},
		{`{"message":"again","delay_seconds":1,"repeat_count":-1,"durable":true}`, "Callback 1 is set: it fires every 1 s until it is cancelled", "- 1: next at 2026-11-22T05:00:01Z, durable: again\n"},
		{`{"action":"set","message":"once","delay_seconds":3600,"repeat_count":1,"callback_id":7}`, "Callback 7 is set: it fires once, in 3600 s, the first time at 2026-11-22T06:00:00Z.", ""},
		{`{"action":"set","message":"elsewhere","delay_seconds":10,"callback_id":7}`, "Callback 2 is set", ""},
		{`{"action":"set","message":"nowhere","delay_seconds":10,"callback_id":99}`, "Callback 3 is set", ""},
		{`{"action":"cancel","callback_id":3}`, "Cancelled callback 3.", "- 2: "},
		{`{"action":"cancel","callback_id":3}`, "!no callback 3", ""},
		{`{"action":"list"}`, "- 0: next at", "Delivery: "},
		{`{"action":"cancel"}`, "Cancelled 4 callbacks.", ""},
		{`{"action":"list","message":"m","delay_seconds":0,"repeat_count":0,"callback_id":0}`, "No callbacks are set.", ""},
		{`{"action":"stop"}`, "!unknown action", ""},
	} {
		_, text, err := call(t, h, c.args)
		want, fails := strings.CutPrefix(c.want, "!")
		if fails != (err != nil) {
			t.Fatalf("%d %s: got %q, %v", i, c.args, text, err)
		}
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) || !strings.Contains(text, c.also) {
			t.Fatalf("%d %s: got %q", i, c.args, text)
		}
	}
}

func TestStructured(t *testing.T) {
	h := &guesttest.Host{Now: at}
	got, _, err := call(t, h, `{"action":"set","message":"m","delay_seconds":60,"repeat_count":3}`)
	want := reply{Callbacks: []callback{{Message: "m", NextFireAt: "2026-11-22T05:01:00Z", Delay: 60, Remaining: 3, Via: "tool_result"}}, Delivery: delivery{"tool_result", "a test delivers nothing by itself"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for range 3 {
		if err := h.Fire(0); err != nil {
			t.Fatal(err)
		}
	}
	got, text, err := call(t, h, `{"action":"list"}`)
	want.Callbacks[0] = callback{Message: "m", Delay: 60, Pending: 3, Via: "tool_result"}
	if err != nil || !reflect.DeepEqual(got, want) || !strings.Contains(text, "- 0: fires no more, 3 pending: m\n") {
		t.Errorf("got %+v, %v, %q", got, err, text)
	}
	if got, _, err = call(t, h, `{"action":"cancel","callback_id":0}`); err != nil || !slices.Equal(got.Cancelled, []int{0}) || len(got.Callbacks) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNinth(t *testing.T) {
	h := &guesttest.Host{}
	for i := range 8 {
		if _, _, err := call(t, h, fmt.Sprintf(`{"action":"set","message":"m%d","delay_seconds":60}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := call(t, h, `{"action":"set","message":"m","delay_seconds":60}`)
	if sdk.KindOf(err) != sdk.Limit || !strings.Contains(err.Error(), "all callback slots full (max 8)") {
		t.Error(err)
	}
}

func TestInbox(t *testing.T) {
	h := &guesttest.Host{Now: at}
	read := func() string {
		t.Helper()
		r, err := h.Call(t.Context(), "read_inbox", `{}`)
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Structured)
	}
	if got := read(); got != `{"fired":[],"lost":0}` {
		t.Errorf("got %s", got)
	}
	if _, _, err := call(t, h, `{"action":"set","message":"m","delay_seconds":60}`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Fire(0); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // reading takes nothing away
		if got := read(); got != `{"fired":[{"callback_id":0,"message":"m","fire":2,"count":2,"missed":0,"at":"2026-11-22T05:00:00Z"}],"lost":0}` {
			t.Errorf("got %s", got)
		}
	}
}
