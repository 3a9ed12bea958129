package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

// How a file is watched. Notices of the operating system come at once, but are
// lost on some network file systems; so the file is looked at as well.
const (
	pollEvery = 2 * time.Second
	settle    = 100 * time.Millisecond // a file is read when it has not changed for so long
)

// An Event says what became of a change of the policy file.
type Event struct {
	Path    string
	Policy  *policy.Policy // the snapshot in force now
	Missing bool           // the file is gone, which changes nothing: Err says so
	Err     error          // the change was rejected, and the old snapshot stays in force
}

// A File is a policy file and the current snapshot of it. Snapshots are
// replaced whole: a call keeps the one that it began with.
type File struct {
	path    string
	notify  func(Event)
	current atomic.Pointer[policy.Policy]
	stop    context.CancelFunc
	done    sync.WaitGroup
	seen    stamp // of the text in force or rejected last; used by the watching goroutine only
}

// Watch loads the policy at path and reloads it when it changes, until Close.
// It fails if the file is broken: a host must not start under rules that are
// not the operator's. notify, if not nil, is told of every later change, one
// at a time; it must not call Close.
func Watch(path string, notify func(Event)) (*File, error) {
	f := &File{path: path, notify: notify, seen: stampOf(path)}
	p, err := Load(path)
	if err != nil {
		return nil, err
	}
	f.current.Store(p)
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	// The directory is watched, because editors replace files. If it cannot
	// be, looking at the file has to do.
	var notices chan fsnotify.Event
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if watcher.Add(filepath.Dir(path)) == nil {
			notices = watcher.Events
		}
	}
	f.done.Go(func() {
		if watcher != nil {
			defer watcher.Close()
		}
		f.watch(ctx, notices, watcher)
	})
	return f, nil
}

// Policy returns the current snapshot.
func (f *File) Policy() *policy.Policy { return f.current.Load() }

// Close stops watching. The snapshot stays in force.
func (f *File) Close() error {
	f.stop()
	f.done.Wait()
	return nil
}

func (f *File) watch(ctx context.Context, notices <-chan fsnotify.Event, watcher *fsnotify.Watcher) {
	var errs <-chan error
	if watcher != nil {
		errs = watcher.Errors
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-notices:
			if !ok {
				notices = nil
			}
		case _, ok := <-errs: // such as an overflow: look at the file
			if !ok {
				errs = nil
			}
		case <-poll.C:
		}
		if now, ok := f.settled(ctx); ok {
			f.reload(now)
		}
	}
}

// settled reports whether the file has changed since it was read last, once it
// stays as it is for a while: half a file would be a policy with fewer rules.
func (f *File) settled(ctx context.Context) (stamp, bool) {
	now := stampOf(f.path)
	for !now.same(f.seen) {
		select {
		case <-ctx.Done():
			return stamp{}, false
		case <-time.After(settle):
		}
		again := stampOf(f.path)
		if again.same(now) {
			return now, true
		}
		now = again
	}
	return stamp{}, false
}

// reload reads the file, whose stamp was now before that.
func (f *File) reload(now stamp) {
	f.seen = now
	e := Event{Path: f.path}
	switch p, err := load(f.path); {
	case err == nil:
		f.current.Store(p)
	case errors.Is(err, fs.ErrNotExist):
		// Nobody takes a rule back by taking the file away: it may be moved,
		// not mounted or removed by mistake, and denials would go with it.
		e.Missing = true
		e.Err = &sdk.Error{Kind: sdk.NotFound, Op: f.path, What: "the policy file is gone", Err: fs.ErrNotExist, Hint: "put it back; an empty file takes all rules back"}
	default:
		e.Err = err
	}
	e.Policy = f.current.Load()
	if f.notify != nil {
		f.notify(e)
	}
}

// A stamp tells one state of a file from another without reading it.
type stamp struct {
	info fs.FileInfo // nil: it cannot be looked at
	gone bool        // because there is none
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{gone: errors.Is(err, fs.ErrNotExist)}
	}
	return stamp{info: info}
}

func (s stamp) same(t stamp) bool {
	if s.info == nil || t.info == nil {
		return s.info == nil && t.info == nil && s.gone == t.gone
	}
	return os.SameFile(s.info, t.info) && s.info.Size() == t.info.Size() && s.info.ModTime().Equal(t.info.ModTime()) && s.info.Mode() == t.info.Mode()
}
