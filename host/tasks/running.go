package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/tasks/ring"
	"github.com/skillhost/skill/sdk"
)

// Bounds of what a row keeps, bytes.
const (
	maxArgs   = 64 << 10
	maxResult = 64 << 10
	maxError  = 4 << 10
)

// A Spec says what a job is to be.
type Spec struct {
	Owner
	By          string // the id of the call that starts it
	Description string
	Args        json.RawMessage // shown with the job, if they are not too long
}

// A Running is a job that this process runs.
type Running struct {
	t    *Tasks
	name name
	log  *ring.Log
	soft context.Context
	hard context.Context
	done chan struct{} // closed when it has ended

	endSoft, endHard context.CancelCauseFunc

	mu      sync.Mutex
	row     row
	version int64
	written int64
	stopped bool
	killAt  time.Time   // when it is ended by force
	kill    *time.Timer // rings then
}

// An End says how a job's function ended.
type End struct {
	Result   json.RawMessage
	Error    string
	TimedOut bool
	Killed   bool
}

// Begin makes a job that has not begun: Go or Discard follows. The error has
// kind Limit if there are too many.
func (t *Tasks) Begin(ctx context.Context, s Spec) (*Running, error) { return t.begin(ctx, s, false) }

func (t *Tasks) begin(ctx context.Context, s Spec, call bool) (*Running, error) {
	scope, err := s.scope()
	if err != nil {
		return nil, err
	}
	boot, err := t.boots.Self()
	if err != nil {
		return nil, err
	}
	t.trim(ctx, scope, 1)
	id, err := t.admit(ctx, scope, boot, call)
	if err != nil {
		return nil, err
	}
	r := &Running{t: t, name: name{scope, id}, done: make(chan struct{}),
		row: row{ID: id, Call: call, Skill: s.Skill, Session: s.Session, Boot: boot, By: s.By, Status: Active, Description: s.Description, Started: t.now()}}
	if len(s.Args) <= maxArgs {
		r.row.Args = s.Args
	}
	r.soft, r.endSoft = context.WithCancelCause(context.Background())
	r.hard, r.endHard = context.WithCancelCause(context.Background())
	if err := t.enroll(r); err != nil {
		t.release(ctx, r.name)
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// open writes the row, and then makes the output: a directory without a row is
// one that nobody needs.
func (r *Running) open(ctx context.Context) error {
	version, err := r.t.save(ctx, r.name.scope, r.row, 0)
	if err != nil {
		return unavailable(err)
	}
	crowded := func() bool { return r.t.trim(context.Background(), r.name.scope, 0) > r.t.bounds.LogBytes }
	log, err := ring.Create(r.t.folder(r.name, r.row.Boot), r.t.bounds.Segment, crowded)
	if err != nil {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "tasks", What: "the output of a job cannot be kept", Err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version, r.log = version, log
	return nil
}

// enroll makes r known to this process, before any other can see it.
func (t *Tasks) enroll(r *Running) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "tasks", What: "the host is shutting down"}
	}
	t.live[r.name] = r
	if !r.row.Call {
		t.work.Add(1)
	}
	return nil
}

// leave is the end of enroll.
func (r *Running) leave() {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	if r.t.live[r.name] == r {
		delete(r.t.live, r.name)
	}
}

// Discard forgets a job that has not begun, with its output.
func (r *Running) Discard() {
	if r.log != nil {
		_ = r.log.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveWithin)
	defer cancel()
	// What cannot be removed reads as lost some day, and is swept after that.
	_ = r.t.store.Delete(ctx, bucket(r.name.scope), key(r.name.id), store.Any)
	_ = os.RemoveAll(r.t.folder(r.name, r.row.Boot))
	if !r.row.Call {
		r.t.release(ctx, r.name)
		defer r.t.work.Done()
	}
	r.leave()
	close(r.done)
}

// ID returns the job's id.
func (r *Running) ID() int64 { return r.name.id }

// Job tells of the job.
func (r *Running) Job() Job {
	w := r.snapshot()
	return r.t.job(Owner{Session: w.Session}, r.name, w)
}

// Go runs the job. soft ends with cause *sdk.Stop when somebody asks it to
// stop, hard when it is out of time after that.
func (r *Running) Go(run func(soft, hard context.Context) End) {
	go func() {
		defer r.t.work.Done()
		r.finish(guarded(run, r.soft, r.hard))
	}()
}

// guarded is run, except that a panic is an error: it would take down the host.
func guarded(run func(soft, hard context.Context) End, soft, hard context.Context) (e End) {
	defer func() {
		if p := recover(); p != nil {
			e = End{Error: "the host failed"}
		}
	}()
	return run(soft, hard)
}

// Stop asks the job to stop and, when grace is over, ends it by force. Asked
// again, it can only become sooner. The signal "KILL" leaves no grace. why is
// told as the job's error.
func (r *Running) Stop(signal string, grace time.Duration, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.row.Status != Active {
		return
	}
	if signal == "KILL" {
		grace = 0
	}
	if !r.stopped {
		r.stopped = true
		r.row.Error = why
	}
	stop := &sdk.Stop{Signal: signal, Grace: grace}
	r.endSoft(stop)
	at := time.Now().Add(grace)
	if !r.killAt.IsZero() && !at.Before(r.killAt) {
		return
	}
	r.killAt = at
	force := func() { r.endHard(&sdk.Error{Kind: sdk.Canceled, What: "the job was killed", Err: stop}) }
	if r.kill != nil {
		r.kill.Stop()
	}
	if grace <= 0 {
		force()
		return
	}
	r.kill = time.AfterFunc(grace, force)
}

// append adds to the job's output.
func (r *Running) append(p []byte) error {
	r.mu.Lock()
	r.written += int64(len(p))
	over := r.written > r.t.bounds.Written
	r.mu.Unlock()
	if over {
		why := fmt.Sprintf("it wrote more than %d MiB of output", r.t.bounds.Written>>20)
		r.Stop("TERM", r.t.bounds.Grace, why)
		return &sdk.Error{Kind: sdk.Limit, What: why}
	}
	if err := r.log.Append(p); err != nil {
		return &sdk.Error{Kind: sdk.Invalid, What: "the output has ended", Err: err}
	}
	return nil
}

// saveWithin bounds the writing of a job's end.
const saveWithin = 10 * time.Second

// finish records the end. Output is over before it is seen to be.
func (r *Running) finish(e End) {
	err := r.log.Close()
	r.mu.Lock()
	if r.kill != nil {
		r.kill.Stop()
	}
	w := &r.row
	switch {
	case r.stopped || e.Killed:
		w.Status = Killed
	case e.TimedOut:
		w.Status = TimedOut
	default:
		w.Status = Exited
	}
	w.Ended, w.Result = r.t.now(), e.Result
	if w.Error == "" {
		w.Error = cut(e.Error, maxError)
	}
	switch {
	case len(w.Result) > maxResult:
		w.Result = nil
		w.say(fmt.Sprintf("its result of %d bytes is too long to be kept", len(e.Result)))
	case len(w.Result) > 0 && !json.Valid(w.Result): // a row with it could not be written
		w.Result = nil
		w.say("its result is not JSON")
	}
	_, w.Bytes = r.log.Bounds()
	lost, why := r.log.Lost()
	if w.Lost = lost; lost > 0 {
		w.say(unkept(lost, why))
	} else if err != nil {
		w.say(unkept(0, err))
	}
	r.mu.Unlock()
	r.endSoft(context.Canceled)
	r.endHard(context.Canceled)
	r.record()
	close(r.done)
}

// unkept says that output could not be kept, without the path of the file.
func unkept(n int64, why error) string {
	var errno syscall.Errno
	if errors.As(why, &errno) {
		why = errno
	} else {
		why = errors.New("the file cannot be written")
	}
	return fmt.Sprintf("%d bytes of its output could not be kept: %v", n, why)
}

// say adds to what went wrong.
func (w *row) say(what string) {
	if w.Error != "" {
		w.Error += "; "
	}
	w.Error += what
}

// record writes the end to the store. If it cannot, the job stays known to this
// process, and Sweep tries again.
func (r *Running) record() {
	ctx, cancel := context.WithTimeout(context.Background(), saveWithin)
	defer cancel()
	r.mu.Lock()
	w, version := r.row, r.version
	r.mu.Unlock()
	if _, err := r.t.save(ctx, r.name.scope, w, version); err != nil && !errors.Is(err, store.ErrConflict) {
		return
	}
	if !w.Call {
		r.t.release(ctx, r.name)
	}
	r.leave()
}

// snapshot returns the row as it is now.
func (r *Running) snapshot() row {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.row
	w.Args = slices.Clip(w.Args)
	if w.Status == Active && r.log != nil {
		_, w.Bytes = r.log.Bounds()
		lost, why := r.log.Lost()
		if w.Lost = lost; lost > 0 {
			w.say(unkept(lost, why))
		}
	}
	return w
}

// cut shortens s to n bytes at the end of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
