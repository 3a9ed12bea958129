package main

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

func readManifest() (manifest.Skill, error) {
	data, err := os.ReadFile(manifest.FileName)
	if err != nil {
		return manifest.Skill{}, err
	}
	return manifest.ReadBuiltin(manifest.FileName, data)
}

// TestManifest: skill.toml says of the tool what the code says.
func TestManifest(t *testing.T) {
	s := ofManifest(t)
	var tools []sdk.Tool
	for _, tool := range s.Tools {
		tools = append(tools, tool.Tool)
		if len(tool.Examples) < 5 {
			t.Errorf("tool %q has %d examples", tool.Name, len(tool.Examples))
		}
	}
	wrong, err := guesttest.Disagreements(tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// Each engine's host is named in the manifest, each key is bound to its host
// alone, and the types that the settings know are those that there are.
func TestManifestEngines(t *testing.T) {
	s := ofManifest(t)
	named := func(host string) bool {
		return slices.ContainsFunc(s.Needs.Allow, func(c capability.Capability) bool {
			return c.Kind == capability.Network && strings.HasSuffix(c.Pattern, "https://"+host)
		})
	}
	if len(builtin) != 11 {
		t.Errorf("%d engines", len(builtin))
	}
	var types []string
	for _, k := range append(builtin[:len(builtin):len(builtin)], addable...) {
		if !isBuiltin(k.name) {
			types = append(types, `"`+k.name+`"`)
		}
		if k.base == "" {
			continue
		}
		u, err := url.Parse(strings.Replace(k.base, "{language}", "*", 1))
		if err != nil || u.Scheme != "https" || !named(u.Host) {
			t.Errorf("%s: %s is not in the manifest (%v)", k.name, k.base, err)
		}
		if k.key == "" {
			continue
		}
		i := slices.IndexFunc(s.Secrets, func(x manifest.Secret) bool { return x.Name == k.key })
		if i < 0 || len(s.Secrets[i].Hosts) != 1 || !strings.HasSuffix(s.Secrets[i].Hosts[0], "https://"+u.Host) {
			t.Errorf("%s: the secret %s is not for %s alone", k.name, k.key, u.Host)
		}
	}
	if list := strings.Join(types, ","); !strings.Contains(string(s.Settings), `"enum":[`+list+`]`) {
		t.Errorf("the settings have other types than %s", list)
	}
	if !strings.Contains(string(s.Settings), `"enum":["`+strings.Join(categories, `","`)+`"]`) {
		t.Errorf("the settings have other categories than %s", categories)
	}
}
