package ops

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/tasks/timer"
	"github.com/skillhost/skill/sdk"
)

// withTimers is a binding that may set timers, whose inbox is handed over by
// somebody.
func withTimers(t testing.TB) Binding {
	t.Helper()
	b := anyone("a")
	b.Scope.Session = "s"
	b.Grant = grant(t, "client callback")
	b.Timers = timer.New(timer.Options{Store: &memory{}, Boots: boot.New(nil, nil)})
	b.Timers.Start()
	t.Cleanup(func() {
		if err := b.Timers.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestTimers(t *testing.T) {
	tab, _ := newTable(t)
	b := withTimers(t)
	o := tab.Bind(b)
	const reply = `{"channel":"tool_result","reason":"your client declares no push; it will be delivered with your next tool call"}`
	ask(t, o, `{"op":"timer.list"}`).is(t, `{"delivery":`+reply+`,"timers":[]}`)
	ask(t, o, `{"op":"timer.cancel"}`).is(t, `{"cancelled":[]}`)
	ask(t, o, `{"op":"inbox.read"}`).is(t, `{"entries":[]}`)
	set := ask(t, o, `{"op":"timer.set","message":"m","delay_ms":1000}`)
	if set.err != nil || set.h["id"] != 0.0 || set.h["message"] != "m" || set.h["delay_seconds"] != 1.0 || set.h["remaining"] != 1.0 || quote(set.h["delivery"]) != reply || set.h["durable"] != nil {
		t.Fatal(set)
	}
	set = ask(t, o, `{"op":"timer.set","message":"n","delay_ms":3600000,"repeat":-1,"durable":true,"slot":5}`)
	if set.err != nil || set.h["id"] != 5.0 || set.h["remaining"] != -1.0 || set.h["durable"] != true {
		t.Fatal(set)
	}
	var read struct {
		Entries []struct {
			ID    int64  `json:"id"`
			Timer int    `json:"timer"`
			Fire  int    `json:"fire"`
			Text  string `json:"message"`
		} `json:"entries"`
	}
	for deadline := time.Now().Add(time.Minute); len(read.Entries) == 0; time.Sleep(10 * time.Millisecond) {
		got := ask(t, o, `{"op":"inbox.read"}`)
		if err := json.Unmarshal([]byte(quote(got.h)), &read); err != nil || time.Now().After(deadline) {
			t.Fatal(got, err)
		}
	}
	if e := read.Entries[0]; len(read.Entries) != 1 || e.Text != "m" || e.Fire != 1 || e.Timer != 0 {
		t.Errorf("%+v", read)
	}
	other := b
	other.Skill = "b"
	id := quote(read.Entries[0].ID)
	ask(t, tab.Bind(other), `{"op":"inbox.read"}`).is(t, `{"entries":[]}`)
	ask(t, tab.Bind(other), `{"op":"inbox.ack","ids":[`+id+`]}`).is(t, `{"acknowledged":0}`)
	ask(t, tab.Bind(other), `{"op":"timer.cancel","id":5}`).fails(t, sdk.NotFound, "no callback 5")
	ask(t, o, `{"op":"inbox.ack","ids":[`+id+`,1]}`).is(t, `{"acknowledged":1}`)
	ask(t, o, `{"op":"inbox.ack","ids":[`+id+`]}`).is(t, `{"acknowledged":0}`)
	ask(t, o, `{"op":"timer.cancel"}`).is(t, `{"cancelled":[5]}`)
}

// timer_without_permission: to set one needs to be granted, by its own name; to
// look at what there is does not.
func TestTimerWithoutPermission(t *testing.T) {
	tab, _ := newTable(t)
	b := withTimers(t)
	for _, g := range []capability.Grant{{}, grant(t, "client sampling"), grant(t, "client roots")} {
		b.Grant = g
		o := tab.Bind(b)
		ask(t, o, `{"op":"timer.set","message":"m","delay_ms":1000}`).fails(t, sdk.Denied, "client.ask callback")
		if got := ask(t, o, `{"op":"timer.list"}`); got.err != nil || quote(got.h["timers"]) != "[]" {
			t.Error(got)
		}
	}
}

func TestMalformedTimerRequests(t *testing.T) {
	tab, _ := newTable(t)
	b := withTimers(t)
	o := tab.Bind(b)
	for _, h := range []string{
		`{"op":"timer.set"}`, `{"op":"timer.set","message":"m"}`, `{"op":"timer.set","delay_ms":1000}`, `{"op":"timer.set","message":"m","delay_ms":999}`,
		`{"op":"timer.set","message":"m","delay_ms":1500}`, `{"op":"timer.set","message":"m","delay_ms":3600001}`, `{"op":"timer.set","message":"m","delay_ms":3601000}`,
		`{"op":"timer.set","message":"m","delay_ms":-1000}`, `{"op":"timer.set","message":"m","delay_ms":1000,"repeat":0}`, `{"op":"timer.set","message":"m","delay_ms":1000,"repeat":-2}`,
		`{"op":"timer.set","message":"m","delay_ms":1000,"repeat":100001}`, `{"op":"timer.set","message":"m","delay_ms":1000,"slot":8}`, `{"op":"timer.set","message":"m","delay_ms":1000,"slot":-1}`,
		`{"op":"timer.set","message":"` + strings.Repeat("x", timer.MaxMessage+1) + `","delay_ms":1000}`, `{"op":"timer.set","message":"m","delay_ms":1000,"session":"other"}`,
		`{"op":"timer.cancel","id":"0"}`, `{"op":"timer.list","session":"other"}`, `{"op":"inbox.read","session":"other"}`, `{"op":"inbox.ack","ids":1}`,
		`{"op":"inbox.ack","ids":[` + strings.Repeat("1,", maxAcknowledged) + `1]}`,
	} {
		ask(t, o, h).fails(t, sdk.Invalid)
	}
	blob := []byte("x")
	for _, op := range []string{"timer.set", "timer.list", "timer.cancel", "inbox.read", "inbox.ack"} {
		ask(t, o, `{"op":"`+op+`"}`, blob).fails(t, sdk.Invalid)
	}
	if got := ask(t, o, `{"op":"timer.list"}`); quote(got.h["timers"]) != "[]" {
		t.Error(got)
	}
}

func TestNoTimers(t *testing.T) {
	tab, _ := newTable(t)
	b := anyone("a")
	b.Grant = grant(t, "client callback")
	for _, h := range []string{`{"op":"timer.set","message":"m","delay_ms":1000}`, `{"op":"timer.list"}`, `{"op":"timer.cancel"}`, `{"op":"inbox.read"}`, `{"op":"inbox.ack"}`} {
		ask(t, tab.Bind(b), h).fails(t, sdk.Unavailable, "keeps no timers")
	}
}

// Every way has its words, which the skill's schema knows.
func TestDeliveries(t *testing.T) {
	for way := timer.Later; way <= timer.Event; way++ {
		if d := deliveries[way]; d.Channel == "" || d.Reason == "" {
			t.Errorf("way %d: %+v", way, d)
		}
	}
}
