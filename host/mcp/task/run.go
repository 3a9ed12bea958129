package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// The causes with which the context of a run ends.
var (
	ErrCancelled = errors.New("the task was cancelled")
	ErrShutdown  = errors.New("the host shut down")
)

// A Run is a task that this process runs. Who began it calls End once.
type Run struct {
	t      *Tasks
	id     string
	key    string
	rights string
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended

	mu   sync.Mutex
	row  row
	was  row    // what the store has
	old  int64  // the version of that
	body []byte // that the store is to have
	over bool   // it has ended, and may have to be recorded yet
}

// An End says how a run has ended.
type End struct {
	Status  Status          // final; Waiting if Asked
	Message string          // for people
	Body    json.RawMessage // the result or the error
	Asked   *Asked          // the call goes on when its questions are answered
}

// Begin makes a task that works, and returns when the store has it. cancel ends
// what it does. The error has kind Limit if there are too many.
func (t *Tasks) Begin(ctx context.Context, o Owner, cancel context.CancelCauseFunc) (*Run, error) {
	boot, err := t.boots.Self()
	if err != nil {
		return nil, err
	}
	id := rand.Text()
	key, ok := o.key(id)
	if !ok { // nobody's would be everybody's
		return nil, &sdk.Error{Kind: sdk.Internal, Op: "task", What: "a task without an owner"}
	}
	t.admitting.Lock()
	defer t.admitting.Unlock()
	if err := t.room(ctx, o); err != nil {
		return nil, err
	}
	now := t.now()
	r := t.newRun(key, row{ID: id, Rights: o.Rights, Boot: boot, Status: Working, Created: now, Updated: now, Round: 1}, cancel)
	if err := t.enroll(r); err != nil {
		return nil, err
	}
	version, err := t.put(ctx, key, r.row, 0)
	if err != nil {
		r.leave()
		return nil, err
	}
	r.start(version)
	return r, nil
}

func (t *Tasks) newRun(key string, w row, cancel context.CancelCauseFunc) *Run {
	return &Run{t: t, id: w.ID, key: key, rights: w.Rights, cancel: cancel, done: make(chan struct{}), row: w}
}

// room fails if o may have no more tasks.
func (t *Tasks) room(ctx context.Context, o Owner) error {
	mine, all := 0, 0
	place := o.place()
	t.again()
	err := t.sweep(ctx, func(key string) {
		all++
		if strings.HasPrefix(key, place) {
			mine++
		}
	})
	switch {
	case err != nil:
		return err
	case mine >= t.bounds.Caller:
		return &sdk.Error{Kind: sdk.Limit, Op: "task", What: fmt.Sprintf("the caller has %d tasks already, which is the most", mine), Hint: "wait until some have expired"}
	case all >= t.bounds.All:
		return &sdk.Error{Kind: sdk.Limit, Op: "task", What: fmt.Sprintf("there are %d tasks already, which is the most", all), Hint: "wait until some have expired"}
	}
	return nil
}

// enroll makes r known to this process, before any other can see it run.
func (t *Tasks) enroll(r *Run) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return &sdk.Error{Kind: sdk.Unavailable, Op: "task", What: "the host is shutting down"}
	case t.live[r.key] != nil:
		return errConflict
	case len(t.live) >= t.bounds.Running:
		return &sdk.Error{Kind: sdk.Limit, Op: "task", What: fmt.Sprintf("%d tasks run already, which is the most", len(t.live)), Hint: "wait until one has ended"}
	}
	t.live[r.key] = r
	t.work.Add(1)
	return nil
}

// start watches over r, whose row is in the store.
func (r *Run) start(version int64) {
	r.mu.Lock()
	r.was, r.old = r.row, version
	r.mu.Unlock()
	go r.watch()
}

// leave is the end of a run that has none.
func (r *Run) leave() {
	r.t.forget(r)
	close(r.done)
	r.t.work.Done()
}

func (t *Tasks) forget(r *Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[r.key] == r {
		delete(t.live, r.key)
	}
}

// watch ends the run if another host was asked to.
func (r *Run) watch() {
	tick := time.NewTicker(r.t.bounds.Look)
	defer tick.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-tick.C:
		}
		ctx, stop := context.WithTimeout(context.Background(), saveWithin)
		value, _, err := r.t.store.Get(ctx, rowBucket, r.key)
		stop()
		var w row
		if err == nil && json.Unmarshal(value, &w) == nil && w.Stop {
			r.cancel(ErrCancelled)
			return
		}
	}
}

// ID is the id of the task.
func (r *Run) ID() string { return r.id }

// Round counts the runs of the task from 1.
func (r *Run) Round() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.row.Round
}

// Task tells of the task.
func (r *Run) Task() Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, err := r.row.task(r.body)
	if err != nil { // its questions were encoded here: cannot happen
		t.Status = Failed
	}
	return t
}

func (r *Run) task(o Owner) (Task, error) {
	if !o.sees(r.rights) {
		return Task{}, unknown()
	}
	return r.Task(), nil
}

// maxMessage bounds what a task says of itself, bytes.
const maxMessage = 1 << 10

// Say says how the work goes. It is not kept.
func (r *Run) Say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && text != "" {
		r.row.Message = cut(text)
	}
}

func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxMessage)], "") }

const (
	saveWithin = 10 * time.Second // bounds the writing of an end
	saveTries  = 3
)

// End records what came of the run, or what it asks.
func (r *Run) End(e End) {
	if !r.settle(e) {
		return // it was ended by force
	}
	if r.save() == nil {
		r.t.forget(r)
	} // else it stays known to this process, and Sweep tries again
	close(r.done)
	r.t.work.Done()
}

// settle makes e the end of r; false if it has one.
func (r *Run) settle(e End) bool {
	now := r.t.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.over = true
	if e.Asked == nil {
		r.row.end(e.Status, cut(e.Message), now, r.t.bounds.TTL)
		r.body = e.Body
		return true
	}
	body, err := json.Marshal(e.Asked.wait(r.row.Round))
	if err != nil { // from a guest, and not JSON
		r.row.end(Failed, "the tool's question cannot be recorded", now, r.t.bounds.TTL)
		return true
	}
	r.row.end(Waiting, cut(e.Message), now, r.t.bounds.Wait)
	r.body = body
	return true
}

// save writes the end to the store.
func (r *Run) save() (err error) {
	ctx, stop := context.WithTimeout(context.Background(), saveWithin)
	defer stop()
	for range saveTries {
		r.mu.Lock()
		was, w, body, old := r.was, r.row, r.body, r.old
		r.mu.Unlock()
		if err = r.t.write(ctx, r.key, was, w, body, old); err == nil {
			return nil
		}
		if err == errConflict && !r.adopt(ctx) {
			return nil // it has an end that others may have seen
		}
	}
	return err
}

// adopt takes over a row that others have changed: false if it has an end, or
// is gone.
func (r *Run) adopt(ctx context.Context) bool {
	value, version, err := r.t.store.Get(ctx, rowBucket, r.key)
	if err != nil {
		return !errors.Is(err, store.ErrAbsent)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var w row
	if json.Unmarshal(value, &w) != nil || w.Status != Working || w.Boot != r.row.Boot {
		return false
	}
	r.was, r.old = w, version
	return true
}

func (r *Run) ending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// Sweep removes what has expired, and records what could not be recorded when
// it ended.
func (t *Tasks) Sweep(ctx context.Context) error {
	t.again()
	return t.sweep(ctx, func(string) {})
}

// again tries to record the ends that could not be recorded.
func (t *Tasks) again() {
	t.mu.Lock()
	var late []*Run
	for _, r := range t.live {
		select {
		case <-r.done:
			late = append(late, r)
		default:
		}
	}
	t.mu.Unlock()
	for _, r := range late {
		r.mu.Lock()
		expired := r.row.expired(t.now())
		r.mu.Unlock()
		if expired || r.save() == nil {
			t.forget(r)
		}
	}
}

// Close cancels what runs and waits until it has ended; what has not when ctx is
// done is recorded as cancelled all the same. No task begins any more. It is
// idempotent.
func (t *Tasks) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	var runs []*Run
	for _, r := range t.live {
		runs = append(runs, r)
	}
	t.mu.Unlock()
	for _, r := range runs {
		r.cancel(ErrShutdown)
	}
	done := make(chan struct{})
	go func() {
		t.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, r := range runs {
		r.End(End{Status: Cancelled, Message: ErrShutdown.Error()})
	}
	<-done // recording is bounded
	return nil
}
