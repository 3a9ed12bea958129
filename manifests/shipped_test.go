package manifests_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/manifests"
)

// TestShellAsShipped: what the shell tools may touch until the operator says
// something else, wherever the workspace and the home are.
func TestShellAsShipped(t *testing.T) {
	s, err := manifest.OpenEmbedded(manifests.FS, "shell", "")
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

// TestWebSearchAsShipped: WebSearch reaches the engines that are named, as they
// are asked, and nothing else, until the operator says so; every one of them is
// in its own manifest.
func TestWebSearchAsShipped(t *testing.T) {
	text, err := os.ReadFile("../skills/websearch/skill.toml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := manifest.ReadBuiltin("skill.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Read("shipped.toml", manifests.Shipped)
	if err != nil {
		t.Fatal(err)
	}
	d := p.Authorize(policy.Request{Caller: "local:bob", Skill: "websearch", Builtin: true, Tool: "WebSearch", Needs: s.Needs})
	if !d.Allowed || len(d.Layers) != 1 {
		t.Fatalf("%+v", d)
	}
	if outside := d.Layers[0].Allow.Outside(s.Needs.Allow); len(outside) > 0 {
		t.Errorf("shipped, and not in the manifest: %v", outside)
	}
	g := capability.NewGrant(append([]capability.Layer{s.Needs}, d.Layers...), nil)
	for request, want := range map[string]bool{
		"POST html.duckduckgo.com": true, "GET www.bing.com": true, "GET de.wikipedia.org": true, "GET export.arxiv.org": true, "POST api.tavily.com": true, "GET api.mojeek.com": true,
		"POST www.bing.com": false, "GET wikipedia.org.example": false, "GET example.com": false, "DELETE api.github.com": false, "GET 127.0.0.1": false, "GET 169.254.169.254": false,
	} {
		method, host, _ := strings.Cut(request, " ")
		n := &capability.Net{Method: method, Scheme: "https", Host: host, Port: 443}
		if ip, err := netip.ParseAddr(host); err == nil {
			n.IP = ip
		}
		if got := g.Allows(capability.Access{Kind: capability.Network, Verb: capability.Connect, Target: n.String(), Net: n}); got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}
