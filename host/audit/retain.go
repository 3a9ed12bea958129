package audit

import (
	"errors"
	"fmt"
	"github.com/skillhost/skill/host/audit/journal"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Retain removes whole files of dir, the oldest first and never one that is
// being written: those whose last record is older than maxAge before now, and
// then as many as it takes to get down to maxBytes. A bound of 0 is none. It
// returns the heads of what it removed. The next boot line repeats them, so
// that Verify can tell retention from tampering. The error has kind
// sdk.Unavailable; what was removed until then is returned with it.
func Retain(dir string, maxAge time.Duration, maxBytes int64, now time.Time) ([]Head, error) {
	removed, err := retain(dir, maxAge, maxBytes, now)
	if err != nil {
		return removed, unavailable("audit.Retain", fmt.Sprintf("directory %q", dir), err)
	}
	return removed, nil
}

// A candidate is a file that may be removed.
type candidate struct {
	journal.Entry
	head Head
	size int64
	last time.Time
}

func retain(dir string, maxAge time.Duration, maxBytes int64, now time.Time) ([]Head, error) {
	unlock, err := journal.LockDir(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	files, _, err := journal.List(dir)
	if err != nil {
		return nil, err
	}
	var total int64
	var closed []candidate
	for _, e := range files {
		c, err := examine(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		total += c.size
		if !c.head.Live {
			closed = append(closed, c)
		}
	}
	gone := map[string]bool{}
	var removed []Head
	for _, c := range closed {
		if (maxAge <= 0 || now.Sub(c.last) <= maxAge) && (maxBytes <= 0 || total <= maxBytes) {
			continue
		}
		total -= c.size
		gone[c.Name] = true
		removed = append(removed, c.head)
	}
	if len(removed) == 0 {
		return nil, nil
	}
	if err := noteRemoved(dir, files, gone, removed); err != nil {
		return nil, err
	}
	for i, h := range removed {
		if err := os.Remove(filepath.Join(dir, h.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed[:i], err
		}
	}
	return removed, journal.SyncDir(dir)
}

func examine(e journal.Entry) (candidate, error) {
	c := candidate{Entry: e, last: e.At}
	alive, err := journal.Live(e.Path)
	if err != nil {
		return c, err
	}
	f, err := os.Open(e.Path)
	if err != nil {
		return c, err
	}
	defer func() { _ = f.Close() }()
	d, err := journal.FindEnd(f)
	if err != nil {
		return c, err
	}
	if d.Line != nil && d.Err == nil {
		c.last = d.Time
	}
	c.head, c.size = d.Head(e.Name, alive), d.Size
	return c, nil
}

// noteRemoved writes down what is about to be removed, before it is. What the
// files that go had noted themselves is kept for as long as a file that stays
// remembers it.
func noteRemoved(dir string, files []journal.Entry, gone map[string]bool, removed []Head) error {
	notes, err := journal.Removed(dir)
	if err != nil {
		return err
	}
	remembered := map[string]bool{}
	var old []Head
	for _, e := range files {
		origin, err := originOf(e.Path)
		if err != nil {
			return err
		}
		if gone[e.Name] {
			old = append(old, origin.Removed...)
			continue
		}
		for _, h := range origin.Heads {
			remembered[h.File] = true
		}
	}
	have := map[string]bool{}
	for _, h := range notes {
		have[h.File] = true
	}
	for _, h := range append(old, removed...) {
		if (remembered[h.File] || gone[h.File]) && !have[h.File] {
			have[h.File] = true
			notes = append(notes, h)
		}
	}
	return journal.SetRemoved(dir, notes)
}
