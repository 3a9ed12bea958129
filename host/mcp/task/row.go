package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// A row is a task as the store has it, without its body. Who runs the task
// writes its end; anybody may write that it is lost or to be stopped.
type row struct {
	ID      string    `json:"id"`
	Rights  string    `json:"rights,omitempty"`
	Boot    string    `json:"boot"` // who runs it, if it works
	Status  Status    `json:"status"`
	Message string    `json:"message,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Expires time.Time `json:"expires,omitzero"`
	Round   int       `json:"round,omitempty"` // how often it has asked its user
	Stop    bool      `json:"stop,omitempty"`  // it is to be cancelled by who runs it
	Body    string    `json:"body,omitempty"`  // the name of its body
	Parts   int       `json:"parts,omitempty"` // of that
}

// Rows and bodies have buckets of their own: rows are small, and are listed.
const (
	rowBucket  = "mcp.tasks"
	bodyBucket = "mcp.tasks.bodies"
	maxPart    = 8 << 20
)

// errConflict says that somebody else has changed the row.
var errConflict = errors.New("task: the row has changed")

func (w *row) end(s Status, message string, now time.Time, ttl time.Duration) {
	w.Status, w.Message, w.Updated, w.Expires, w.Stop = s, message, now, now.Add(ttl), false
	w.Body, w.Parts = "", 0
}

// task tells of w and its body.
func (w *row) task(body []byte) (Task, error) {
	t := Task{ID: w.ID, Status: w.Status, Message: w.Message, Created: w.Created, Updated: w.Updated, Expires: w.Expires}
	switch w.Status {
	case Waiting:
		var open waiting
		if err := json.Unmarshal(body, &open); err != nil {
			return t, damaged(err)
		}
		t.Questions = open.Questions
	case Completed, Failed:
		t.Body = body
	}
	return t, nil
}

// load reads a row. One that has expired is removed and unknown; one whose host
// has ended becomes one that failed.
func (t *Tasks) load(ctx context.Context, key string) (row, int64, error) {
	for range maxTries {
		value, version, err := t.store.Get(ctx, rowBucket, key)
		if errors.Is(err, store.ErrAbsent) {
			return row{}, 0, unknown()
		}
		if err != nil {
			return row{}, 0, unavailable(err)
		}
		was, w, err := t.settle(key, value)
		switch {
		case err != nil:
			return w, 0, err
		case w.expired(t.now()):
			if err := t.remove(ctx, key, version); err != nil && err != errConflict {
				return row{}, 0, err
			}
			return row{}, 0, unknown()
		case w == was:
			return w, version, nil
		}
		if err := t.swap(ctx, key, was, w, version); err != nil && err != errConflict {
			return row{}, 0, err
		}
	}
	return row{}, 0, busy()
}

func (w *row) expired(now time.Time) bool { return !w.Expires.IsZero() && now.After(w.Expires) }

// settle decodes a row as it was and, if nobody runs it any more, makes it one
// that failed.
func (t *Tasks) settle(key string, value []byte) (was, w row, err error) {
	if err := json.Unmarshal(value, &was); err != nil {
		return was, was, damaged(err)
	}
	w = was
	if w.Status != Working {
		return was, w, nil
	}
	boot, err := t.boots.Self()
	if err != nil {
		return was, w, err
	}
	lost := "the host that ran it has ended"
	if w.Boot == boot {
		if t.running(key) != nil {
			return was, w, nil
		}
		lost = "what came of it could not be recorded"
	} else if over, err := t.boots.Over(w.Boot); err != nil || !over {
		return was, w, err
	}
	w.end(Failed, lost, t.now(), t.bounds.TTL)
	return was, w, nil
}

// swap writes w, whose version is still old or it is errConflict, and then
// removes the body that it was and is no more.
func (t *Tasks) swap(ctx context.Context, key string, was, w row, old int64) error {
	if _, err := t.put(ctx, key, w, old); err != nil {
		return err
	}
	if was.Body != w.Body {
		t.dropBody(ctx, key, was)
	}
	t.announce()
	return nil
}

func (t *Tasks) put(ctx context.Context, key string, w row, old int64) (version int64, err error) {
	value, err := json.Marshal(w)
	if err != nil {
		return 0, err
	}
	version, err = t.store.Put(ctx, rowBucket, key, value, old)
	if errors.Is(err, store.ErrConflict) {
		return 0, errConflict
	}
	return version, unavailable(err)
}

func partKey(key, body string, part int) string { return fmt.Sprintf("%s/%s/%06d", key, body, part) }

// write writes a new body and then w, which has it. The name of a body is used
// once, so that no two writers of one task mix theirs.
func (t *Tasks) write(ctx context.Context, key string, was, w row, body []byte, old int64) error {
	w.Body, w.Parts = "", 0
	if len(body) > 0 {
		w.Body = rand.Text()
	}
	var err error
	for rest := body; len(rest) > 0 && err == nil; w.Parts++ {
		part := rest[:min(len(rest), maxPart)]
		_, err = t.store.Put(ctx, bodyBucket, partKey(key, w.Body, w.Parts), part, store.Any)
		rest = rest[len(part):]
	}
	if err = unavailable(err); err == nil {
		err = t.swap(ctx, key, was, w, old)
	}
	if err != nil {
		t.dropBody(ctx, key, w)
	}
	return err
}

// body reads the body of w; nil if it has none, or has another one by now.
func (t *Tasks) body(ctx context.Context, key string, w row) ([]byte, error) {
	var body []byte
	for n := range w.Parts {
		part, _, err := t.store.Get(ctx, bodyBucket, partKey(key, w.Body, n))
		if errors.Is(err, store.ErrAbsent) {
			return nil, nil
		}
		if err != nil {
			return nil, unavailable(err)
		}
		if w.Parts == 1 {
			return part, nil
		}
		body = append(body, part...)
	}
	return body, nil
}

// dropBody removes the body of w. What it cannot remove goes with the task.
func (t *Tasks) dropBody(ctx context.Context, key string, w row) {
	for n := range w.Parts {
		_ = t.store.Delete(ctx, bodyBucket, partKey(key, w.Body, n), store.Any)
	}
}

// remove forgets a task whose version is still that. The row goes last, so that
// parts that are left have a row by which they are found.
func (t *Tasks) remove(ctx context.Context, key string, version int64) error {
	for {
		parts, err := t.store.List(ctx, bodyBucket, key+"/", "", 1) // one, because they are large
		if err != nil {
			return unavailable(err)
		}
		if len(parts) == 0 {
			break
		}
		if err := t.store.Delete(ctx, bodyBucket, parts[0].Key, store.Any); err != nil {
			return unavailable(err)
		}
	}
	err := t.store.Delete(ctx, rowBucket, key, version)
	if errors.Is(err, store.ErrConflict) {
		return errConflict
	}
	return unavailable(err)
}

// rowPage is how many rows are asked of the store at once.
const rowPage = 64

// sweep removes what has expired, settles what nobody runs any more, and calls
// yield with the key of each task that is left.
func (t *Tasks) sweep(ctx context.Context, yield func(key string)) error {
	for after := ""; ; {
		items, err := t.store.List(ctx, rowBucket, "", after, rowPage)
		if err != nil {
			return unavailable(err)
		}
		for _, it := range items {
			after = it.Key
			was, w, err := t.settle(it.Key, it.Value)
			if err == nil && (w != was || w.expired(t.now())) {
				_, _, err = t.load(ctx, it.Key)
			}
			switch sdk.KindOf(err) {
			case sdk.NotFound:
			case sdk.Canceled:
				return err
			default:
				yield(it.Key) // it counts, whatever is wrong with it
			}
		}
		if len(items) < rowPage {
			return nil
		}
	}
}

// unavailable is the error of an operation that the store could not do.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	kind := sdk.Unavailable
	if sdk.KindOf(err) == sdk.Canceled {
		kind = sdk.Canceled
	}
	return &sdk.Error{Kind: kind, Op: "task", What: "the record of tasks cannot be used", Err: err}
}

func damaged(err error) error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: "task", What: "the record of a task is damaged", Err: err}
}
