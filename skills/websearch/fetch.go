package main

import (
	"slices"
	"time"

	"github.com/skillhost/skill/sdk/guest"
)

// When a search does not wait for everybody: so many engines have results, and
// the others take longer than settings.Patience times their median, but at least
// so much longer.
const (
	enough = 6
	slack  = 50 * time.Millisecond
)

// maxBody bounds the page of one engine, in bytes.
const maxBody = 2 << 20

// A trial is one engine in one search.
type trial struct {
	outcome
	op    *guest.Op
	took  time.Duration
	until time.Time // of a suspension
	why   state
	done  bool
}

// fetch asks all engines at the same time and returns when all have answered,
// when enough have, or when the time is over. One goroutine waits for all: the
// module has but one thread.
func fetch(c *guest.Call, trials []*trial, q query, total time.Duration, patience float64) {
	begin := time.Now()
	for _, t := range trials {
		if t.done {
			continue
		}
		r := t.source.ask(t.source, q)
		r.Timeout, r.Most = max(min(t.source.timeout, total), time.Millisecond), maxBody
		t.op = c.StartRequest(r)
	}
	for {
		var open []*trial
		var ops []*guest.Op
		for _, t := range trials {
			if !t.done {
				open, ops = append(open, t), append(ops, t.op)
			}
		}
		if len(open) == 0 {
			return
		}
		i, err := guest.WaitAnyFor(time.Until(begin.Add(limit(trials, total, patience))), ops...)
		if err != nil || i < 0 {
			giveUp(open, time.Since(begin) >= total, time.Since(begin))
			return
		}
		t := open[i]
		t.took = time.Since(begin)
		t.finish(q.now)
		t.reading.hasty = t.reading.state == stateTimeout && t.source.timeout > total
	}
}

// limit is how long the search takes at most, from its beginning, by what is
// known now.
func limit(trials []*trial, total time.Duration, patience float64) time.Duration {
	var took []time.Duration
	for _, t := range trials {
		if t.done && t.reading.state == stateOK {
			took = append(took, t.took)
		}
	}
	if len(took) < enough || patience == 0 {
		return total
	}
	slices.Sort(took)
	median := took[len(took)/2]
	return min(total, max(time.Duration(patience*float64(median)), median+slack))
}

// giveUp ends what is not done, because the time of the search is over, or
// because nobody waits for it any more. Its requests end with the call.
func giveUp(open []*trial, over bool, took time.Duration) {
	for _, t := range open {
		t.done, t.took, t.reading = true, took, reading{state: stateLate}
		if over {
			t.reading = reading{state: stateTimeout, hasty: true}
		}
	}
}

// finish reads what t's engine has answered.
func (t *trial) finish(now time.Time) {
	t.done = true
	reply, err := t.op.Wait()
	if err != nil {
		t.reading = failed(err)
		return
	}
	t.reading = judge(t.source, answerOf(reply, now))
}
