package tasks

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// Running returns how many jobs of o's session run, of whatever skill.
func (t *Tasks) Running(ctx context.Context, o Owner) (n int, err error) {
	scope, err := o.scope()
	if err != nil {
		return 0, err
	}
	value, _, err := t.store.Get(ctx, headBucket, scope)
	if errors.Is(err, store.ErrAbsent) {
		return 0, nil
	}
	if err != nil {
		return 0, unavailable(err)
	}
	var h head
	if json.Unmarshal(value, &h) != nil {
		return 0, &sdk.Error{Kind: sdk.Unavailable, Op: "tasks", What: "the record of jobs is damaged"}
	}
	for _, e := range h.Running {
		at := name{scope, e.ID}
		if r := t.running(at); r != nil {
			if row := r.snapshot(); row.Status == Active && row.Session == o.Session {
				n++
			}
			continue
		}
		row, _, err := t.load(ctx, at)
		switch {
		case errors.Is(err, store.ErrAbsent): // its host is about to write it
		case err != nil:
			return n, err
		case row.Status == Active && row.Session == o.Session:
			n++
		}
	}
	return n, nil
}
