package manifests_test

import (
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/manifests"
)

// TestShellAsShipped: what the shell tools may touch until the operator says
// something else, wherever the workspace and the home are.
func TestShellAsShipped(t *testing.T) {
	text, err := manifests.FS.ReadFile("shell/skill.toml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := manifest.Read("skill.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Read("shipped.toml", manifests.Shipped)
	if err != nil {
		t.Fatal(err)
	}
	d := p.Authorize(policy.Request{Caller: "local:bob", Skill: "shell", Builtin: true, Tool: "Bash", Needs: s.Needs})
	if !d.Allowed || len(d.Layers) != 1 {
		t.Fatalf("%+v", d)
	}
	for _, v := range []capability.Vars{
		{Home: "/home/bob", Workspace: "/home/bob/work"},
		{Home: "/root", Workspace: "/root/work"},
		{Home: "/home/bob", Workspace: "/root/work"},
		{Home: "/home/bob", Workspace: "/home/bob"},
	} {
		var layers []capability.Layer
		for _, l := range append([]capability.Layer{s.Needs}, d.Layers...) {
			l, err := l.Bind(v, func(p string) (string, error) { return p, nil })
			if err != nil {
				t.Fatal(err)
			}
			layers = append(layers, l)
		}
		g := capability.NewGrant(layers, nil)
		file := func(verb capability.Verb, path string) bool {
			return g.Allows(capability.Access{Kind: capability.Filesystem, Verb: verb, Target: path})
		}
		for _, path := range []string{"/usr/bin/git", "/etc/passwd", v.Home + "/notes", v.Workspace + "/.git/hooks/pre-commit", v.Home + "/.config/git/config", "/root/other"} {
			if !file(capability.Read, path) {
				t.Errorf("%+v: %s cannot be read", v, path)
			}
		}
		for _, path := range []string{v.Workspace + "/main.go", v.Workspace + "/.git/objects/x", v.Workspace + "/.github/x", "${tmp}/x"} {
			if !file(capability.Write, path) {
				t.Errorf("%+v: %s cannot be written", v, path)
			}
		}
		for _, path := range []string{v.Home + "/.ssh/id_ed25519", v.Home + "/.aws", v.Home + "/.config/gh/hosts.yml", v.Home + "/.bash_history", v.Home + "/.mozilla/firefox",
			"/root/.ssh/id_rsa", "/etc/shadow", "/etc/ssh/ssh_host_ed25519_key", "/etc/sudoers.d/bob"} {
			if file(capability.Read, path) {
				t.Errorf("%+v: %s can be read", v, path)
			}
		}
		for _, path := range []string{v.Workspace + "/.git/hooks/pre-commit", v.Workspace + "/.git/config", v.Workspace + "/.vscode/tasks.json", v.Workspace + "/.mcp.json", v.Workspace + "/.envrc", "/etc/passwd", "/usr/bin/x"} {
			if file(capability.Write, path) {
				t.Errorf("%+v: %s can be written", v, path)
			}
		}
		if !g.Allows(capability.Access{Kind: capability.Exec, Verb: capability.Run, Target: "/usr/bin/git"}) {
			t.Error("git cannot be run")
		}
		n := &capability.Net{Scheme: "https", Host: "github.com", Port: 443}
		if g.Allows(capability.Access{Kind: capability.Network, Verb: capability.Connect, Target: n.String(), Net: n}) {
			t.Error("the network is open")
		}
	}
}
