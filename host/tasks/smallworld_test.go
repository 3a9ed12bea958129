package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// All short histories of one job: its status changes once, all who may look see
// the same, and it is the one that the history asks for.
func TestSmallWorld(t *testing.T) {
	events := []string{"exit", "late", "term", "die", "look", "sweep", "close"}
	var walk func(history []string)
	n := 0
	walk = func(history []string) {
		if len(history) == 4 {
			n++
			live(t, history)
			return
		}
		for _, e := range events {
			walk(append(history[:len(history):len(history)], e))
		}
	}
	walk(nil)
	if n != 2401 {
		t.Error(n)
	}
}

func live(t *testing.T, history []string) {
	w := newWorld(t)
	w.dir = fmt.Sprintf("%s/%p", w.dir, w)
	h, other := w.host("b1"), w.host("b2")
	o := ann
	o.Session = "s2"
	r := begin(t, h, ann)
	end := make(chan End, len(history)+1)
	r.Go(func(soft, _ context.Context) End {
		select {
		case e := <-end:
			return e
		case <-soft.Done():
			return End{}
		}
	})
	want, dead := Active, false
	settle := func(s Status) {
		if want == Active {
			want = s
		}
		<-r.done
	}
	for i, e := range history {
		switch {
		case e == "look":
			_ = list(t, other, o)
		case e == "sweep":
			if err := other.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		case dead: // nothing of it runs
		case e == "exit" && want == Active:
			end <- End{}
			settle(Exited)
		case e == "late" && want == Active:
			end <- End{TimedOut: true}
			settle(TimedOut)
		case e == "term":
			r.Stop("TERM", time.Hour, "")
			settle(Killed)
		case e == "close":
			_ = h.Close()
			settle(Killed)
		case e == "die":
			w.die("b1")
			dead = true
			if want == Active {
				want = Lost
			}
		}
		switch jobs := list(t, other, o); {
		case !dead && len(jobs) != 0:
			t.Fatalf("%v: after %d another session sees %+v", history, i, jobs)
		case dead && (len(jobs) != 1 || jobs[0].Status != want):
			t.Fatalf("%v: after %d %+v, want %s", history, i, jobs, want)
		}
		if !dead {
			if jobs := list(t, h, ann); len(jobs) != 1 || jobs[0].Status != want {
				t.Fatalf("%v: after %d %+v, want %s", history, i, jobs, want)
			}
		}
	}
	if dead { // what is left of it writes its end: too late
		end <- End{Result: json.RawMessage(`1`)}
		<-r.done
		if jobs := list(t, other, o); jobs[0].Status != want {
			t.Fatalf("%v: %s turned into %s", history, want, jobs[0].Status)
		}
	} else {
		_ = h.Close()
	}
}
