package catalog

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// When files are read after they have changed.
const (
	settle  = 150 * time.Millisecond // they must be quiet for so long: a build writes several of them
	patient = 2 * time.Second        // but a file that is written all the time does not put it off for ever
	poll    = 5 * time.Second        // how often they are looked at where the system gives no notice
)

// maxWatched bounds how many folders and files of skills are looked at.
const maxWatched = 5000

// Watch calls reload whenever something changes in dirs or in their folders,
// and once soon after it begins if there are any skills: they may have changed
// since they were read. It ends when ctx is done. reload is never called twice
// at the same time.
func Watch(ctx context.Context, dirs []string, reload func()) {
	w, err := fsnotify.NewWatcher()
	var events chan fsnotify.Event
	var errors chan error
	if err == nil {
		defer w.Close()
		events, errors = w.Events, w.Errors
	} else {
		w = nil
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	var since time.Time // of the first change that was not read yet
	noticed := func() {
		if since.IsZero() {
			since = time.Now()
		}
		quiet.Reset(max(0, min(settle, patient-time.Since(since))))
	}
	seen := look(dirs, w)
	if seen != (stamp{}) {
		noticed()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				return
			}
			noticed()
		case <-errors: // an overflow: events were lost
			noticed()
		case <-tick.C:
			if look(dirs, w) != seen {
				noticed()
			}
		case <-quiet.C:
			since = time.Time{}
			seen = look(dirs, w)
			reload()
		}
	}
}

// A stamp tells two states of files apart, as far as can be had cheaply.
type stamp struct {
	files  int
	size   int64
	newest time.Time
}

// look takes the stamp of all files in dirs, and adds their folders to w, if
// there is one. Adding twice is harmless; a folder that is gone has been dropped
// by the watcher itself.
func look(dirs []string, w *fsnotify.Watcher) (s stamp) {
	entries := 0
	for _, dir := range dirs {
		tops, err := os.ReadDir(dir)
		if err != nil {
			continue // it may appear
		}
		if w != nil {
			_ = w.Add(dir) // what cannot be watched is polled
		}
		for _, top := range tops {
			root, err := filepath.EvalSymlinks(filepath.Join(dir, top.Name())) // a skill's folder may be a link
			if err != nil {
				continue
			}
			_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
				if entries++; err != nil || entries > maxWatched {
					return fs.SkipAll
				}
				if d.IsDir() {
					if d.Name() == ".git" {
						return fs.SkipDir
					}
					if w != nil {
						_ = w.Add(name) // as above
					}
					return nil
				}
				if info, err := d.Info(); err == nil {
					s.add(info)
				}
				return nil
			})
		}
	}
	return s
}

func (s *stamp) add(info fs.FileInfo) {
	s.files++
	s.size += info.Size()
	if info.ModTime().After(s.newest) {
		s.newest = info.ModTime()
	}
}
