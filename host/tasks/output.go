package tasks

import (
	"context"
	"io/fs"
	"sync"

	"github.com/skillhost/skill/sdk"
)

// An Output is what one call or job writes. A call's is held in memory until it
// is large, and kept after the call only if it was linked to: nobody else knows
// its id. It is safe for concurrent use.
type Output struct {
	t    *Tasks
	spec Spec

	mu      sync.Mutex
	held    []byte   // until there is a file
	running *Running // nil until then
	linked  bool
	over    bool
}

// A Link says where an output is.
type Link struct {
	ID    int64  `json:"id"`
	URI   string `json:"uri"`
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// maxHeld is how much of a call's output is held in memory, bytes.
const maxHeld = 64 << 10

// Output returns the output of a call, which End ends.
func (t *Tasks) Output(s Spec) *Output { return &Output{t: t, spec: s} }

// Output returns the output of a job, which ends with the job.
func (r *Running) Output() *Output { return &Output{t: r.t, running: r, linked: true} }

// Append adds p, and returns how many bytes there are, and how many more could
// not be kept.
func (o *Output) Append(ctx context.Context, p []byte) (bytes, lost int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return 0, 0, &sdk.Error{Kind: sdk.Invalid, What: "the output has ended", Err: fs.ErrClosed}
	}
	if o.running == nil && len(o.held)+len(p) <= maxHeld {
		o.held = append(o.held, p...)
		return int64(len(o.held)), 0, nil
	}
	if err := o.begin(ctx); err != nil {
		return 0, 0, err
	}
	if err := o.running.append(p); err != nil {
		return 0, 0, err
	}
	w := o.running.snapshot()
	return w.Bytes, w.Lost, nil
}

// begin moves what is held to a file.
func (o *Output) begin(ctx context.Context) error {
	if o.running != nil {
		return nil
	}
	r, err := o.t.begin(ctx, o.spec, true)
	if err != nil {
		return err
	}
	o.running = r
	err = r.append(o.held)
	o.held = nil
	return err
}

// Link keeps the output of a call after it has ended, and says where.
func (o *Output) Link(ctx context.Context) (Link, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return Link{}, &sdk.Error{Kind: sdk.Invalid, What: "the output has ended", Err: fs.ErrClosed}
	}
	if err := o.begin(ctx); err != nil {
		return Link{}, err
	}
	o.linked = true
	j := o.running.Job()
	return Link{ID: j.ID, URI: j.URI, Path: j.Path, Bytes: j.Bytes}, nil
}

// End ends the output of a call. It is idempotent; a job's it leaves alone.
func (o *Output) End(e End) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || o.running != nil && !o.running.row.Call {
		return
	}
	o.over, o.held = true, nil
	switch {
	case o.running == nil:
	case o.linked:
		o.running.finish(e)
	default:
		o.running.Discard()
	}
}
