package native

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/host/sandbox/view"
	"github.com/skillhost/skill/sdk"
)

// The places of a private root that are ours. At level landlock, where there is
// none, the host's directories have their own paths.
const (
	tmpPath    = "/tmp"
	homePath   = "/run/home"
	servesPath = "/run/skill"
)

// A Guest is a process in its cage, with its directories.
type Guest struct {
	plan    Plan
	process sandbox.Process
	exit    Exit // nil: no way out

	base    string // on the host: what is removed at the end; "" is nothing
	sockets string // on the host, the same; "" is nothing
	tmp     string // as the guest sees it
	kept    string // its private home as the guest sees it, or ""
	serves  string // as the guest sees it, or ""

	gone chan struct{} // closed when the process has ended and its directories are removed
	err  error         // of their removal; to be read after gone
}

// Process returns the process of g.
func (g *Guest) Process() sandbox.Process { return g.process }

// Note says what g is denied though its skill asks for it; or "".
func (g *Guest) Note() string { return g.plan.Note }

// Serves returns the directory for g's sockets, as the host sees it and as g
// does; "" if its Plan did not ask for one.
func (g *Guest) Serves() (host, guest string) { return g.sockets, g.serves }

// Tmp returns the path of g's private directory for files as g sees it.
func (g *Guest) Tmp() string { return g.tmp }

// Open lets g out to the network for one call, as far as grant goes. proxyURL
// is what the call is to be told; it is "" if g has no way out. done ends it.
func (g *Guest) Open(call string, grant capability.Grant) (proxyURL string, done func()) {
	if g.exit == nil {
		return "", func() {}
	}
	return g.exit.Open(call, grant, g.plan.limits.HTTPBody, Bound(g.plan.skill))
}

// Close ends g and returns when nothing of it is left. It is idempotent.
func (g *Guest) Close() error {
	g.process.Kill()
	<-g.gone
	return g.err
}

// clear removes what g had, when its process has ended.
func (g *Guest) clear() error {
	var errs []error
	if g.exit != nil {
		errs = append(errs, g.exit.Close())
	}
	for _, dir := range []string{g.base, g.sockets} {
		if dir != "" {
			errs = append(errs, removeTree(dir))
		}
	}
	return errors.Join(errs...)
}

// furnish makes the directories of g and returns the cage that they belong to.
func (m *Maker) furnish(g *Guest, s *store) (sandbox.Cage, error) {
	p := &g.plan
	strict := p.Level == sandbox.Strict
	o := view.Options{Strict: strict, Workspace: p.place, SkillDir: p.skillDir, Programs: p.Programs, Hidden: []string{s.root}}
	var err error
	if g.base, err = s.dir(strict); err != nil {
		return sandbox.Cage{}, err
	}
	o.Tmp, g.tmp = filepath.Join(g.base, "tmp"), tmpPath
	if strict {
		o.Etc = filepath.Join(g.base, "etc")
	}
	if p.owner != "" {
		if o.Home, err = m.keep(p); err != nil {
			return sandbox.Cage{}, err
		}
		o.HomePath, o.HomeStays, g.kept = homePath, p.homeStays(), homePath
	}
	if p.Serves != "" {
		if g.sockets, err = socketDir(m.runDir()); err == nil {
			err = os.Symlink(g.sockets, filepath.Join(g.base, socketsName))
		}
		if err != nil {
			return sandbox.Cage{}, err
		}
		o.Sockets, o.Serves, g.serves = g.sockets, servesPath, servesPath
	}
	if !strict {
		g.tmp, g.kept, g.serves = o.Tmp, o.Home, o.Sockets
		o.HomePath, o.Serves = o.Home, o.Sockets
	}
	v, err := view.Of(followed(p.layers), o)
	return sandbox.Cage{Level: p.Level, View: v, Network: p.network, Nest: p.nest, Serves: g.serves, Limits: sandbox.Limits{
		Memory: p.limits.Memory, Processes: p.limits.Processes, FileSize: maxFile, Files: maxFiles,
	}}, err
}

// What a guest may write into one file, in bytes, and how many it may have open.
const (
	maxFile  = 1 << 30
	maxFiles = 1024
)

// keep returns the private home of p on the host, by its real path.
func (m *Maker) keep(p *Plan) (string, error) {
	fail := func(err error) (string, error) {
		return "", &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "the private home of skill " + p.skill.Name, Err: err}
	}
	if m.o.Homes == nil {
		return fail(errors.New("this host keeps none"))
	}
	dir, err := m.o.Homes(p.scope, p.owner)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil && !filepath.IsAbs(dir) {
		err = errors.New("its path is not absolute")
	}
	if err != nil {
		return fail(err)
	}
	return dir, nil
}

// maxSocket is the room for a socket's name in its directory, and maxSun the
// longest path of a socket, one NUL apart: Darwin's, the shortest there is.
const (
	maxSocket = 24
	maxSun    = 103
)

// socketDir makes a directory for sockets beneath base.
func socketDir(base string) (string, error) {
	dir, err := os.MkdirTemp(base, socketsPrefix) // mode 0700
	if err == nil {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if len(dir)+1+maxSocket <= maxSun {
			return dir, nil
		}
		_ = os.Remove(dir)
		err = errors.New("the path is too long for a socket")
	}
	return "", &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "directory for sockets in " + base, Err: err, Hint: "set XDG_RUNTIME_DIR to a short path"}
}

// searchPath is where a guest looks for programs.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environ returns the whole environment of g: what every guest is told, what
// its grant lets through, extra, which the executor adds, and where it makes
// sockets.
func (g *Guest) environ(extra []string) []string {
	env := map[string]string{"PATH": searchPath, "LANG": "C.UTF-8", "TERM": "dumb"}
	maps.Copy(env, g.plan.env)
	env["HOME"], env["TMPDIR"] = g.tmp, g.tmp // the host's are not there
	if g.kept != "" {
		env["HOME"] = g.kept
	}
	out := make([]string, 0, len(env)+len(extra))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	out = append(out, extra...)
	if g.serves != "" {
		out = append(out, g.plan.Serves+"="+g.serves)
	}
	return out
}

// start returns where g starts: in the workspace if it may read that.
func (g *Guest) start() string {
	w := filepath.ToSlash(g.plan.place)
	if w != "" && capability.NewGrant(g.plan.layers, nil).Allows(capability.Access{Kind: capability.Filesystem, Verb: capability.Read, Target: w}) {
		return w
	}
	return g.tmp
}
