package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/skillhost/skill/host/tasks/ring"
	"github.com/skillhost/skill/sdk"
)

// Bounds of a reading.
const (
	MinRead     = 16
	MaxRead     = 1 << 20
	DefaultRead = 64 << 10
	MaxWait     = time.Minute
)

// A Reading says what to read of an output.
type Reading struct {
	Cursor *int64        // where to begin; nil: where the session's last Reading ended
	Max    int           // bytes, MinRead to MaxRead
	Wait   time.Duration // for output, if there is none
}

// A Piece is a piece of a job's output: whole lines, unless one is longer than
// Max, or the output ends.
type Piece struct {
	Job
	Data    []byte `json:"-"`
	Cursor  int64  `json:"cursor"`  // where Data begins
	Next    int64  `json:"next"`    // the cursor of what follows
	Dropped int64  `json:"dropped"` // bytes before Data that are no longer kept
	EOF     bool   `json:"eof"`     // the job has ended, and nothing follows
}

// pollEvery is how often a job is looked at that another process runs.
const pollEvery = 200 * time.Millisecond

// Read reads the output of a job, or of a call that has kept its own. It waits
// until there is some, the job has ended, or the time is over.
func (t *Tasks) Read(ctx context.Context, o Owner, id int64, want Reading) (Piece, error) {
	late := time.NewTimer(want.Wait)
	defer late.Stop()
	for waited := want.Wait <= 0; ; {
		n, r, running, err := t.find(ctx, o, id)
		if err != nil {
			return Piece{}, err
		}
		log, err := t.log(n, r, running)
		if err != nil {
			return Piece{}, err
		}
		changed := log.Changed() // before reading: what comes later closes it
		p, err := t.piece(o, n, r, log, want)
		if err != nil || waited || p.EOF || len(p.Data) > 0 || p.Dropped > 0 {
			return p, err
		}
		var poll <-chan time.Time
		if running == nil && r.Status == Active {
			poll = time.After(pollEvery)
		}
		var done chan struct{}
		if running != nil {
			done = running.done
		}
		select {
		case <-changed:
		case <-done:
		case <-poll:
		case <-late.C:
			waited = true // look once more
		case <-ctx.Done():
			return Piece{}, ended(ctx)
		}
	}
}

// log returns the output of a job. That of a job whose files are gone is empty.
func (t *Tasks) log(n name, r row, running *Running) (*ring.Log, error) {
	if running != nil {
		if log := running.output(); log != nil {
			return log, nil
		}
		return nil, absent(n.id) // it has only just begun, and nobody has been told of it
	}
	log, err := ring.Open(t.folder(n, r.Boot))
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "tasks", What: fmt.Sprintf("the output of job %d cannot be read", n.id), Err: err}
	}
	return log, nil
}

func (r *Running) output() *ring.Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log
}

// piece reads once. Readers of one session that name no cursor take turns, so
// that none is given what another was.
func (t *Tasks) piece(o Owner, n name, r row, log *ring.Log, want Reading) (Piece, error) {
	at := reader{n, o.Session}
	t.reading.Lock()
	defer t.reading.Unlock()
	_, end := log.Bounds()
	from := min(t.cursor(at), end)
	if want.Cursor != nil {
		from = *want.Cursor
	}
	if from < 0 || from > end {
		return Piece{}, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("cursor %d: the output of job %d has %d bytes", from, n.id, end), Hint: "take it from the reply to an earlier job.read"}
	}
	over := r.Status != Active
	c, err := log.Read(from, want.Max, over)
	if errors.Is(err, fs.ErrNotExist) { // another process has gone on writing
		if log, err = ring.Open(filepath.Dir(log.Path())); err == nil {
			c, err = log.Read(from, want.Max, over)
		}
	}
	if err != nil {
		return Piece{}, &sdk.Error{Kind: sdk.Unavailable, Op: "tasks", What: fmt.Sprintf("the output of job %d cannot be read", n.id), Err: err}
	}
	_, end = log.Bounds()
	if want.Cursor == nil {
		t.advance(at, c.Next)
	}
	return Piece{Job: t.job(o, n, r), Data: c.Data, Cursor: c.At, Next: c.Next, Dropped: c.Dropped, EOF: over && c.Next == end}, nil
}

// maxCursors bounds what is remembered of readers. Past it, some begin anew.
const maxCursors = 4096

func (t *Tasks) cursor(at reader) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cursors[at]
}

func (t *Tasks) advance(at reader, next int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.cursors[at]; !known && len(t.cursors) >= maxCursors {
		for other := range t.cursors {
			delete(t.cursors, other)
			break
		}
	}
	t.cursors[at] = next
}

// job tells of r to o's session.
func (t *Tasks) job(o Owner, n name, r row) Job {
	return Job{ID: r.ID, Status: r.Status, Description: r.Description, Args: r.Args, StartedAt: r.Started, EndedAt: r.Ended,
		Bytes: r.Bytes, Unread: max(0, r.Bytes-t.cursor(reader{n, o.Session})), Lost: r.Lost,
		URI: "skill-output://" + strconv.FormatInt(r.ID, 10), Path: filepath.Join(t.folder(n, r.Boot), ring.Name), Result: r.Result, Error: r.Error}
}

// maxList is how much of arguments and results a list tells, bytes.
const maxList = 4 << 20

// List lists o's jobs by id: those that run, and the last that have ended.
// Where there is much to tell, the oldest come without arguments and results.
func (t *Tasks) List(ctx context.Context, o Owner) ([]Job, error) {
	scope, err := o.scope()
	if err != nil {
		return nil, err
	}
	since := t.listedSince()
	var jobs []Job
	err = t.rows(ctx, scope, func(r row, _ int64) error {
		n := name{scope, r.ID}
		if running := t.running(n); running != nil {
			r = running.snapshot()
		}
		if r.Call || r.Status != Active && r.Ended.Before(since) {
			return nil
		}
		seen, err := t.sees(o, r)
		if err == nil && seen {
			jobs = append(jobs, t.job(o, n, r))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	gone := -t.bounds.Listed
	for i := range jobs {
		if jobs[i].Status != Active {
			gone++
		}
	}
	jobs = slices.DeleteFunc(jobs, func(j Job) bool {
		if j.Status == Active || gone <= 0 {
			return false
		}
		gone--
		return true
	})
	room := maxList
	for i := len(jobs) - 1; i >= 0; i-- {
		if room -= len(jobs[i].Args) + len(jobs[i].Result); room < 0 {
			jobs[i].Args, jobs[i].Result = nil, nil
		}
	}
	return jobs, nil
}

// killWithin is how long Kill waits for a job that was ended by force.
const killWithin = 5 * time.Second

// Kill asks a job to stop with a signal, ends it by force after grace, waits
// until it has ended, and returns how it was before and is now. A job that has
// ended stays as it is.
func (t *Tasks) Kill(ctx context.Context, o Owner, id int64, signal string, grace time.Duration) (was Status, j Job, err error) {
	n, r, running, err := t.find(ctx, o, id)
	if err != nil {
		return "", Job{}, err
	}
	switch {
	case r.Status != Active:
		return r.Status, t.job(o, n, r), nil
	case r.Call:
		return "", Job{}, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%d is a call that runs, and no job", id), Hint: "its caller can cancel it"}
	case running == nil:
		return "", Job{}, &sdk.Error{Kind: sdk.Unavailable, What: fmt.Sprintf("job %d is run by another process", id)}
	}
	running.Stop(signal, grace, "")
	late := time.NewTimer(grace + killWithin)
	defer late.Stop()
	select {
	case <-running.done:
	case <-late.C:
	case <-ctx.Done():
		return "", Job{}, ended(ctx)
	}
	return r.Status, t.job(o, n, running.snapshot()), nil
}
