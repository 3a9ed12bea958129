// Package tasks keeps what outlives a reply: background jobs and the output
// that calls write. Rows are in the store, which several hosts of a user share;
// output is in files. What a job does is a function that Go is given.
//
// It does not know tools, grants or protocols, and it decides nothing about who
// may start a job: it only keeps the jobs of one owner from another.
package tasks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// Options of New.
type Options struct {
	Store  store.Store
	Dir    string           // for output: a directory that no tool may read, made when it is needed
	Boots  *boot.Boots      // who else there is
	Now    func() time.Time // nil means time.Now
	Bounds Bounds
}

// Bounds are what is kept. A zero field has the default.
type Bounds struct {
	Running  int           // jobs of a caller and workspace that run at once: 32
	Listed   int           // ended jobs of a skill that are listed: 100
	ListFor  time.Duration // how long an ended job is listed: 8 h
	KeepFor  time.Duration // how long the output of an ended job or call is kept: 7 days
	Logs     int           // jobs and outputs of a caller and workspace that are kept: 300
	LogBytes int64         // of these, in all: 1 GiB
	Segment  int64         // of one output one to two segments are kept: 32 MiB
	Written  int64         // what a job may write before it is killed: 5 GiB
	Grace    time.Duration // what a job has left that is stopped by the host itself: 2 s
}

var defaults = Bounds{Running: 32, Listed: 100, ListFor: 8 * time.Hour, KeepFor: 7 * 24 * time.Hour,
	Logs: 300, LogBytes: 1 << 30, Segment: 32 << 20, Written: 5 << 30, Grace: 2 * time.Second}

func (b Bounds) orDefault() Bounds {
	return Bounds{Running: cmp.Or(b.Running, defaults.Running), Listed: cmp.Or(b.Listed, defaults.Listed),
		ListFor: cmp.Or(b.ListFor, defaults.ListFor), KeepFor: cmp.Or(b.KeepFor, defaults.KeepFor),
		Logs: cmp.Or(b.Logs, defaults.Logs), LogBytes: cmp.Or(b.LogBytes, defaults.LogBytes), Segment: cmp.Or(b.Segment, defaults.Segment),
		Written: cmp.Or(b.Written, defaults.Written), Grace: cmp.Or(b.Grace, defaults.Grace)}
}

// A Status says how a job is. It changes once, from Running to another.
type Status string

// The statuses of a job.
const (
	Active   Status = "running"
	Exited   Status = "exited"    // its tool returned, well or not
	Killed   Status = "killed"    // it was stopped
	TimedOut Status = "timed_out" // it used up its time
	Lost     Status = "lost"      // its host ended and could not say how it did
)

// A Job is what is told of a job, or of a call that has kept its output.
type Job struct {
	ID          int64           `json:"id"`
	Status      Status          `json:"status"`
	Description string          `json:"description,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	StartedAt   time.Time       `json:"started_at"`
	EndedAt     time.Time       `json:"ended_at,omitzero"`
	Bytes       int64           `json:"bytes"`            // of output, in all
	Unread      int64           `json:"unread"`           // of these, what the session has not read
	Lost        int64           `json:"lost,omitempty"`   // bytes of output that could not be kept, beside Bytes
	URI         string          `json:"uri"`              // "skill-output://17"
	Path        string          `json:"path"`             // the file with the end of the output
	Result      json.RawMessage `json:"result,omitempty"` // structured content, or text as a JSON string
	Error       string          `json:"failure,omitempty"`
}

// An Owner is whose jobs are meant: those of one skill for one caller in one
// workspace, as one session of them sees them.
type Owner struct{ Caller, Workspace, Session, Skill string }

// Tasks keeps jobs and outputs. It is safe for concurrent use.
type Tasks struct {
	store  store.Store
	dir    string
	boots  *boot.Boots
	now    func() time.Time
	bounds Bounds

	trimming sync.Mutex // one at a time looks for what to remove
	reading  sync.Mutex // and one moves cursors
	work     sync.WaitGroup

	mu      sync.Mutex
	live    map[name]*Running
	cursors map[reader]int64
	closed  bool
}

// A name is that of a job among all: its scope and its id there.
type name struct {
	scope string
	id    int64
}

// A reader is a session that reads a job.
type reader struct {
	name
	session string
}

// New returns a Tasks. It does nothing yet.
func New(o Options) *Tasks {
	t := &Tasks{store: o.Store, dir: o.Dir, boots: o.Boots, now: o.Now, bounds: o.Bounds.orDefault(),
		live: map[name]*Running{}, cursors: map[reader]int64{}}
	if t.now == nil {
		t.now = time.Now
	}
	return t
}

// scope names the place of an owner's jobs, in which they are numbered. Its
// parts are hashed with their lengths, so that no choice of names leads to
// another caller's place.
func (o Owner) scope() (string, error) {
	if o.Caller == "" || o.Skill == "" { // nobody's would be everybody's
		return "", &sdk.Error{Kind: sdk.Internal, Op: "tasks", What: "a job without an owner"}
	}
	h := sha256.New()
	for _, part := range [...]string{o.Caller, o.Workspace} {
		fmt.Fprintf(h, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// folder is the directory of a job's output. It is that of one boot, because a
// store that is made anew counts from 1 again.
func (t *Tasks) folder(n name, boot string) string {
	return filepath.Join(t.scopeDir(n.scope), folderName(n.id, boot))
}

func folderName(id int64, boot string) string { return strconv.FormatInt(id, 10) + "-" + boot }

// scopeDir shortens the name of a scope: whoever opens the output by hand has to
// look at its path.
func (t *Tasks) scopeDir(scope string) string { return filepath.Join(t.dir, scope[:32]) }

// Close stops all jobs of this process, ends by force those that do not stop
// soon, and records them as killed. No job starts any more. It is idempotent.
func (t *Tasks) Close() error {
	t.mu.Lock()
	t.closed = true
	var jobs []*Running
	for _, r := range t.live {
		if !r.row.Call {
			jobs = append(jobs, r)
		}
	}
	t.mu.Unlock()
	for _, r := range jobs {
		r.Stop("TERM", t.bounds.Grace, "the host shut down")
	}
	done := make(chan struct{})
	go func() {
		t.work.Wait()
		close(done)
	}()
	late := time.NewTimer(t.bounds.Grace + closeWithin)
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-late.C:
		return &sdk.Error{Kind: sdk.Unavailable, Op: "tasks.Close", What: fmt.Sprintf("a job goes on %v after it was ended by force", closeWithin)}
	}
}

// closeWithin is how long Close waits for jobs that were ended by force.
const closeWithin = 5 * time.Second

func (t *Tasks) running(n name) *Running {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[n]
}

// ended is the error of an operation whose ctx is done.
func ended(ctx context.Context) error {
	return &sdk.Error{Kind: sdk.Canceled, Op: "tasks", What: "the caller went away", Err: context.Cause(ctx)}
}
