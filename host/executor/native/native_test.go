package native

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/host/sandbox/view"
	"github.com/skillhost/skill/sdk"
)

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		offer   sandbox.Level
		require string
		root    bool
		want    sandbox.Level
		kind    sdk.Kind
		words   []string
	}{
		{offer: "strict", require: "", want: "strict"},
		{offer: "strict", require: "none", want: "strict"},
		{offer: "strict", require: "strict", root: true, want: "strict"},
		{offer: "landlock", require: "", want: "landlock"},
		{offer: "landlock", require: "landlock", want: "landlock"},
		{offer: "landlock", require: "strict", kind: sdk.Denied, words: []string{"requires level strict", "offers landlock", "missing: a kernel", `sandbox = "landlock" in [skills.tool] of the policy`, "tool/skill.toml"}},
		{offer: "landlock", require: "none", root: true, kind: sdk.Denied, words: []string{"by root at level strict only"}},
		{offer: "none", require: "none", root: true, kind: sdk.Denied, words: []string{"by root at level strict only"}},
		{offer: "none", require: "none", want: "none"},
		{offer: "none", require: "", kind: sdk.Denied, words: []string{"requires level landlock"}},
		{offer: "", require: "none", kind: sdk.Denied, words: []string{"no confinement"}},
		{offer: "strict", require: "lax", kind: sdk.Invalid, words: []string{`"lax"`}},
		{offer: "strict", require: "Strict", kind: sdk.Invalid},
	} {
		h := newHouse(t, c.offer)
		h.root = func() bool { return c.root }
		s := skill(t)
		j := job(s)
		j.Level = c.require
		p, err := h.Plan(s, j)
		if p.Level != c.want || (err != nil) != (c.kind != "") || err != nil && !has(err, c.kind, c.words...) {
			t.Errorf("%+v: %q, %v", c, p.Level, err)
		}
	}
	if _, err := New(Options{}).Plan(skill(t), job(skill(t))); !has(err, sdk.Denied) {
		t.Errorf("a Maker that knows no machine: %v", err)
	}
}

// Everything that a process is confined by, and everybody whom it may serve,
// is in the key.
func TestKey(t *testing.T) {
	h := newHouse(t, sandbox.Strict)
	key := func(change func(*manifest.Skill, *executor.Job)) string {
		s := skill(t, "read:/data", "env:LANG")
		j := job(s)
		j.Input.Env, j.Dirs = map[string]string{"LANG": "C"}, executor.Dirs{Workspace: "/ws", Skill: "/sk"}
		if change != nil {
			change(s, &j)
		}
		return h.plan(t, s, j).Key
	}
	base := key(nil)
	for name, change := range map[string]func(*manifest.Skill, *executor.Job){
		"call": func(_ *manifest.Skill, j *executor.Job) { j.Input.Call = "c2" },
		"tool": func(_ *manifest.Skill, j *executor.Job) { j.Input.Tool = "walk" },
		"position": func(s *manifest.Skill, j *executor.Job) {
			l := s.Needs
			l.Pos.Line = 9
			j.Grant = capability.NewGrant([]capability.Layer{l}, nil)
		},
	} {
		if key(change) != base {
			t.Errorf("%s changes the key", name)
		}
	}
	keys := map[string]string{base: "base"}
	layers := func(change func(*capability.Layer)) func(*manifest.Skill, *executor.Job) {
		return func(s *manifest.Skill, j *executor.Job) {
			l := s.Needs
			change(&l)
			j.Grant = capability.NewGrant([]capability.Layer{l}, nil)
		}
	}
	for name, change := range map[string]func(*manifest.Skill, *executor.Job){
		"digest":          func(s *manifest.Skill, _ *executor.Job) { s.Home.Digest = "sha256:01" },
		"caller":          func(_ *manifest.Skill, j *executor.Job) { j.Input.Scope.Caller = "local:you" },
		"workspace":       func(_ *manifest.Skill, j *executor.Job) { j.Input.Scope.Workspace = "/other" },
		"session":         func(_ *manifest.Skill, j *executor.Job) { j.Input.Scope.Session = "s2" },
		"place":           func(_ *manifest.Skill, j *executor.Job) { j.Dirs.Workspace = "/other" },
		"env name":        func(_ *manifest.Skill, j *executor.Job) { j.Input.Env = map[string]string{"TZ": "C"} },
		"env value":       func(_ *manifest.Skill, j *executor.Job) { j.Input.Env = map[string]string{"LANG": "de"} },
		"memory":          func(_ *manifest.Skill, j *executor.Job) { j.Limits.Memory++ },
		"processes":       func(_ *manifest.Skill, j *executor.Job) { j.Limits.Processes++ },
		"body":            func(_ *manifest.Skill, j *executor.Job) { j.Limits.HTTPBody++ },
		"home":            func(s *manifest.Skill, _ *executor.Job) { s.Sandbox.Home = "private" },
		"verb":            layers(func(l *capability.Layer) { l.Allow = set(t, "write:/data", "env:LANG") }),
		"more":            layers(func(l *capability.Layer) { l.Allow = set(t, "read:/data", "env:LANG", "network:*") }),
		"deny":            layers(func(l *capability.Layer) { l.Deny = set(t, "read:/data/x") }),
		"deny, not allow": layers(func(l *capability.Layer) { l.Allow, l.Deny = l.Allow[:1], l.Allow[1:] }),
		"speaks": layers(func(l *capability.Layer) {
			l.Speaks = []capability.Topic{{Kind: capability.Exec, Verb: capability.Run}}
		}),
		"pushed": layers(func(l *capability.Layer) { l.Pushed = true }),
		"pushed layer": func(s *manifest.Skill, j *executor.Job) { // as at the start and at the end of plan mode
			j.Grant = capability.NewGrant([]capability.Layer{s.Needs, planMode(t, "/ws")}, nil)
		},
		"pushed layer with another plan": func(s *manifest.Skill, j *executor.Job) {
			j.Grant = capability.NewGrant([]capability.Layer{s.Needs, planMode(t, "/other")}, nil)
		},
		"one more layer": func(s *manifest.Skill, j *executor.Job) {
			j.Grant = capability.NewGrant([]capability.Layer{s.Needs, {Name: "session"}}, nil)
		},
	} {
		k := key(change)
		if other := keys[k]; other != "" {
			t.Errorf("%s has the key of %s", name, other)
		}
		keys[k] = name
	}
	weaker := newHouse(t, sandbox.Landlock)
	s := skill(t)
	if h.plan(t, s, job(s)).Key == weaker.plan(t, s, job(s)).Key {
		t.Error("two levels have one key")
	}
}

func TestNetwork(t *testing.T) {
	silent := capability.Layer{Name: "session"}
	none := capability.Layer{Name: "operator", Speaks: []capability.Topic{{Kind: capability.Network, Verb: capability.Connect}}}
	for _, c := range []struct {
		level  sandbox.Level
		needs  string
		layers []capability.Layer
		want   sandbox.Network
		note   bool
	}{
		{sandbox.Strict, "network:example.com", nil, sandbox.Proxy, false},
		{sandbox.Strict, "network:example.com", []capability.Layer{silent}, sandbox.Proxy, false},
		{sandbox.Strict, "network:example.com", []capability.Layer{none}, sandbox.NoNetwork, false},
		{sandbox.Strict, "read:/data", nil, sandbox.NoNetwork, false},
		{sandbox.Landlock, "network:example.com", nil, sandbox.NoNetwork, true},
		{sandbox.None, "network:example.com", nil, sandbox.NoNetwork, true},
		{sandbox.Landlock, "read:/data", nil, sandbox.NoNetwork, false},
	} {
		h := newHouse(t, c.level)
		s := skill(t, c.needs)
		j := job(s, c.layers...)
		j.Level = "none"
		g := h.begin(t, h.plan(t, s, j), sandbox.Program{})
		if got := h.starter.cages[0].Network; got != c.want || (g.Note() != "") != c.note {
			t.Errorf("%+v: network %v, note %q", c, got, g.Note())
		}
		url, done := g.Open("c1", j.Grant)
		if (url != "") != (c.want == sandbox.Proxy) {
			t.Errorf("%+v: proxy %q", c, url)
		}
		if c.want == sandbox.Proxy && (len(h.exits) != 1 || h.exits[0].limit != s.Limits.HTTPBody || len(h.exits[0].opened) != 1) {
			t.Errorf("%+v: exits %+v", c, h.exits)
		}
		done()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		for _, e := range h.exits {
			if !e.closed || len(e.opened) > 0 {
				t.Errorf("the exit stays open: %+v", e)
			}
		}
	}
}

func TestStart(t *testing.T) {
	t.Setenv("SECRET", "x")
	h := newHouse(t, sandbox.Strict)
	s := skill(t, "read:/usr", "env:LANG")
	s.Sandbox.Home = "private"
	j := job(s)
	j.Input.Env = map[string]string{"LANG": "de", "HOME": "/root"}
	p := h.plan(t, s, j)
	p.Serves = "SOCKETS"
	g := h.begin(t, p, sandbox.Program{Args: []string{"x"}, Env: []string{"MORE=1"}})
	cage, prog := h.starter.cages[0], h.starter.started[0]
	want := []string{"HOME=/run/home", "LANG=de", "PATH=" + searchPath, "TERM=dumb", "TMPDIR=/tmp", "MORE=1", "SOCKETS=/run/skill"}
	if !slices.Equal(prog.Env, want) || prog.Dir != "/tmp" {
		t.Errorf("environment %q in %q", prog.Env, prog.Dir)
	}
	if cage.Level != sandbox.Strict || cage.Serves != "/run/skill" || cage.Limits != (sandbox.Limits{Memory: 128 << 20, Processes: 32, FileSize: 1 << 30, Files: 1024}) {
		t.Errorf("%+v", cage)
	}
	host, guest := g.Serves()
	if guest != "/run/skill" || filepath.Dir(host) != h.run || len(host) > maxSun-maxSocket-1 {
		t.Errorf("sockets in %q, %q", host, guest)
	}
	for _, dir := range []string{host, g.base, filepath.Join(g.base, "tmp"), h.Maker.store.root} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", dir, info, err)
		}
	}
	if passwd, err := os.ReadFile(filepath.Join(g.base, "etc", "passwd")); err != nil || strings.Count(string(passwd), "\n") != 1 {
		t.Errorf("passwd %q %v", passwd, err)
	}
	home := filepath.Join(h.homes, "local:me.tool")
	if err := os.WriteFile(filepath.Join(home, "kept"), nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := errors.Join(g.Close(), g.Close()); err != nil {
		t.Error(err)
	}
	absent(t, host)
	absent(t, g.base)
	if _, err := os.Stat(filepath.Join(home, "kept")); err != nil {
		t.Error(err)
	}
}

// A guest starts in the workspace if it may read that, and has a home in any case.
func TestPlace(t *testing.T) {
	for entry, want := range map[string]string{"read:/ws": "/ws", "read:/": "/ws", "read:/ws/sub": "/tmp", "read:/data": "/tmp"} {
		h := newHouse(t, sandbox.Strict)
		s := skill(t, entry)
		j := job(s)
		j.Dirs.Workspace, j.Input.Env = "/ws", map[string]string{"HOME": "/root", "TMPDIR": "/root"}
		h.begin(t, h.plan(t, s, j), sandbox.Program{})
		h.begin(t, h.plan(t, s, j), sandbox.Program{Dir: "/data"})
		first, second := h.starter.started[0], h.starter.started[1]
		if first.Dir != want || second.Dir != "/data" || !slices.Contains(first.Env, "HOME=/tmp") || !slices.Contains(first.Env, "TMPDIR=/tmp") {
			t.Errorf("%s: %+v %+v", entry, first, second)
		}
	}
}

// Without a private root, a process knows its directories by their real names.
func TestStartLandlock(t *testing.T) {
	h := newHouse(t, sandbox.Landlock)
	s := skill(t, "read:"+h.homes)
	s.Sandbox.Home = "private"
	j := job(s)
	j.Dirs.Workspace = h.homes
	p := h.plan(t, s, j)
	p.Serves = "SOCKETS"
	g := h.begin(t, p, sandbox.Program{})
	cage, prog := h.starter.cages[0], h.starter.started[0]
	host, guest := g.Serves()
	home := filepath.Join(h.homes, "local:me.tool")
	if host != guest || cage.Serves != host || g.Tmp() != filepath.Join(g.base, "tmp") || prog.Dir != h.homes ||
		!slices.Contains(prog.Env, "HOME="+home) || !slices.Contains(prog.Env, "TMPDIR="+g.Tmp()) {
		t.Errorf("%q %q %+v %+v", host, guest, cage, prog)
	}
	last := cage.View.Rulesets[len(cage.View.Rulesets)-1]
	for _, want := range []view.Rule{{Path: home, Rights: view.Read | view.Write}, {Path: g.Tmp(), Rights: view.Read | view.Write}, {Path: host, Rights: view.Read | view.Write | view.Socket}} {
		if !slices.Contains(last.Rules, want) {
			t.Errorf("no rule %+v in %+v", want, last.Rules)
		}
	}
	if len(cage.View.Mounts) > 0 {
		t.Errorf("mounts %v", cage.View.Mounts)
	}
}

// The private directories of others cannot be read by who may read everything.
// In a private root the host's are out of sight, wherever they are.
func TestOthersHidden(t *testing.T) {
	h := newHouse(t, sandbox.Landlock)
	s := skill(t, "read:/")
	first := h.begin(t, h.plan(t, s, job(s)), sandbox.Program{})
	h.begin(t, h.plan(t, s, job(s)), sandbox.Program{})
	sets := h.starter.cages[1].View.Rulesets
	granted := 0
	for _, r := range sets[len(sets)-1].Rules {
		if r.Rights&view.Read != 0 && capability.Beneath(first.Tmp(), r.Path) {
			t.Errorf("%+v", r)
		}
		if r.Path == "/usr" {
			granted++
		}
	}
	if granted != 1 {
		t.Errorf("%d rules for /usr", granted)
	}
	h = newHouse(t, sandbox.Strict)
	h.begin(t, h.plan(t, s, job(s)), sandbox.Program{})
	root := h.store.root
	if mounts := h.starter.cages[0].View.Mounts; strings.HasPrefix(root, "/tmp/") == slices.ContainsFunc(mounts, func(m view.Mount) bool { return m.Path == root && m.Kind == view.Hidden }) {
		t.Errorf("%s and %+v", root, mounts)
	}
}

func TestStartFails(t *testing.T) {
	s := skill(t)
	s.Sandbox.Home = "private"
	for name, c := range map[string]struct {
		spoil func(*house)
		kind  sdk.Kind
		words string
	}{
		"starter":  {func(h *house) { h.starter.err = &sdk.Error{Kind: sdk.Unavailable, What: "no mount"} }, sdk.Unavailable, "no mount"},
		"no homes": {func(h *house) { h.o.Homes = nil }, sdk.Unavailable, "private home"},
		"bad home": {func(h *house) { h.o.Homes = func(sdk.Scope, string) (string, error) { return "/nowhere/at/all", nil } }, sdk.Unavailable, "private home"},
		"tmp":      {func(h *house) { h.o.Tmp = "/nowhere/at/all" }, sdk.Unavailable, "private directory"},
		"long": {func(h *house) {
			h.o.RunDir = filepath.Join(h.run, strings.Repeat("x", 90))
			if err := os.Mkdir(h.o.RunDir, 0o700); err != nil {
				panic(err)
			}
		}, sdk.Unavailable, "too long for a socket"},
		"closed": {func(h *house) { _ = h.Close() }, sdk.Unavailable, "shutting down"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, sandbox.Strict)
			c.spoil(h)
			p := h.plan(t, s, job(s))
			p.Serves = "SOCKETS"
			if _, err := h.Start(t.Context(), p, sandbox.Program{}); !has(err, c.kind, c.words) {
				t.Errorf("got %v", err)
			}
			if name == "long" {
				if left, err := os.ReadDir(h.o.RunDir); err != nil || len(left) > 0 {
					t.Errorf("left %v %v", left, err)
				}
				_ = os.Remove(h.o.RunDir)
			}
			if h.store != nil {
				if left, err := filepath.Glob(filepath.Join(h.store.root, "*", "tmp")); err != nil || len(left) > 0 {
					t.Errorf("left %v %v", left, err)
				}
			}
		})
	}
}

// The way of a process is open as soon as there is one; closing the Maker ends it.
func TestCloseEnds(t *testing.T) {
	h := newHouse(t, sandbox.Strict)
	s := skill(t)
	var guests []*Guest
	for range 3 {
		guests = append(guests, h.begin(t, h.plan(t, s, job(s)), sandbox.Program{}))
	}
	if err := errors.Join(h.Close(), h.Close()); err != nil {
		t.Error(err)
	}
	for _, g := range guests {
		select {
		case <-g.gone:
		default:
			t.Error("a guest lives")
		}
	}
}

// A start that goes on while the host closes leaves nothing behind.
func TestCloseWhileStarting(t *testing.T) {
	h := newHouse(t, sandbox.Strict)
	entered, proceed := make(chan struct{}), make(chan struct{})
	h.starter.inside = func(sandbox.Cage) { close(entered); <-proceed }
	s := skill(t)
	p := h.plan(t, s, job(s))
	started := make(chan *Guest)
	go func() {
		g, err := h.Start(t.Context(), p, sandbox.Program{})
		if err != nil {
			t.Error(err)
		}
		started <- g
	}()
	<-entered
	closed := make(chan error)
	go func() { closed <- h.Close() }()
	select {
	case err := <-closed:
		t.Errorf("closed in the middle of a start: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(proceed)
	g := <-started
	if err := <-closed; err != nil {
		t.Error(err)
	}
	<-g.gone
}

func TestRecord(t *testing.T) {
	h := newHouse(t, sandbox.Strict)
	s := skill(t, "read:/data", "write:/out", "read:${tmp}", "exec:git", "network:example.com")
	deny := capability.Layer{Name: "operator", Deny: set(t, "read:/data/x")}
	p := h.plan(t, s, job(s, deny))
	var seen []string
	g := capability.NewGrant(p.layers, func(a capability.Access, err error) {
		if err == nil {
			seen = append(seen, a.String())
		}
	})
	if err := Record(g, p); err != nil {
		t.Error(err)
	}
	if want := []string{"filesystem.read ${tmp}", "filesystem.read /data", "filesystem.write /out", "exec.run git"}; !slices.Equal(seen, want) {
		t.Errorf("recorded %q", seen)
	}
	// Today's policy has the last word, whatever is installed.
	g = g.WithLive(func(a capability.Access) error {
		if a.Target == "/out" {
			return &sdk.Error{Kind: sdk.Denied, What: "no more"}
		}
		return nil
	})
	if err := Record(g, p); !has(err, sdk.Denied, "no more") {
		t.Errorf("got %v", err)
	}
	all := skill(t, "read:/", "exec:*")
	if err := Record(job(all).Grant, h.plan(t, all, job(all))); err != nil {
		t.Error(err)
	}
}
