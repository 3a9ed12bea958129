package task

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/skillhost/skill/sdk"
)

// Asked is a call that needs its user.
type Asked struct {
	Call      sdk.Call // to be made again, with the answers
	Questions map[string]sdk.Question
}

// kept is a call as it is kept: byte by byte where it is sealed, which raw JSON
// would not be.
type kept struct {
	sdk.Call
	Args, Narrow []byte
}

func (k *kept) call() sdk.Call {
	c := k.Call
	c.Args, c.Narrow = k.Args, k.Narrow
	return c
}

// waiting is the body of a task that waits: all that is needed to go on.
type waiting struct {
	Call      kept                    `json:"call"`
	Questions map[string]sdk.Question `json:"questions"` // that are open, by key
	IDs       map[string]string       `json:"ids"`       // the tool's own names of all questions, by key
	Answers   map[string]sdk.Answer   `json:"answers"`   // so far, by the tool's names
}

// wait gives each question a key that the task has never had before: clients
// take a key that they have seen for a question that they have answered.
func (a *Asked) wait(round int) waiting {
	w := waiting{Call: kept{a.Call, a.Call.Args, a.Call.Narrow}, Questions: map[string]sdk.Question{}, IDs: map[string]string{}, Answers: map[string]sdk.Answer{}}
	w.Call.Answers = nil
	for id, q := range a.Questions {
		key := fmt.Sprintf("%d.%s", round, id)
		w.Questions[key], w.IDs[key] = q, id
	}
	return w
}

// take moves the answers to open questions into w. It reports whether there
// were any; others are ignored.
func (w *waiting) take(answers map[string]sdk.Answer) bool {
	took := false
	for key, a := range answers {
		if _, open := w.Questions[key]; open {
			delete(w.Questions, key)
			w.Answers[w.IDs[key]] = a
			took = true
		}
	}
	return took
}

// Answer gives answers to a task that waits. When none is open any more, the
// task works again: the caller gets its Run and the call to make. Otherwise the
// Run is nil.
func (t *Tasks) Answer(ctx context.Context, o Owner, id string, answers map[string]sdk.Answer, cancel context.CancelCauseFunc) (*Run, sdk.Call, error) {
	key, ok := o.key(id)
	if !ok {
		return nil, sdk.Call{}, unknown()
	}
	for range maxTries {
		if r := t.current(ctx, key); r != nil {
			_, err := r.task(o)
			return nil, sdk.Call{}, err // it asks nothing
		}
		w, version, err := t.load(ctx, key)
		if err == nil && !o.sees(w.Rights) {
			err = unknown()
		}
		if err != nil || w.Status != Waiting {
			return nil, sdk.Call{}, err
		}
		body, err := t.body(ctx, key, w)
		if err != nil {
			return nil, sdk.Call{}, err
		}
		if body == nil {
			continue // it has changed meanwhile
		}
		var open waiting
		if err := json.Unmarshal(body, &open); err != nil {
			return nil, sdk.Call{}, damaged(err)
		}
		if !open.take(answers) {
			return nil, sdk.Call{}, nil
		}
		r, err := t.proceed(ctx, key, w, &open, version, cancel)
		if err != errConflict {
			call := open.Call.call()
			call.Answers = open.Answers
			return r, call, err
		}
	}
	return nil, sdk.Call{}, busy()
}

// proceed writes what was answered and, if that is all, goes on.
func (t *Tasks) proceed(ctx context.Context, key string, was row, open *waiting, version int64, cancel context.CancelCauseFunc) (*Run, error) {
	w := was
	w.Updated = t.now()
	if len(open.Questions) > 0 {
		body, err := json.Marshal(open)
		if err != nil {
			return nil, err
		}
		return nil, t.write(ctx, key, was, w, body, version)
	}
	boot, err := t.boots.Self()
	if err != nil {
		return nil, err
	}
	w.Boot, w.Status, w.Message, w.Expires, w.Round, w.Body, w.Parts = boot, Working, "", time.Time{}, w.Round+1, "", 0
	r := t.newRun(key, w, cancel)
	if err := t.enroll(r); err != nil {
		return nil, err
	}
	if version, err = t.put(ctx, key, w, version); err != nil {
		r.leave()
		return nil, err
	}
	t.dropBody(ctx, key, was)
	t.announce()
	r.start(version)
	return r, nil
}
