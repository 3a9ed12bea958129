package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/store/memory"
	"github.com/skillhost/skill/sdk"
)

// A world is a workspace and the layers of one host's sessions.
type world struct {
	*Layers
	top   string
	scope sdk.Scope
	now   time.Time
	store store.Store
}

func newWorld(t *testing.T, session string) *world {
	t.Helper()
	w := &world{top: tree(t, "work/sub", "other"), store: memory.Open(), now: time.Unix(1_800_000_000, 0)}
	w.scope = sdk.Scope{Caller: "local:me", Workspace: w.top + "/work", Session: session}
	w.Layers = w.host()
	return w
}

// host is one more host on the same store.
func (w *world) host() *Layers {
	return NewLayers(LayerOptions{Store: w.store, Realpath: realDir, Vars: capability.Vars{Home: w.top + "/other"}, Now: func() time.Time { return w.now }})
}

func (w *world) push(t *testing.T, owner, name, lists string) error {
	t.Helper()
	return w.Push(t.Context(), w.scope, Push{Owner: owner, Skill: owner, Name: name, Why: "because", Lists: json.RawMessage(lists)})
}

func file(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(filepath.FromSlash(path), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// everything is the grant of a tool that may do everything but for what lies
// over the session.
func everything(t *testing.T, l *Layers, scope sdk.Scope, to Target) capability.Grant {
	t.Helper()
	all := capability.Layer{Name: "manifest", Closed: true}
	for kind, entries := range map[capability.Kind][]string{capability.Filesystem: {"write:/", "write:${tmp}"}, capability.Network: {"*", "http://*"}, capability.Exec: {"*"}} {
		for _, e := range entries {
			c, err := capability.Parse(kind, e, capability.Pos{})
			if err != nil {
				t.Fatal(err)
			}
			all.Allow = append(all.Allow, c)
		}
	}
	stack, err := l.Of(scope)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := stack.Layers(to)
	if err != nil {
		t.Fatal(err)
	}
	return capability.NewGrant(append([]capability.Layer{all}, layers...), nil)
}

func touch(verb capability.Verb, path string) capability.Access {
	return capability.Access{Kind: capability.Filesystem, Verb: verb, Target: path}
}

var web = capability.Access{Kind: capability.Network, Verb: capability.Connect, Net: &capability.Net{Scheme: "https", Host: "example.com", Port: 443}}

// readOnly is the layer of plan mode.
const readOnly = `{"filesystem.write":["write:${workspace}/plan.md","write:${tmp}"],"network":[],"builtin":{"websearch":{"network":null}}}`

func TestPush(t *testing.T) {
	w := newWorld(t, "s1")
	work := w.scope.Workspace
	file(t, work+"/plan.md")
	if err := w.push(t, "plan", "plan mode", readOnly); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		scope  sdk.Scope
		target Target
		access capability.Access
		pass   bool
	}{
		"write_workspace":      {w.scope, Target{}, touch(capability.Write, work+"/x"), false},
		"write_plan":           {w.scope, Target{}, touch(capability.Write, work+"/plan.md"), true},
		"write_beneath_plan":   {w.scope, Target{}, touch(capability.Write, work+"/plan.md2"), false},
		"write_tmp":            {w.scope, Target{}, touch(capability.Write, "${tmp}/x"), true},
		"read":                 {w.scope, Target{}, touch(capability.Read, work+"/x"), true},
		"network":              {w.scope, Target{}, web, false},
		"exec":                 {w.scope, Target{}, capability.Access{Kind: capability.Exec, Verb: capability.Run, Target: "git"}, true},
		"builtin_network":      {w.scope, Target{Builtin: "websearch"}, web, true},
		"builtin_write":        {w.scope, Target{Builtin: "websearch"}, touch(capability.Write, work+"/x"), false},
		"other_builtin":        {w.scope, Target{Builtin: "web"}, web, false},
		"other_session":        {sdk.Scope{Caller: "local:me", Workspace: work, Session: "s2"}, Target{}, web, true},
		"other_caller":         {sdk.Scope{Caller: "local:you", Workspace: work, Session: "s1"}, Target{}, web, true},
		"other_workspace":      {sdk.Scope{Caller: "local:me", Workspace: w.top + "/other", Session: "s1"}, Target{}, web, true},
		"same_with_new_rights": {sdk.Scope{Caller: "local:me", Workspace: work, Session: "s1", Rights: "admin"}, Target{}, web, false},
	} {
		if err := everything(t, w.Layers, tt.scope, tt.target).Check(tt.access); (err == nil) != tt.pass {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := everything(t, w.Layers, w.scope, Target{}).Check(touch(capability.Write, work+"/x"))
	if err == nil || !strings.Contains(err.Error(), `refused by layer "plan mode" of plan, which says "because"`) {
		t.Errorf("the refusal does not say what the layer is: %v", err)
	}
	var e *sdk.Error
	if !errors.As(err, &e) || e.Denial.Layer != `layer "plan mode" of plan` {
		t.Errorf("denial %+v", e.Denial)
	}
}

// sessions are those that end with the process, and those that do not.
var sessions = map[string]string{"process": "s1", "task": "task:t1"}

func TestFifthLayer(t *testing.T) {
	for name, session := range sessions {
		w := newWorld(t, session)
		for i := range maxLayers {
			if err := w.push(t, fmt.Sprintf("skill%d", i), "x", `{"network":[]}`); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.push(t, "skill9", "x", `{"network":["*"]}`); sdk.KindOf(err) != sdk.Limit {
			t.Errorf("%s: layer_fifth: %v", name, err)
		}
		if err := w.push(t, "skill0", "y", `{}`); sdk.KindOf(err) != sdk.Limit {
			t.Errorf("%s: layer_fifth of a skill that has one: %v", name, err)
		}
		if err := w.push(t, "skill0", "x", `{"network":["*"]}`); err != nil { // its own, in the place of the first
			t.Errorf("%s: replace: %v", name, err)
		}
		again := Push{Owner: "skill0", Skill: "skill0", Name: "x", New: true, Lists: json.RawMessage(`{}`)}
		if err := w.Push(t.Context(), w.scope, again); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s: a second one where there must be none: %v", name, err)
		}
		if s, err := w.Of(w.scope); err != nil || len(s.sheets) != maxLayers {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// TestPopOfOther: who has not laid a layer does not take it away, nor replace it.
func TestPopOfOther(t *testing.T) {
	for name, session := range sessions {
		w := newWorld(t, session)
		if err := w.push(t, "plan", "plan mode", `{"network":[]}`); err != nil {
			t.Fatal(err)
		}
		for _, owner := range []string{"other", "", "plan in /somewhere", "Plan"} {
			if found, err := w.Pop(t.Context(), w.scope, owner, "plan mode"); found || err != nil {
				t.Errorf("%s: layer_pop_of_other: %q popped it: %v, %v", name, owner, found, err)
			}
		}
		if err := w.push(t, "other", "plan mode", `{"network":["*"]}`); err != nil {
			t.Fatal(err)
		}
		if err := everything(t, w.Layers, w.scope, Target{}).Check(web); err == nil {
			t.Errorf("%s: layer_replaced_by_other: another skill's layer of the same name widens", name)
		}
		if found, err := w.Pop(t.Context(), w.scope, "plan", "plan mode"); !found || err != nil {
			t.Errorf("%s: its own: %v, %v", name, found, err)
		}
		if found, err := w.Pop(t.Context(), w.scope, "plan", "plan mode"); found || err != nil {
			t.Errorf("%s: twice: %v, %v", name, found, err)
		}
	}
}

// TestLayersNarrow: whatever a second layer says, nothing passes that the first
// refuses.
func TestLayersNarrow(t *testing.T) {
	w := newWorld(t, "s1")
	file(t, w.scope.Workspace+"/plan.md")
	if err := w.push(t, "plan", "plan mode", readOnly); err != nil {
		t.Fatal(err)
	}
	for _, lists := range []string{
		`{"filesystem":["write:/"],"network":["*","http://*"],"exec":["*"]}`, `{"filesystem.write":["write:/"]}`, `{}`,
		`{"builtin":{"websearch":{"filesystem":["write:/"],"network":null,"filesystem.write":null}}}`,
		`{"builtin":{"":{"network":["*"]}},"network":["*"]}`,
	} {
		if err := w.push(t, "other", "wide", lists); err != nil && sdk.KindOf(err) != sdk.Invalid {
			t.Fatal(err)
		}
		for _, target := range []Target{{}, {Builtin: "websearch"}, {Builtin: "other"}} {
			g := everything(t, w.Layers, w.scope, target)
			if g.Allows(touch(capability.Write, w.scope.Workspace+"/x")) || target.Builtin != "websearch" && g.Allows(web) {
				t.Errorf("layer_widens: %s for %+v", lists, target)
			}
		}
	}
}

// TestLinkAfterPush: whoever makes a link of a path that a layer allows turns it
// to nothing, not to what the link leads to.
func TestLinkAfterPush(t *testing.T) {
	for name, turn := range map[string]func(work string) error{
		"layer_link_for_file": func(work string) error {
			return errors.Join(os.Remove(work+"/sub/plan.md"), os.Symlink("../secret", work+"/sub/plan.md"))
		},
		"layer_link_for_folder": func(work string) error {
			return errors.Join(os.Rename(work+"/sub", work+"/was"), os.Symlink("real", work+"/sub"))
		},
		"layer_file_is_gone": func(work string) error { return os.Remove(work + "/sub/plan.md") },
	} {
		w := newWorld(t, "s1")
		work := w.scope.Workspace
		for _, f := range []string{"/sub/plan.md", "/secret"} {
			file(t, work+f)
		}
		if err := os.Mkdir(work+"/real", 0o700); err != nil {
			t.Fatal(err)
		}
		file(t, work+"/real/plan.md")
		if err := w.push(t, "plan", "plan mode", `{"filesystem.write":["write:${workspace}/sub/plan.md"]}`); err != nil {
			t.Fatal(err)
		}
		plan := touch(capability.Write, work+"/sub/plan.md")
		if !everything(t, w.Layers, w.scope, Target{}).Allows(plan) {
			t.Errorf("%s: the file cannot be written", name)
		}
		if err := turn(filepath.FromSlash(work)); err != nil {
			t.Skip("no links here:", err)
		}
		g := everything(t, w.Layers, w.scope, Target{})
		for _, p := range []string{"/sub/plan.md", "/secret", "/real/plan.md"} {
			if g.Allows(touch(capability.Write, work+p)) {
				t.Errorf("%s: %s can be written", name, p)
			}
		}
	}
}

// TestLinkBeforePush: a link that is there already is followed once, and beneath
// a workspace it is the other layers that keep it there.
func TestLinkBeforePush(t *testing.T) {
	w := newWorld(t, "s1")
	work := w.scope.Workspace
	file(t, work+"/sub/file")
	link(t, "sub/file", work+"/link")
	if err := w.push(t, "plan", "plan mode", `{"filesystem.write":["write:${workspace}/link","write:${workspace}/absent"]}`); err != nil {
		t.Fatal(err)
	}
	file(t, work+"/absent")
	g := everything(t, w.Layers, w.scope, Target{})
	for p, pass := range map[string]bool{"/sub/file": true, "/link": false, "/sub/other": false, "/absent": false} {
		if g.Allows(touch(capability.Write, work+p)) != pass {
			t.Errorf("%s: not %v", p, pass)
		}
	}
}

// TestSameList: a layer is the same list for every call and every skill that it
// says the same to, so that a call that was invoked does not have it twice.
func TestSameList(t *testing.T) {
	w := newWorld(t, "s1")
	file(t, w.scope.Workspace+"/plan.md")
	if err := w.push(t, "plan", "plan mode", readOnly); err != nil {
		t.Fatal(err)
	}
	first := func(to Target) *capability.Capability {
		s, err := w.Of(w.scope)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := s.Layers(to)
		if err != nil || len(layers) != 1 {
			t.Fatal(layers, err)
		}
		return &layers[0].Allow[0]
	}
	a, b := first(Target{Builtin: "shell"}), first(Target{SkillDir: "/x"})
	if a != b || first(Target{}) != a || first(Target{Builtin: "websearch"}) == a {
		t.Error("another list")
	}
}

// TestRestart: a session that outlives its host keeps its layers, and the other
// kind does not.
func TestRestart(t *testing.T) {
	for name, session := range sessions {
		w := newWorld(t, session)
		file(t, w.scope.Workspace+"/plan.md")
		if err := w.push(t, "plan", "plan mode", readOnly); err != nil {
			t.Fatal(err)
		}
		next := w.host()
		if got := everything(t, next, w.scope, Target{}).Allows(web); got != (name == "process") {
			t.Errorf("layer_lost_by_restart: %s: network %v", name, got)
		}
		if name == "process" {
			w.End(w.scope)
			if s, err := w.Of(w.scope); s != nil || err != nil {
				t.Errorf("after its end: %v, %v", s, err)
			}
			continue
		}
		w.End(w.scope) // it may go on anywhere
		g := everything(t, next, w.scope, Target{})
		if !g.Allows(touch(capability.Write, w.scope.Workspace+"/plan.md")) || g.Allows(touch(capability.Write, w.scope.Workspace+"/x")) {
			t.Error("the other host reads another layer")
		}
		if found, err := next.Pop(t.Context(), w.scope, "plan", "plan mode"); !found || err != nil {
			t.Fatal(found, err)
		}
		if !everything(t, w.Layers, w.scope, Target{}).Allows(web) {
			t.Error("layer_two_hosts: what one host has taken away lies there for the other")
		}
	}
}

// TestTwoHosts: hosts that change the layers of one session at the same time
// lose none.
func TestTwoHosts(t *testing.T) {
	w := newWorld(t, "task:t1")
	hosts := []*Layers{w.Layers, w.host()}
	var group sync.WaitGroup
	for i := range maxLayers {
		group.Go(func() {
			l := hosts[i%2]
			name := fmt.Sprintf("l%d", i)
			for range 10 {
				if err := l.Push(t.Context(), w.scope, Push{Owner: name, Skill: name, Name: name, Lists: json.RawMessage(`{"network":[]}`)}); err != nil {
					t.Error(err)
				}
				if found, err := l.Pop(t.Context(), w.scope, name, name); err != nil || !found {
					t.Errorf("lost: %v, %v", found, err)
				}
			}
			if err := l.Push(t.Context(), w.scope, Push{Owner: name, Skill: name, Name: name, Lists: json.RawMessage(`{"network":[]}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, l := range hosts {
		if s, err := l.Of(w.scope); err != nil || len(s.sheets) != maxLayers {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

// A broken store does not answer.
type broken struct{ store.Store }

func (broken) Get(context.Context, string, string) ([]byte, int64, error) {
	return nil, 0, errors.New("disk")
}

// TestUnknownLayers: where it cannot be told what lies over a session, nothing
// runs.
func TestUnknownLayers(t *testing.T) {
	w := newWorld(t, "task:t1")
	p := placeOf(w.scope)
	for name, value := range map[string]string{
		"not_json": `{`, "other_format": `{"format":9,"layers":[]}`, "bad_lists": `{"format":1,"layers":[{"id":"a","owner":"o","skill":"s","name":"n","lists":{"x":[]}}]}`,
	} {
		if _, err := w.store.Put(t.Context(), p.bucket(), p.key(), []byte(value), store.Any); err != nil {
			t.Fatal(err)
		}
		if s, err := w.Of(w.scope); sdk.KindOf(err) != sdk.Unavailable || s != nil {
			t.Errorf("layer_record_%s: %v, %v", name, s, err)
		}
		if err := w.push(t, "one", "x", `{}`); sdk.KindOf(err) != sdk.Unavailable {
			t.Errorf("layer_record_%s: push: %v", name, err)
		}
	}
	w.o.Store = broken{}
	if s, err := w.Of(w.scope); sdk.KindOf(err) != sdk.Unavailable || s != nil {
		t.Errorf("layer_store_down: %v, %v", s, err)
	}
	w.scope.Session = "s1" // needs none
	if s, err := w.Of(w.scope); s != nil || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// TestManySessions: a caller has layers over so many sessions, and one that was
// forgotten makes room.
func TestManySessions(t *testing.T) {
	for name, prefix := range map[string]string{"process": "s", "task": "task:t"} {
		w := newWorld(t, "")
		at := func(i int) sdk.Scope {
			return sdk.Scope{Caller: "local:me", Workspace: w.scope.Workspace, Session: fmt.Sprintf("%s%d", prefix, i)}
		}
		push := func(s sdk.Scope) error {
			return w.Push(t.Context(), s, Push{Owner: "one", Skill: "one", Name: "x", Lists: json.RawMessage(`{"network":[]}`)})
		}
		if name == "process" {
			for i := range maxScopes {
				if err := push(at(i)); err != nil {
					t.Fatal(err)
				}
			}
		} else { // counting is slow: they are put there
			row := Laid{ID: "x", Owner: "one", Skill: "one", Name: "x", Lists: json.RawMessage(`{"network":[]}`)}
			value, err := json.Marshal(record{recordFormat, w.now, []Laid{row}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range maxScopes {
				p := placeOf(at(i))
				if _, err := w.store.Put(t.Context(), p.bucket(), p.key(), value, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := push(at(maxScopes)); sdk.KindOf(err) != sdk.Limit {
			t.Errorf("%s: layer_too_many_sessions: %v", name, err)
		}
		other := at(0)
		other.Caller = "local:you"
		if err := push(other); err != nil {
			t.Errorf("%s: another caller: %v", name, err)
		}
		if err := push(at(3)); err != nil {
			t.Errorf("%s: a session that has one: %v", name, err)
		}
		if name == "process" {
			w.End(at(0))
		} else {
			w.now = w.now.Add(forgotten + time.Hour)
		}
		if err := push(at(maxScopes)); err != nil {
			t.Errorf("%s: no room is made: %v", name, err)
		}
	}
}

func TestCounts(t *testing.T) {
	for name, session := range sessions {
		w := newWorld(t, session)
		if err := w.push(t, "one", "x", `{"network":[]}`); err != nil {
			t.Fatal(err)
		}
		s, err := w.Of(w.scope)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Refused(`layer "x" of one`) || s.Refused(`layer "y" of one`) {
			t.Errorf("%s: it does not know its own", name)
		}
		s.Named("this tool is confined\nlayer \"x\" of one narrows this session")
		s.Named("nothing")
		if err := w.push(t, "two", "y", `{}`); err != nil { // another version
			t.Fatal(err)
		}
		s, err = w.Of(w.scope)
		if err != nil {
			t.Fatal(err)
		}
		own, others := s.Owned("one")
		if len(own) != 1 || others != 1 || own[0].Name != "x" || s.Count(own[0].ID) != 2 || s.Count("none") != 0 {
			t.Errorf("%s: %+v, %d", name, own, others)
		}
	}
	var none *Stack
	if none.Refused("x") || none.Count("x") != 0 {
		t.Error("nothing counts")
	}
	if own, others := none.Owned("x"); own != nil || others != 0 {
		t.Error("nothing has layers")
	}
	if s, err := (*Layers)(nil).Of(sdk.Scope{Session: "s"}); s != nil || err != nil {
		t.Error(s, err)
	}
}

func TestTask(t *testing.T) {
	if s, err := Task("a.b:c-1_2"); err != nil || s != "task:a.b:c-1_2" {
		t.Error(s, err)
	}
	for _, id := range []string{"", "a b", "a/b", "ä", strings.Repeat("x", 129), "a\n"} {
		if s, err := Task(id); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%q: %q, %v", id, s, err)
		}
	}
}
