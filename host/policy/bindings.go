package policy

import (
	"maps"
	"slices"
)

// Secrets returns every binding that the operator made, sorted by name.
func (p *Policy) Secrets() []SecretBinding {
	if p == nil {
		return nil
	}
	var all []SecretBinding
	for _, name := range slices.Sorted(maps.Keys(p.secrets)) {
		all = append(all, p.secrets[name])
	}
	return all
}

// Forbids reports whether the operator has written "allow = false" for a skill.
func (p *Policy) Forbids(skill string) bool {
	if p == nil {
		return false
	}
	s := p.skills[skill]
	return s != nil && s.said && !s.allow
}
