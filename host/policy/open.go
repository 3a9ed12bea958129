package policy

import (
	"slices"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/tomlfile"
)

// Open returns data with entries added to the list of hosts in
// [skills.NAME.capabilities], which are asked for in the words of a manifest's
// network. Of what is as good as everything, the word is added to the skill's
// dangerous. Everything else stays byte for byte.
//
// Without entries the list is emptied: it names nobody then, whatever it said.
func Open(data []byte, name string, entries ...string) ([]byte, error) {
	var now fileDoc
	if _, err := tomlfile.Decode("policy.toml", data, &now); err != nil {
		return nil, err
	}
	s := now.Skills[name]
	hosts, dangerous := []string{}, s.Dangerous
	if s.Capabilities != nil && len(entries) > 0 {
		hosts = slices.Clone(s.Capabilities.Network)
	}
	for _, e := range entries {
		c, err := capability.Parse(capability.Network, e, capability.Pos{})
		if err != nil {
			return nil, err
		}
		if e = c.Entry(); !slices.Contains(hosts, e) {
			hosts = append(hosts, e)
		}
		if w := c.Danger(); w != "" && !slices.Contains(dangerous, w) && !slices.Contains(now.Dangerous.Allow, w) {
			dangerous = append(slices.Clone(dangerous), w)
		}
	}
	if len(dangerous) > len(s.Dangerous) {
		var err error
		data, err = edit(data, []string{"skills", name}, []setting{{"dangerous", array(dangerous)}}, func(f *fileDoc) {
			s := f.Skills[name]
			s.Dangerous = dangerous
			f.Skills = with(f.Skills, name, s)
		})
		if err != nil {
			return nil, err
		}
	}
	return edit(data, []string{"skills", name, "capabilities"}, []setting{{"network", array(hosts)}}, func(f *fileDoc) {
		s := f.Skills[name]
		var c grantDoc
		if s.Capabilities != nil {
			c = *s.Capabilities
		}
		c.Network = hosts
		s.Capabilities = &c
		f.Skills = with(f.Skills, name, s)
	})
}
