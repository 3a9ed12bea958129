// Package host builds the house. Reading Open is reading the floor plan: every
// room is made here, from a config.Config, and given what it needs. It is the
// only place where rooms meet.
package host

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/config"
	"github.com/skillhost/skill/host/dispatch"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/instructions"
	"github.com/skillhost/skill/host/executor/wasm"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/host/ops"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/policy/disk"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/host/session"
	"github.com/skillhost/skill/host/settings"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/store/memory"
	"github.com/skillhost/skill/host/store/sqlite"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/host/tasks/timer"
	"github.com/skillhost/skill/manifests"
	"github.com/skillhost/skill/sdk"
)

// Options say how a Host is opened, beside its Config.
type Options struct {
	Version     string
	Folder      string    // a skill to install from this folder for the life of the Host, or ""
	AllowFolder bool      // the user has looked at the skill in Folder
	Extra       Extra     // an executor and skills for it that are not part of the product
	Log         io.Writer // what the operator must know; nil discards it

	Display Display // shows questions at the host's own terminal; nil: there is none
}

// Extra adds a runtime. Benchmarks measure the host with one that does nothing.
type Extra struct {
	Runtime  string
	Executor executor.Executor
	Skills   []*manifest.Skill
}

// A Host is a built house.
type Host struct {
	Config     config.Config
	Catalog    *catalog.Catalog
	Dispatcher *dispatch.Dispatcher
	Folder     string // the name of the skill in Options.Folder

	id       string // of the process, as a session
	options  Options
	session  *session.Session
	policy   *disk.File
	audit    *record
	store    store.Store
	programs *executor.Programs
	wasm     *wasm.Executor
	launcher *sandbox.Launcher
	natives  []io.Closer
	broker   *egress.Broker
	boots    *boot.Boots
	tasks    *tasks.Tasks
	timers   *timer.Timers
	asked    asked
	errands  *task.Tasks
	jobs     jobKey
	builtin  []*manifest.Skill
	folder   *manifest.Skill // of Options.Folder
	secrets  secrets
	settings *settings.Settings
	changes  changes
	shelf    shelf

	furnished chan struct{} // closed when all rooms are there

	ctx    context.Context // of background work
	cancel context.CancelFunc
	work   sync.WaitGroup
	once   sync.Once
}

// Open builds the house. It reads the policy and the manifests; the audit log,
// the store, the compiler and the network are opened at their first use, so
// that a client which only lists tools waits for none of them.
func Open(c config.Config, o Options) (*Host, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if err := c.Paths.Ensure(); err != nil {
		return nil, err
	}
	h := &Host{Config: c, options: o, Catalog: catalog.New(c.Names.Separator, c.Names.Bare...), id: rand.Text()}
	h.changes.next, h.furnished = make(chan struct{}), make(chan struct{})
	h.ctx, h.cancel = context.WithCancel(context.Background())
	var err error
	if h.session, err = session.New(session.Options{Workspace: c.Workspace.Dir, Explicit: c.Workspace.Explicit, Home: c.Paths.Home,
		Private:  []string{c.Paths.State, c.Paths.Audit, c.Paths.Cache, c.Paths.Policy},
		ReadOnly: append([]string{c.Paths.File, c.Paths.Config}, c.Skills...),
		Replaced: []string{c.Paths.Policy}}); err != nil {
		return nil, err
	}
	h.audit = newRecord(audit.Options{Dir: c.Paths.Audit, Key: c.Paths.AuditKey(), Durability: c.Audit.Durability, Params: c.Audit.Params,
		Version: o.Version, MaxSize: c.Audit.Rotate, Secrets: h.secrets.values}, h.learnSecrets)
	h.store = memory.Open()
	if c.Store.Backend == "sqlite" {
		h.store = sqlite.Open(filepath.Join(c.Paths.State, "state.db"))
	}
	h.settings = settings.New(skillSettings(c.Settings))
	h.wasm = wasm.New(wasm.Options{CacheDir: filepath.Join(c.Paths.Cache, "wasm")})
	h.broker = egress.New(egress.Options{})
	h.boots = h.newBoots()
	h.tasks, h.errands, h.asked = h.newTasks(), h.newErrands(), h.newQuestions()
	h.timers = h.newTimers()
	runtimes := h.nativeRuntimes()
	runtimes["wasm"], runtimes["instructions"] = h.wasm, instructions.Executor{}
	if o.Extra.Executor != nil {
		runtimes[o.Extra.Runtime] = o.Extra.Executor
	}
	h.programs = executor.NewPrograms(runtimes)
	if err := h.furnish(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// furnish reads the files that people write.
func (h *Host) furnish() (err error) {
	if h.policy, err = disk.Watch(h.Config.Paths.Policy, h.policyChanged); err != nil {
		return err
	}
	if err := h.corridor(); err != nil {
		return err
	}
	if err := h.install(); err != nil {
		return err
	}
	close(h.furnished)
	return nil
}

// corridor makes the dispatcher.
func (h *Host) corridor() error {
	shipped, err := policy.Read("the shipped policy", manifests.Shipped)
	if err != nil {
		return err
	}
	h.Dispatcher = &dispatch.Dispatcher{
		Catalog:  h.Catalog,
		Policy:   h.Policy,
		Shipped:  shipped,
		File:     h.Config.Paths.Policy,
		Session:  h.session.Layer,
		Programs: h.programs,
		Audit:    h.audit,
		Ops:      ops.New(ops.Deps{Store: h.store, Broker: h.broker}),
		Tasks:    h.tasks,
		Timers:   h.timers,
		Laid:     h.newLayers(),
		Sealer:   &dispatch.Sealer{Store: h.store, Process: h.id},
		Secrets:  h.bind,
		TmpRoot:  h.tmp,
		Realpath: realpath,
		Home:     realDir(h.Config.Paths.Home),
		Account:  realDir(session.AccountHome()),
		Env:      os.LookupEnv,
		Hidden:   hidden,
		Offers:   func() string { return string(sandbox.Probe().Level) },
		Owner:    h.owner,
		Changed:  h.changed,
		Settings: h.settings.Of,
	}
	return nil
}

// skillSettings is what the operator set for skills, as the room that checks it
// takes it.
func skillSettings(set map[string]config.SkillSettings) map[string]settings.Table {
	tables := make(map[string]settings.Table, len(set))
	for name, s := range set {
		tables[name] = settings.Table(s)
	}
	return tables
}

// owner keeps the state of a skill that is run from a folder apart from that of
// an installed one, which may have the same name and other authors.
func (h *Host) owner(s *manifest.Skill) string {
	if s == h.folder {
		return s.Name + " in " + s.Home.Dir
	}
	return s.Name
}

// realpath resolves links; capability.Layer.Bind asks for it.
func realpath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.FromSlash(path))
	return filepath.ToSlash(real), err
}

// realDir is realpath for a directory that there may not be.
func realDir(path string) string {
	if path == "" {
		return ""
	}
	real, err := realpath(path)
	if err != nil {
		return filepath.ToSlash(path) // denied under this name, should it come to exist
	}
	return real
}

// Policy returns the operator's current rules.
func (h *Host) Policy() *policy.Policy {
	p := h.policy.Policy()
	if h.options.AllowFolder {
		return h.changes.allowing(p, h.Catalog, h.Folder)
	}
	return p
}

// Scope returns the scope of a call by the local user. Where there is no
// session of a transport, the host's process is one.
func (h *Host) Scope() sdk.Scope { return h.session.Scope(h.id) }

// Close ends background work, waits for calls that run, and closes the rooms.
// It may be called more than once.
func (h *Host) Close() (err error) {
	h.once.Do(func() {
		h.cancel()
		h.work.Wait()
		if h.policy != nil { // else it could not be read
			err = h.policy.Close()
		}
		err = errors.Join(err, h.closeErrands(), h.timers.Close(), h.tasks.Close()) // before the programs that they use
		programs := h.programs.Close()
		if programs == nil { // else something of it is still in use
			err = errors.Join(err, h.wasm.Close())
		}
		for _, room := range h.natives {
			err = errors.Join(err, room.Close())
		}
		err = errors.Join(err, programs, h.removeTmp(), h.audit.Close(), h.store.Close())
	})
	return err
}
