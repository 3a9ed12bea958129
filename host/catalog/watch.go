package catalog

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long the files of a skill must be quiet before they are read:
// a build writes several of them.
const settle = 150 * time.Millisecond

// poll is how often the directories are looked at when the operating system's
// notifications cannot be had, and to find directories that appear later.
const poll = 5 * time.Second

// Watch calls reload whenever something changes in dirs or in one of their
// folders, until ctx is done. reload is never called twice at the same time.
func Watch(ctx context.Context, dirs []string, reload func()) {
	w, err := fsnotify.NewWatcher()
	var events chan fsnotify.Event
	var errors chan error
	if err == nil {
		defer w.Close()
		events, errors = w.Events, w.Errors
		watchAll(w, dirs)
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	seen := stamp(dirs)
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				return
			}
			quiet.Reset(settle)
		case <-errors: // an overflow: events were lost
			quiet.Reset(settle)
		case <-tick.C:
			if now := stamp(dirs); now != seen {
				quiet.Reset(settle)
			}
		case <-quiet.C:
			seen = stamp(dirs)
			reload()
			if w != nil {
				watchAll(w, dirs)
			}
		}
	}
}

// watchAll watches dirs and their folders. Adding twice is harmless; a folder
// that is gone has been dropped by the watcher itself.
func watchAll(w *fsnotify.Watcher, dirs []string) {
	for _, dir := range dirs {
		if w.Add(dir) != nil {
			continue
		}
		entries, _ := os.ReadDir(dir)
		for i, e := range entries {
			if i == maxSkills {
				break
			}
			if e.IsDir() {
				_ = w.Add(filepath.Join(dir, e.Name())) // its folder may be gone again
			}
		}
	}
}

// stamp is the newest time of change in dirs, as far as it can be had cheaply.
func stamp(dirs []string) time.Time {
	var newest time.Time
	see := func(path string) {
		if st, err := os.Stat(path); err == nil && st.ModTime().After(newest) {
			newest = st.ModTime()
		}
	}
	for _, dir := range dirs {
		see(dir)
		entries, _ := os.ReadDir(dir)
		for i, e := range entries {
			if i == maxSkills {
				break
			}
			see(filepath.Join(dir, e.Name()))
			see(filepath.Join(dir, e.Name(), "skill.toml"))
		}
	}
	return newest
}
