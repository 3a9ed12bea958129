package host

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/config"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

// A loud is where a host tells its operator things.
type loud struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *loud) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *loud) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is a host's home, with one skill of instructions installed.
type world struct {
	home, work string
	log        *loud
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{filepath.Join(dir, "home"), filepath.Join(dir, "work"), new(loud)}
	if err := os.Mkdir(w.work, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write(t, "skills/review/SKILL.md", "---\nname: review\ndescription: How to review.\n---\nLook twice.")
	return w
}

func (w *world) write(t testing.TB, name, text string) {
	t.Helper()
	file := filepath.Join(w.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) open(t testing.TB) *Host {
	t.Helper()
	c, err := config.Load(config.Flags{Workspace: w.work}, func(name string) (string, bool) { return w.home, name == "SKILL_HOME" })
	c.Found = nil // skills of whoever runs the tests
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(c, Options{Version: "test", Log: w.log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// allow writes a policy that allows the installed skill as it is.
func (w *world) allow(t *testing.T, h *Host, name string) {
	t.Helper()
	s, err := h.Catalog.Skill(name)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "policy.toml", "[skills."+name+"]\nallow = true\ndigest = \""+s.Home.Digest+"\"\n")
}

func invoke(h *Host, skill string) (sdk.Result, error) {
	return h.Call(context.Background(), sdk.Call{Tool: "InvokeSkill", Args: json.RawMessage(`{"skill_name":"` + skill + `"}`), Scope: h.Scope()}, nil)
}

// eventually waits for what another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within 30 s", what)
}

func TestAllowed(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	if _, err := invoke(h, "review"); sdk.KindOf(err) != sdk.Denied || !strings.Contains(err.Error(), "skill allow review") {
		t.Fatalf("a skill that nobody allowed: %v", err)
	}
	w.allow(t, h, "review")
	eventually(t, "the policy is reloaded", func() bool { _, err := invoke(h, "review"); return err == nil })
	if !strings.Contains(w.log.String(), "policy reloaded") {
		t.Errorf("the operator is told %q", w.log)
	}
	w.write(t, "policy.toml", "[skilz]\n")
	eventually(t, "the broken policy is noticed", func() bool { return strings.Contains(w.log.String(), "NOT changed") })
	if _, err := invoke(h, "review"); err != nil {
		t.Errorf("a broken policy changed what is allowed: %v", err)
	}
	if err := os.Remove(filepath.Join(w.home, "policy.toml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing policy is noticed", func() bool { return strings.Contains(w.log.String(), "is gone") })
	if _, err := invoke(h, "review"); err != nil {
		t.Errorf("policy_vanished: what was allowed changed: %v", err)
	}
	w.write(t, "policy.toml", "")
	eventually(t, "an empty policy takes the rules back", func() bool { _, err := invoke(h, "review"); return sdk.KindOf(err) == sdk.Denied })
}

// TestReload checks that skills come, change and go while the host runs, and
// that a changed one is refused until it is allowed again.
func TestReload(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	w.allow(t, h, "review")
	h.Start()
	eventually(t, "allowed", func() bool { _, err := invoke(h, "review"); return err == nil })

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed := make(chan conversation.Change, 64)
	go func() {
		for k := range h.Watch(ctx, h.Scope()) {
			changed <- k
		}
	}()
	time.Sleep(20 * time.Millisecond) // let the watcher begin
	w.write(t, "skills/review/SKILL.md", "---\nname: review\ndescription: How to review.\n---\nLook away.")
	eventually(t, "the changed skill is refused", func() bool {
		_, err := invoke(h, "review")
		return sdk.KindOf(err) == sdk.Denied && strings.Contains(err.Error(), "changed")
	})
	select {
	case k := <-changed:
		if k.Kind != conversation.Tools {
			t.Errorf("announced %q", k)
		}
	case <-time.After(30 * time.Second):
		t.Error("the change was not announced")
	}
	w.write(t, "skills/broken/skill.toml", "nam = 1")
	eventually(t, "the broken skill is reported", func() bool { return strings.Contains(w.log.String(), "broken/skill.toml") })
	if err := os.RemoveAll(filepath.Join(w.home, "skills", "review")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the removed skill is gone", func() bool { _, err := invoke(h, "review"); return sdk.KindOf(err) == sdk.NotFound })
}

func TestList(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	var names []string
	for cursor := ""; ; {
		p, err := h.List(t.Context(), h.Scope(), conversation.Tools, cursor, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range p.Items {
			var tool struct{ Name, Description string }
			if err := json.Unmarshal(item, &tool); err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
			if strings.Contains(tool.Description, "review") && tool.Name == "InvokeSkill" && strings.Contains(tool.Description, "How to review") {
				t.Error("a skill that nobody allowed is named to clients")
			}
		}
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	entries := h.Catalog.Entries()
	if len(names) != len(entries) || !slices.IsSorted(names) || !slices.Contains(names, "InvokeSkill") {
		t.Errorf("listed %q of %d entries", names, len(entries))
	}
	if _, err := h.List(t.Context(), h.Scope(), conversation.Tools, "not a cursor!", 1); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("a foreign cursor gives %v", err)
	}
	before, _ := h.List(t.Context(), h.Scope(), conversation.Tools, "", 100)
	w.allow(t, h, "review")
	eventually(t, "the description names the allowed skill", func() bool {
		p, err := h.List(t.Context(), h.Scope(), conversation.Tools, "", 100)
		return err == nil && p.Version != before.Version && strings.Contains(items(p), "How to review")
	})
	w.write(t, "policy.toml", "[callers.\""+h.Scope().Caller+"\"]\ntools.deny = [\"InvokeSkill\"]\n")
	eventually(t, "a tool that may not be called is not listed", func() bool {
		p, err := h.List(t.Context(), h.Scope(), conversation.Tools, "", 100)
		return err == nil && !strings.Contains(items(p), `"name":"InvokeSkill"`)
	})
}

// items are those of a page as one text.
func items(p conversation.Page) string {
	var b strings.Builder
	for _, item := range p.Items {
		b.Write(item)
	}
	return b.String()
}

// TestShipped checks that the shipped policy holds ReadImage to the workspace
// until the operator says otherwise about it.
func TestShipped(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	if len(h.Catalog.Of("read-image")) == 0 {
		t.Skip("LEFT OUT: the built-in modules are not in this build; run go run ./skills/build first")
	}
	roots := func() string {
		layers, err := h.Dispatcher.Layers(h.Catalog.Of("read-image")[0], h.Scope())
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, r := range capability.NewGrant(layers, nil).Roots() {
			b.WriteString(r.Path + " ")
		}
		return b.String()
	}
	work, err := filepath.EvalSymlinks(w.work)
	if err != nil {
		t.Fatal(err)
	}
	if got := roots(); got != work+" " {
		t.Errorf("shipped: %q", got)
	}
	w.write(t, "policy.toml", "[defaults.capabilities]\nfilesystem = [\"read:/etc\", \"read:${workspace}\"]\n")
	eventually(t, "defaults only narrow", func() bool { return roots() == work+" " })
	w.write(t, "policy.toml", "[skills.read-image.capabilities]\nfilesystem = [\"read:/etc\"]\n")
	eventually(t, "the operator's list replaces the shipped one", func() bool { return roots() == "/etc " })
}

// TestFolderState checks that a skill that is run from a folder does not get at
// the state of an installed one of its name.
func TestFolderState(t *testing.T) {
	w := newWorld(t)
	c, err := config.Load(config.Flags{Workspace: w.work}, func(name string) (string, bool) { return w.home, name == "SKILL_HOME" })
	c.Found = nil // skills of whoever runs the tests
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "elsewhere/SKILL.md", "---\nname: review\ndescription: Another one.\n---\nx")
	h, err := Open(c, Options{Folder: filepath.Join(w.home, "elsewhere"), Log: w.log})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s, err := h.Catalog.Skill("review")
	if err != nil {
		t.Fatal(err)
	}
	if s.Description != "Another one." || h.owner(s) == "review" || h.owner(h.builtin[0]) != h.builtin[0].Name {
		t.Errorf("folder_steals_state: %q owns the state of %q", s.Home.Dir, h.owner(s))
	}
}

// TestPolicyInWorkspace checks that tools cannot get at a policy that is kept in
// the workspace, not even at the file that replaces it.
func TestPolicyInWorkspace(t *testing.T) {
	w := newWorld(t)
	getenv := func(name string) (string, bool) { return w.home, name == "SKILL_HOME" }
	for file, ok := range map[string]bool{"policy.toml": false, "conf/policy.toml": true} {
		file = filepath.Join(w.work, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Flags{Workspace: w.work, Policy: file}, getenv)
		if err != nil {
			t.Fatal(err)
		}
		h, err := Open(c, Options{Log: w.log})
		if !ok {
			if sdk.KindOf(err) != sdk.Denied {
				t.Errorf("policy_in_workspace: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		layer, err := h.session.Layer(h.Scope())
		if err != nil {
			t.Fatal(err)
		}
		layer.Closed, layer.Allow = true, capability.Set{{Kind: capability.Filesystem, Verb: capability.Write, Pattern: "/"}}
		for _, name := range []string{"policy.toml", "policy.toml.123.tmp", "policy.toml.lock", "new"} {
			a := capability.Access{Kind: capability.Filesystem, Verb: capability.Write, Target: h.Scope().Workspace + "/conf/" + name}
			if err := capability.NewGrant([]capability.Layer{layer}, nil).Check(a); err == nil {
				t.Errorf("policy_in_workspace: %s can be written", name)
			}
		}
	}
}

// TestTmp checks that private directories are swept after a host that died, and
// that those of one that lives are left alone.
func TestTmp(t *testing.T) {
	w := newWorld(t)
	one, two := w.open(t), w.open(t)
	dir, err := one.tmp()
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "state/tmp/0123456789abcdef/call-1/left", "by a host that was killed")
	two.sweep()
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the living host's directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.home, "state", "tmp", "0123456789abcdef")); !os.IsNotExist(err) {
		t.Errorf("tmp_left_behind: %v", err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a closed host left %s: %v", dir, err)
	}
}

// TestNoFilesBehind checks that listing tools leaves neither a log nor a
// database behind.
func TestNoFilesBehind(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	if _, err := h.List(t.Context(), h.Scope(), conversation.Tools, "", 100); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"audit", "state/tmp"} {
		if entries, err := os.ReadDir(filepath.Join(w.home, dir)); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v, %v", dir, entries, err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.home, "state", "state.db")); !os.IsNotExist(err) {
		t.Errorf("the store was opened: %v", err)
	}
}
