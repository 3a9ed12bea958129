package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/ops"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/store/memory"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

// A fake is the guest of these tests: run decides what it does.
type fake struct {
	run func(ctx context.Context, j executor.Job) (sdk.Result, error)
}

func (f *fake) Run(ctx context.Context, j executor.Job) (sdk.Result, error) { return f.run(ctx, j) }

func (f *fake) Close() error { return nil }

// programs leases one fake for every skill. Those of skills whose names are in
// fixed have rules that cannot change while they run.
type programs struct {
	fake  *fake
	fixed string
}

func (p programs) Fixed(s *manifest.Skill) bool {
	return p.fixed != "" && strings.Contains(p.fixed, s.Name)
}

func (p programs) Lease(context.Context, *manifest.Skill) (executor.Program, func(), error) {
	return p.fake, func() {}, nil
}

// journal is an audit log in memory that can be made to fail.
type journal struct {
	mu     sync.Mutex
	events []audit.Event
	fail   func(audit.Event) error
}

func (l *journal) Append(_ context.Context, e audit.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(e); err != nil {
			return err
		}
	}
	l.events = append(l.events, e)
	return nil
}

// types returns the kinds of records in order, such as "start access end".
func (l *journal) types() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var t []string
	for _, e := range l.events {
		t = append(t, string(e.Type))
	}
	return strings.Join(t, " ")
}

type house struct {
	*Dispatcher
	log    *journal
	guest  *fake
	store  store.Store
	policy *policy.Policy
	scope  sdk.Scope
}

const manifestText = `
name = "%s"
version = "1.0.0"
description = "A test."
runtime = "wasm"
source = "m"
[tools.t]
description = "does what the test wants"
input = { type = "object", properties = { a = { type = "string" } }, additionalProperties = false }
output = { type = "object", properties = { n = { type = "integer" } } }
[tools.narrow]
description = "may touch less"
[tools.narrow.capabilities]
filesystem = ["read:${workspace}/in"]
[capabilities]
filesystem = ["write:${workspace}"]
network = ["example.com"]
env = ["LANG"]
invoke = ["*"]
[limits]
timeout = "150ms"
max_timeout = "600ms"
concurrency = 2
`

// newHouse returns a dispatcher over the built-in skills "one" and "two" and
// the installed skill "guest", which the policy allows.
func newHouse(t testing.TB) *house { return houseOf(t, manifestText) }

// houseOf is newHouse with another manifest for its skills.
func houseOf(t testing.TB, text string) *house {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.ToSlash(filepath.Join(root, "work"))
	for _, dir := range []string{"work/in", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h := &house{log: &journal{}, store: memory.Open(), guest: &fake{run: func(context.Context, executor.Job) (sdk.Result, error) { return sdk.Text("ok"), nil }},
		scope: sdk.Scope{Caller: "local:me", Workspace: work, Session: "s1"}}
	cat := catalog.New(".")
	var skills []*manifest.Skill
	for _, name := range []string{"one", "two", "guest"} {
		s, err := manifest.Open(fstest.MapFS{"skill.toml": {Data: fmt.Appendf(nil, text, name)}, "m": {Data: []byte(name)}}, "")
		if err != nil {
			t.Fatal(err)
		}
		s.Home.Builtin = name != "guest"
		if s.Home.Builtin { // their tools must not share names
			for i := range s.Tools {
				s.Tools[i].Name = name + "-" + s.Tools[i].Name
			}
			s.Resources, s.Prompts = nil, nil // they name tools
		}
		skills = append(skills, s)
	}
	invoke, err := manifest.Open(os.DirFS("../../manifests/invoke-skill"), "")
	if err != nil {
		t.Fatal(err)
	}
	invoke.Home.Builtin = true
	if _, errs := cat.Replace(append(skills, invoke)); errs != nil {
		t.Fatal(errs)
	}
	h.setPolicy(t, fmt.Sprintf("[skills.guest]\nallow = true\ndigest = %q\n[dangerous]\nallow = [\"invoke:*\"]\n", skills[2].Home.Digest))
	shipped, err := policy.Read("shipped", nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Dispatcher = &Dispatcher{
		Catalog: cat, Policy: func() *policy.Policy { return h.policy }, Shipped: shipped, File: "policy.toml",
		Session: func(sdk.Scope) (capability.Layer, error) { return sessionLayer(t), nil }, Programs: programs{fake: h.guest}, Audit: h.log,
		Ops: ops.New(ops.Deps{Store: h.store, Broker: egress.New(egress.Options{})}), Sealer: &Sealer{Store: h.store},
		Secrets: func(*policy.Policy, *manifest.Skill) egress.Secrets { return nil }, TmpRoot: func() (string, error) { return filepath.Join(root, "tmp"), nil },
		Realpath: filepath.EvalSymlinks, Env: func(name string) (string, bool) { return "value of " + name, true },
		Tasks: tasks.New(tasks.Options{Store: h.store, Dir: filepath.Join(root, "tasks"), Boots: boot.New(func() (string, error) { return "b1", nil }, func(string) (bool, error) { return true, nil })}),
	}
	t.Cleanup(func() {
		if err := h.Tasks.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func sessionLayer(t testing.TB) capability.Layer {
	t.Helper()
	l := capability.Layer{Name: "session", Speaks: []capability.Topic{{Kind: capability.Filesystem, Verb: capability.Write}}}
	for _, e := range []string{"write:${workspace}", "write:${tmp}"} {
		c, err := capability.Parse(capability.Filesystem, e, capability.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		l.Allow = append(l.Allow, c)
	}
	return l
}

func (h *house) setPolicy(t testing.TB, text string) {
	t.Helper()
	p, err := policy.Read("policy.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	h.policy = p
}

func (h *house) do(t testing.TB, tool, args string) (sdk.Result, error) {
	t.Helper()
	return h.Call(t.Context(), sdk.Call{Tool: tool, Args: json.RawMessage(args), Scope: h.scope}, nil)
}

func read(path string) capability.Access {
	return capability.Access{Kind: capability.Filesystem, Verb: capability.Read, Target: path}
}
