package host

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

// A record is the audit log, opened at the first record: a command that only
// lists tools leaves no file behind.
type record struct {
	options audit.Options
	before  func() // called once, before the first record

	mu   sync.Mutex
	file *audit.File
	done bool
}

func newRecord(o audit.Options, before func()) *record { return &record{options: o, before: before} }

// Append opens the log if need be. A log that cannot be opened is tried again
// at the next record; until then no call runs.
func (r *record) Append(ctx context.Context, e audit.Event) error {
	f, err := r.open()
	if err != nil {
		return err
	}
	return f.Append(ctx, e)
}

func (r *record) open() (*audit.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		return r.file, nil
	}
	if r.done {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "audit", What: "the host is closing"}
	}
	f, err := audit.Open(r.options)
	if err != nil {
		return nil, err
	}
	r.before()
	r.file = f
	return f, nil
}

// boot returns the id of the open log, or "".
func (r *record) boot() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return ""
	}
	return r.file.Boot()
}

func (r *record) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = true
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Start does in the background what need not wait for the first call: it opens
// the log, removes what is too old, watches the skills, and compiles modules
// that have not been compiled on this machine. A host that serves calls it; a
// command that makes one call does not.
func (h *Host) Start() {
	h.work.Go(func() {
		if _, err := h.audit.open(); err != nil {
			h.say(err)
		}
		h.sweep()
		h.retain()
	})
	dirs := slices.Concat(h.Config.Skills, h.Config.Found)
	h.work.Go(h.sweepTasks)
	h.timers.Start()
	if h.Config.Questions.Terminal && runtime.GOOS != "windows" { // there is no telling who is at the other end
		h.work.Go(h.answerSocket)
	}
	h.work.Go(func() { catalog.Watch(h.ctx, dirs, h.reload) })
	if h.Config.WASM.Warm {
		h.work.Go(h.warm)
	}
}

// retain removes audit files that are too old or too many, now and every hour.
func (h *Host) retain() {
	hour := time.NewTicker(time.Hour)
	defer hour.Stop()
	for {
		if _, err := audit.Retain(h.Config.Paths.Audit, h.Config.Audit.MaxAge, h.Config.Audit.MaxSize, time.Now()); err != nil {
			h.say(err)
		}
		select {
		case <-h.ctx.Done():
			return
		case <-hour.C:
		}
	}
}

// tmp returns the directory of this boot for the private directories of calls.
func (h *Host) tmp() (string, error) {
	f, err := h.audit.open()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(h.Config.Paths.Tmp(), f.Boot())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", &sdk.Error{Kind: sdk.Unavailable, Op: "host", What: "private temporary directories", Err: err}
	}
	return dir, nil
}

// removeTmp removes what this boot has there.
func (h *Host) removeTmp() error {
	boot := h.audit.boot()
	if boot == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(h.Config.Paths.Tmp(), boot))
}

// sweep removes what hosts have there that died: their boots hold no lock.
func (h *Host) sweep() {
	entries, err := os.ReadDir(h.Config.Paths.Tmp())
	if err != nil {
		h.say(err)
		return
	}
	for _, e := range entries {
		alive, err := audit.Alive(h.Config.Paths.Audit, e.Name())
		if err == nil && !alive {
			err = os.RemoveAll(filepath.Join(h.Config.Paths.Tmp(), e.Name()))
		}
		if err != nil {
			h.say(err)
		}
	}
}

func (h *Host) say(err error) {
	if h.ctx.Err() == nil {
		_, _ = h.options.Log.Write([]byte("skill: " + err.Error() + "\n")) // nowhere else to say it
	}
}

// secrets are the values that were given to calls, which must not be recorded.
type secrets struct {
	mu    sync.Mutex
	known []string
}

func (s *secrets) values() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func (s *secrets) learn(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.known {
		if k == value {
			return
		}
	}
	s.known = append(s.known[:len(s.known):len(s.known)], value) // readers keep the old slice
}

// secretBucket holds the values that "skill secret set" stored.
const secretBucket = "secrets"

// value reads the value of a secret from where the operator says it is.
func (h *Host) value(b policy.SecretBinding) (string, error) {
	switch b.Source.Kind {
	case "env":
		v, _ := os.LookupEnv(b.Source.Name)
		return v, nil
	case "file":
		data, err := os.ReadFile(b.Source.Name)
		return string(trimNewline(data)), err
	}
	data, _, err := h.store.Get(h.ctx, secretBucket, b.Name)
	return string(data), err
}

func trimNewline(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}
