package host

import (
	"fmt"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// whoAsksClients says which skills may ask the client itself for something, its
// model for answers above all, when the local user calls their tools.
func (h *Host) whoAsksClients() string {
	var all []string
	for _, s := range h.Catalog.Skills() {
		if may := h.asksClients(s); may != nil {
			all = append(all, fmt.Sprintf("%s (%s)", s.Name, strings.Join(may, ", ")))
		}
	}
	if all == nil {
		return "no skill may ask the client's model, or for its roots"
	}
	return "may be asked by " + strings.Join(all, ", ")
}

// asksClients is what some tool of s may ask of the client.
func (h *Host) asksClients(s *manifest.Skill) (may []string) {
	for _, kind := range []sdk.QuestionKind{sdk.QuestionSampling, sdk.QuestionRoots} {
		a := capability.Access{Kind: capability.Client, Verb: capability.Ask, Target: string(kind)}
		if !s.Needs.Allow.Covers(a) {
			continue
		}
		for _, e := range h.Catalog.Of(s.Name) {
			layers, err := h.Dispatcher.Layers(e, h.Scope())
			if err == nil && capability.NewGrant(layers, nil).Allows(a) { // an error: it may not be called
				may = append(may, string(kind))
				break
			}
		}
	}
	return may
}
