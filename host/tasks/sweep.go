package tasks

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/host/store"
)

// Sweep removes what is kept no longer, marks jobs of dead hosts as lost, and
// writes down the ends that could not be written before. The host calls it when
// it starts and every hour. The error says what could not be done; the rest was.
func (t *Tasks) Sweep(ctx context.Context) error {
	var errs []error
	for _, r := range t.unsaved() {
		r.record()
	}
	for after := ""; ; {
		heads, err := t.store.List(ctx, headBucket, "", after, rowPage)
		if err != nil {
			return errors.Join(append(errs, unavailable(err))...)
		}
		for _, h := range heads {
			after = h.Key
			if _, err := t.clean(ctx, h.Key, 0); err != nil {
				errs = append(errs, err)
			}
		}
		if len(heads) < rowPage {
			return errors.Join(errs...)
		}
	}
}

// unsaved lists the jobs that have ended without a record of it.
func (t *Tasks) unsaved() []*Running {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*Running
	for _, r := range t.live {
		select {
		case <-r.done:
			out = append(out, r)
		default:
		}
	}
	return out
}

// trim makes room in a scope for so many more, and returns how many bytes of
// output it has. What cannot be removed now is removed by a later one.
func (t *Tasks) trim(ctx context.Context, scope string, more int) int64 {
	size, _ := t.clean(ctx, scope, more)
	return size
}

// a kept output is one that could be removed.
type kept struct {
	name
	boot    string
	version int64
	size    int64
}

// clean removes from a scope what is too old, and then the oldest ends while
// there are too many or they are too large. It returns how many bytes remain.
func (t *Tasks) clean(ctx context.Context, scope string, more int) (int64, error) {
	t.trimming.Lock()
	defer t.trimming.Unlock()
	folders, err := t.folders(scope) // before the rows: each has, or had, one
	if err != nil {
		return 0, err
	}
	var size int64
	for _, f := range folders {
		size += f.size
	}
	rows, old := 0, t.now().Add(-t.bounds.KeepFor)
	var ended []kept // the oldest first
	err = t.rows(ctx, scope, func(r row, version int64) error {
		rows++
		at := folderName(r.ID, r.Boot)
		k := kept{name{scope, r.ID}, r.Boot, version, folders[at].size}
		delete(folders, at)
		switch {
		case r.Status == Active:
		case r.Ended.Before(old):
			rows--
			size -= k.size
			return t.remove(ctx, k)
		default:
			ended = append(ended, k)
		}
		return nil
	})
	if err != nil {
		return size, err
	}
	for _, k := range ended {
		if rows+more <= t.bounds.Logs && size <= t.bounds.LogBytes {
			break
		}
		rows--
		size -= k.size
		if err := t.remove(ctx, k); err != nil {
			return size, err
		}
	}
	return size, t.orphans(scope, folders)
}

// remove removes an ended job. The row goes first.
func (t *Tasks) remove(ctx context.Context, k kept) error {
	err := t.store.Delete(ctx, bucket(k.scope), key(k.id), k.version)
	if errors.Is(err, store.ErrConflict) { // another host was faster
		return nil
	}
	if err != nil {
		return unavailable(err)
	}
	t.mu.Lock()
	for c := range t.cursors {
		if c.name == k.name {
			delete(t.cursors, c)
		}
	}
	t.mu.Unlock()
	return os.RemoveAll(t.folder(k.name, k.boot))
}

// A folder is the directory of an output.
type folder struct {
	id   int64
	boot string
	size int64
}

// folders lists the directories of a scope by their names.
func (t *Tasks) folders(scope string) (map[string]folder, error) {
	entries, err := os.ReadDir(t.scopeDir(scope))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string]folder{}
	for _, e := range entries {
		digits, boot, ok := strings.Cut(e.Name(), "-")
		id, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || !e.IsDir() {
			continue
		}
		f := folder{id: id, boot: boot}
		files, err := os.ReadDir(filepath.Join(t.scopeDir(scope), e.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, file := range files {
			if info, err := file.Info(); err == nil { // else it was removed meanwhile
				f.size += info.Size()
			}
		}
		out[e.Name()] = f
	}
	return out, nil
}

// orphans removes directories without a row, unless the host that made them
// lives and keeps its rows elsewhere.
func (t *Tasks) orphans(scope string, folders map[string]folder) error {
	mine, err := t.boots.Self()
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range folders {
		over, err := t.boots.Over(f.boot)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		n := name{scope, f.id}
		if over || f.boot == mine && t.running(n) == nil {
			errs = append(errs, os.RemoveAll(t.folder(n, f.boot)))
		}
	}
	return errors.Join(errs...)
}

// listedSince is when a job must have ended to be listed.
func (t *Tasks) listedSince() time.Time { return t.now().Add(-t.bounds.ListFor) }
