package row

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func at() time.Time { return time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC) }

var mine = Scope{"local:ann", "/work", "a"}

func example() *Row {
	return &Row{Format: Format, Caller: mine.Caller, Workspace: mine.Workspace, Session: mine.Session, Next: 2,
		Timers: []Timer{{N: 1, Skill: "s", Boot: "b", Message: "m", Delay: 60, Left: 3, Due: at()}, {N: 2, ID: 1, Skill: "s", Boot: "b", Message: "d", Delay: 60, Left: -1, Durable: true, Due: at()}}}
}

// No choice of names leads to another's row.
func TestKeys(t *testing.T) {
	seen := map[string]Scope{}
	for _, s := range []Scope{mine, {"local:ann", "/work", ""}, {"local:ann", "/worka", ""}, {"local:ann/work", "", "a"}, {"local:ann", "", "/worka"}, {"", "", ""}, {"1:a,", "", ""}, {"", "1:a,", ""}} {
		if was, ok := seen[s.Key()]; ok {
			t.Errorf("%+v and %+v have one key", was, s)
		}
		seen[s.Key()] = s
		if !strings.HasPrefix(s.Key(), s.Family()+":") || s.Family() != (Scope{s.Caller, s.Workspace, "other"}).Family() {
			t.Errorf("%+v: key %s, family %s", s, s.Key(), s.Family())
		}
	}
	for session, want := range map[string]bool{"task:1": true, "http:1": false, "": false, "TASK:1": false, "xtask:1": false} {
		if (Scope{Session: session}).Outlives() != want {
			t.Errorf("%q", session)
		}
	}
}

func TestTurn(t *testing.T) {
	for _, c := range []struct {
		timer  int
		late   time.Duration // by the clock that nobody sets
		wall   time.Duration // by the other one
		does   bool
		fires  int
		missed int
		left   int
	}{
		{0, -time.Second, time.Hour, false, 0, 0, 3}, // what is not durable does not look at the wall
		{0, 0, -time.Hour, true, 1, 0, 2},
		{0, 59 * time.Second, 0, true, 1, 0, 2},
		{0, time.Hour, 0, true, 1, 60, 2},
		{1, time.Hour, -time.Second, false, 0, 0, -1}, // and what is looks at nothing else
		{1, -time.Hour, 0, true, 1, 0, -1},
		{1, -time.Hour, time.Hour, true, 1, 60, -1},
		{1, 0, -time.Minute, false, 0, 0, -1},
		{1, 0, -time.Hour, true, 0, 0, -1}, // put back: it is due in a minute
	} {
		r := example()
		x, now := &r.Timers[c.timer], at().Add(c.wall)
		if did := r.Turn(x, c.late, now); did != c.does || x.Fires != c.fires || x.Left != c.left || len(r.Inbox) != c.fires {
			t.Errorf("%+v: %v %+v", c, did, x)
		}
		if c.does && !x.Due.Equal(now.Add(time.Minute)) {
			t.Errorf("%+v: due %v", c, x.Due)
		}
		if c.fires > 0 && r.Inbox[0].Missed != c.missed {
			t.Errorf("%+v: %+v", c, r.Inbox[0])
		}
	}
}

// Whatever is fired and taken, in whatever order, nothing is delivered that was
// not fired, and what is not delivered waits.
func TestFiresAndDeliveriesAddUp(t *testing.T) {
	const moves = 7
	for code := range 1 << (2 * moves) {
		r := example()
		fired, taken := [2]int{}, [2]int{}
		for m := range moves {
			k := code >> (2 * m) & 1
			x := &r.Timers[k]
			if code>>(2*m+1)&1 == 0 {
				x.Left = -1
				r.Turn(x, 0, x.Due)
				fired[k]++
				continue
			}
			for _, e := range r.Clone().Inbox {
				if e.Timer == x.N {
					n := (e.Count + 1) / 2 // some of it
					r.Took(e.N, n, 0)
					taken[k] += n
				}
			}
		}
		for k := range fired {
			waits := 0
			for _, e := range r.Inbox {
				if e.Timer == r.Timers[k].N {
					waits += e.Count
				}
			}
			if fired[k] != taken[k]+waits || r.Timers[k].Delivered != taken[k] || r.Timers[k].Fires != fired[k] {
				t.Fatalf("moves %b: %d fired, %d taken, %d wait: %+v", code, fired[k], taken[k], waits, r)
			}
		}
	}
}

func TestInboxIsBounded(t *testing.T) {
	r := &Row{Next: 1000}
	for i := range 3 * MaxInbox {
		r.fire(&Timer{N: int64(i + 1), Delay: 1, Left: 1}, at(), 0)
	}
	if len(r.Inbox) != MaxInbox || r.Dropped != 2*MaxInbox || r.Inbox[0].Timer != 2*MaxInbox+1 {
		t.Errorf("%d entries, %d dropped, from %+v", len(r.Inbox), r.Dropped, r.Inbox[0])
	}
	for len(r.Inbox) > 0 {
		r.Took(r.Inbox[0].N, 1, 0)
	}
	if r.Dropped != 0 || !r.Empty() {
		t.Errorf("%+v", r)
	}
}

// A change of a copy changes nothing else.
func TestClone(t *testing.T) {
	r := example()
	was := fmt.Sprintf("%+v", r)
	c := r.Clone()
	c.Turn(&c.Timers[0], time.Hour, at())
	c.Turn(&c.Timers[0], time.Hour, at())
	c.Leave("b")
	c.Inherit("z", "y", func(*Timer) int { return 7 })
	if now := fmt.Sprintf("%+v", r); now != was {
		t.Errorf("was %s\nis  %s", was, now)
	}
}

func TestLeaveAndInherit(t *testing.T) {
	r := example()
	for i := range r.Timers {
		r.Turn(&r.Timers[i], 0, at())
	}
	r.Leave("other")
	if len(r.Timers) != 2 || len(r.Inbox) != 2 {
		t.Errorf("another boot ended something: %+v", r)
	}
	r.Leave("b")
	if len(r.Timers) != 1 || len(r.Inbox) != 1 || r.Timers[0].Boot != "" || r.Inbox[0].Boot != "" || !r.Inbox[0].Durable {
		t.Errorf("%+v", r)
	}
	r.Inherit("next", "b2", func(x *Timer) int { return x.ID + 4 })
	if r.Session != "next" || r.Timers[0].Boot != "b2" || r.Timers[0].ID != 5 || r.Inbox[0].ID != 5 || r.Inbox[0].Boot != "b2" {
		t.Errorf("%+v", r)
	}
	shared := example()
	shared.Session = "task:1"
	shared.Turn(&shared.Timers[0], 0, at())
	if shared.Leave("b"); len(shared.Timers) != 1 || len(shared.Inbox) != 1 {
		t.Errorf("%+v", shared)
	}
}

// FuzzParse: whatever is in the store, what is read of it makes sense, and is the
// same when it is written.
func FuzzParse(f *testing.F) {
	r := example()
	r.Turn(&r.Timers[0], time.Hour, at())
	value, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	f.Add([]byte(`{"format":1,"caller":"local:ann","workspace":"/work","timers":[{"n":1,"delay":9223372036854775807}]}`))
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, newer, err := Parse(mine.Key(), value)
		if err != nil {
			return
		}
		if newer {
			t.Fatal("a newer row is read")
		}
		for i := range r.Timers {
			if p := r.Timers[i].Period(); p < MinDelay || p > MaxDelay {
				t.Fatalf("a period of %v", p)
			}
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := Parse(mine.Key(), again)
		if err != nil || !reflect.DeepEqual(back, r) {
			t.Fatalf("%s\nis read as %+v, %v\nnot as %+v", again, back, err, r)
		}
		for i := range r.Timers {
			r.Turn(&r.Timers[i], time.Hour, at())
		}
		if len(r.Inbox) > MaxInbox {
			t.Fatalf("%d entries", len(r.Inbox))
		}
	})
}
