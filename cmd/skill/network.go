package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

// openNetwork adds hosts to those that a skill may reach by the policy. What
// its manifest does not ask for it may not reach all the same.
func (g *globals) openNetwork(cmd *cobra.Command, h *host.Host, s *manifest.Skill, hosts []string) error {
	if !slices.ContainsFunc(s.Needs.Allow, func(c capability.Capability) bool { return c.Kind == capability.Network }) {
		return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("skill %q does not ask for the network", s.Name), Hint: "only its manifest can change that"}
	}
	if slices.Equal(hosts, []string{"none"}) {
		hosts = nil
	}
	err := editPolicy(cmd.Context(), h.Config.Paths.Policy, func(data []byte) ([]byte, error) { return policy.Open(data, s.Name, hosts...) })
	if err != nil {
		return err
	}
	out, file := cmd.OutOrStdout(), h.Config.Paths.Policy
	if g.json {
		return view.JSON(out, map[string]any{"skill": s.Name, "network": append([]string{}, hosts...), "policy": file})
	}
	if len(hosts) == 0 {
		fmt.Fprintf(out, "%s may reach no host by %s\n", s.Name, file)
		return nil
	}
	for _, host := range hosts {
		fmt.Fprintln(out, view.Line(fmt.Sprintf("%s may reach %s by %s", s.Name, host, file)))
	}
	return nil
}
