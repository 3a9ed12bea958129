package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// tree makes directories below a new one, whose real path it returns.
func tree(t *testing.T, dirs ...string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(top, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.ToSlash(top)
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(filepath.FromSlash(to), filepath.FromSlash(at)); err != nil {
		t.Skip("no links here:", err)
	}
}

func TestNewRefuses(t *testing.T) {
	top := tree(t, "home/bob/project", "state/audit", "srv")
	link(t, top+"/home/bob", top+"/link-to-home")
	link(t, top+"/state/audit", top+"/srv/link-to-state")
	link(t, "/", top+"/link-to-root")
	if err := os.WriteFile(top+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, workspace string
		explicit        bool
		why             string // "" if it is accepted
	}{
		{"project", top + "/home/bob/project", false, ""},
		{"elsewhere", top + "/srv", false, ""},
		{"root", "/", false, "is the whole file system"},
		{"root_explicit", "/", true, ""},
		{"root_by_link", top + "/link-to-root", false, "is the whole file system"},
		{"home", top + "/home/bob", false, "is or holds your home directory"},
		{"home_explicit", top + "/home/bob", true, ""},
		{"home_by_link", top + "/link-to-home", false, "is or holds your home directory"},
		{"home_by_dotdot", top + "/home/bob/project/..", false, "is or holds your home directory"},
		{"above_home", top + "/home", false, "is or holds your home directory"},
		{"above_state", top, true, ""},
		{"state", top + "/state", true, "is inside of the host's own directory"},
		{"inside_state", top + "/state/audit", true, "is inside of the host's own directory"},
		{"state_by_link", top + "/srv/link-to-state", true, "is inside of the host's own directory"},
		{"absent", top + "/nowhere", true, "no such file"},
		{"empty", "", true, "no directory"},
		{"file", top + "/file", true, "is not a directory"},
	}
	for _, tt := range tests {
		s, err := New(Options{Workspace: tt.workspace, Explicit: tt.explicit, Home: top + "/home/bob", Private: []string{top + "/state"}})
		if tt.why == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err == nil || s != nil || !strings.Contains(err.Error(), tt.why) || sdk.KindOf(err) != sdk.Denied && sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.why)
		}
	}
}

// grant is what a tool has that asks for everything, under the session.
func grant(t *testing.T, s *Session) capability.Grant {
	t.Helper()
	scope := s.Scope("1")
	layer, err := s.Layer(scope)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := layer.Bind(capability.Vars{Workspace: scope.Workspace}, func(p string) (string, error) {
		real, err := filepath.EvalSymlinks(filepath.FromSlash(p))
		return filepath.ToSlash(real), err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := capability.Layer{Name: "manifest", Closed: true}
	for kind, entries := range map[capability.Kind][]string{capability.Filesystem: {"write:/", "write:${tmp}"}, capability.Network: {"*"}} {
		for _, e := range entries {
			c, err := capability.Parse(kind, e, capability.Pos{})
			if err != nil {
				t.Fatal(err)
			}
			all.Allow = append(all.Allow, c)
		}
	}
	return capability.NewGrant([]capability.Layer{all, bound}, nil)
}

func TestLayer(t *testing.T) {
	// The directories are below the host's own /tmp on most machines, which an
	// entry of a manifest could not name.
	top := tree(t, "work/project", "work/[state]*", "work/skills", "other")
	link(t, top+"/work", top+"/link")
	s, err := New(Options{Workspace: top + "/link", Private: []string{top + "/link/[state]*", top + "/link/later/cache"},
		ReadOnly: []string{top + "/work/skills", top + "/work/policy.toml"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Scope("7"); got.Workspace != top+"/work" || got.Session != "7" || got.Caller != Local() {
		t.Errorf("scope %+v", got)
	}
	g := grant(t, s)
	tests := []struct {
		name string
		path string
		want string // the verbs that pass
	}{
		{"workspace", top + "/work", "read write"},
		{"in_workspace", top + "/work/project/x", "read write"},
		{"unresolved_link", top + "/link/x", "read"},
		{"beside_workspace", top + "/work2/x", "read"},
		{"other", top + "/other/x", "read"},
		{"private_tmp", "${tmp}/x", "read write"},
		{"state", top + "/work/[state]*", ""},
		{"in_state", top + "/work/[state]*/state.db", ""},
		{"beside_state", top + "/work/[state]", "read write"},
		{"state_not_made_yet", top + "/work/later/cache/x", ""},
		{"skills", top + "/work/skills/hello/skill.toml", "read"},
		{"policy", top + "/work/policy.toml", "read"},
		{"policy_temporary", top + "/work/policy.toml.1.tmp", "read write"},
	}
	for _, tt := range tests {
		var got []string
		for _, v := range []capability.Verb{capability.Read, capability.Write} {
			if g.Allows(capability.Access{Kind: capability.Filesystem, Verb: v, Target: tt.path}) {
				got = append(got, string(v))
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	n := &capability.Net{Scheme: "https", Host: "example.com", Port: 443}
	if !g.Allows(capability.Access{Kind: capability.Network, Verb: capability.Connect, Net: n}) {
		t.Error("the session speaks of the network")
	}
	err = g.Check(capability.Access{Kind: capability.Filesystem, Verb: capability.Write, Target: top + "/other/x"})
	if err == nil || !strings.Contains(err.Error(), "refused by session --workspace "+top+"/work") {
		t.Errorf("the refusal does not name the session: %v", err)
	}
}

// The host's own files may be links, as dotfile managers make them, or lead
// through some. Who replaces a link decides what the host reads.
func TestLinksToOwnFiles(t *testing.T) {
	top := tree(t, "home/dotfiles/skill", "home/dotfiles/real", "home/x", "home/.local")
	if err := os.WriteFile(top+"/home/dotfiles/skill/policy.toml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link(t, "dotfiles", top+"/home/.config")
	link(t, top+"/home/x/../.chain", top+"/home/config.toml")
	link(t, "dotfiles/skill/policy.toml", top+"/home/.chain")
	link(t, "dotfiles/later.toml", top+"/home/dangling.toml")
	link(t, "../dotfiles/real", top+"/home/.local/skill")
	link(t, "loop", top+"/home/loop")
	s, err := New(Options{Workspace: top + "/home", Explicit: true, Private: []string{top + "/home/.local/skill"},
		ReadOnly: []string{top + "/home/.config/skill/policy.toml", top + "/home/config.toml", top + "/home/dangling.toml", top + "/home/loop"}})
	if err != nil {
		t.Fatal(err)
	}
	g := grant(t, s)
	for name, c := range map[string]struct{ path, want string }{
		"policy":                     {"/home/dotfiles/skill/policy.toml", "read"},
		"unlink_link_to_folder":      {"/home/.config", "read"},
		"lexical":                    {"/home/.config/skill/policy.toml", "read"},
		"unlink_link_to_file":        {"/home/config.toml", "read"},
		"unlink_link_of_chain":       {"/home/.chain", "read"},
		"make_target_of_dangling":    {"/home/dotfiles/later.toml", "read"},
		"unlink_dangling":            {"/home/dangling.toml", "read"},
		"unlink_loop":                {"/home/loop", "read"},
		"private":                    {"/home/dotfiles/real/state.db", ""},
		"unlink_link_to_private":     {"/home/.local/skill", ""},
		"beside":                     {"/home/dotfiles/skill/other.toml", "read write"},
		"folder_of_the_links_target": {"/home/dotfiles", "read write"},
		"beside_link":                {"/home/.local/share", "read write"},
	} {
		var got []string
		for _, v := range []capability.Verb{capability.Read, capability.Write} {
			if g.Allows(capability.Access{Kind: capability.Filesystem, Verb: v, Target: top + c.path}) {
				got = append(got, string(v))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestLayerOfOtherScope(t *testing.T) {
	s, err := New(Options{Workspace: tree(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", "/", s.workspace + "/x"} {
		l, err := s.Layer(sdk.Scope{Workspace: other})
		if err == nil || len(l.Allow) != 0 {
			t.Errorf("%q: %+v, %v", other, l, err)
		}
	}
}

func TestLocal(t *testing.T) {
	t.Setenv("USER", "somebody-else")
	t.Setenv("USERNAME", "somebody-else")
	name, ok := strings.CutPrefix(Local(), "local:")
	if !ok || name == "" || name == "somebody-else" || strings.ContainsAny(name, `\/`) {
		t.Errorf("%q", Local())
	}
}

func TestDeepest(t *testing.T) {
	top := tree(t, "real")
	link(t, top+"/real", top+"/link")
	for in, want := range map[string]string{
		top + "/link":       top + "/real",
		top + "/link/a/b":   top + "/real/a/b",
		top + "/real/a/../": top + "/real",
		top + "/no/a":       top + "/no/a",
	} {
		if got, err := deepest(in); err != nil || got != want {
			t.Errorf("deepest(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	if _, err := deepest(""); err == nil {
		t.Error("a private directory without a name denies nothing, silently")
	}
}
