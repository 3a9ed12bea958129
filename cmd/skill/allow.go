package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

func allowCommand(g *globals) *cobra.Command {
	var yes, revoke bool
	var network []string
	c := &cobra.Command{
		Use:   "allow SKILL",
		Short: "Show what an installed skill asks for, and allow it",
		Long: `Show what an installed skill asks for and, after you say yes, write the line into
the policy that allows it, with the digest of its files. When any of its files
changes it is refused until you allow it again. --revoke refuses it. Built-in
skills are allowed as shipped; allowing one takes back a --revoke.

--network adds hosts to those that the skill may reach, as the network list of
a manifest names them, and leaves the rest as it is. "none" empties the list.
The whole web: --network '*' --network 'http://*'.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.completeSkills,
		RunE: func(cmd *cobra.Command, args []string) error {
			g.newPolicy = true
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			s, err := h.Catalog.Skill(args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("network") {
				if revoke {
					return &sdk.Error{Kind: sdk.Invalid, What: "--network and --revoke", Hint: "one of them"}
				}
				return g.openNetwork(cmd, h, s, network)
			}
			if revoke {
				return g.decide(cmd, h, s, "refused", func(data []byte) ([]byte, error) { return policy.Forbid(data, s.Name) })
			}
			out := cmd.OutOrStdout()
			if g.json { // the review is for the person, the outcome for the program
				out = cmd.ErrOrStderr()
			}
			review(out, s)
			if s.Home.Builtin {
				return g.allowBuiltin(cmd, h, s)
			}
			if !yes && !confirm(cmd, fmt.Sprintf("Allow %s as it is now?", s.Name)) {
				return &sdk.Error{Kind: sdk.Canceled, What: "nothing was changed"}
			}
			return g.decide(cmd, h, s, "allowed", func(data []byte) ([]byte, error) { return policy.Allow(data, s.Name, s.Home.Digest) })
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&revoke, "revoke", false, "refuse the skill instead")
	c.Flags().StringArrayVar(&network, "network", nil, "let the skill reach this `host` too; may be repeated")
	return c
}

// review shows what somebody is about to allow.
func review(w io.Writer, s *manifest.Skill) {
	view.Skill(w, s)
	if s.Home.Builtin {
		fmt.Fprintln(w, "  built in     allowed as shipped, within the shipped policy")
		return
	}
	for _, c := range s.Needs.Allow {
		if word := c.Danger(); word != "" {
			fmt.Fprintln(w, view.Line(fmt.Sprintf("  DANGEROUS    %s: it will be refused until the policy says dangerous = [%q] for it", c.Entry(), word)))
		}
		if why := c.Caution(); why != "" {
			fmt.Fprintln(w, view.Line(fmt.Sprintf("  CAUTION      %s: %s", c.Entry(), why)))
		}
	}
}

// allowBuiltin takes back what refuses a built-in skill. No digest is written:
// the next version of the host brings another one.
func (g *globals) allowBuiltin(cmd *cobra.Command, h *host.Host, s *manifest.Skill) error {
	if h.Dispatcher.VisibleSkill(s, h.Scope()) {
		return g.decided(cmd, h, s, "allowed as shipped")
	}
	return g.decide(cmd, h, s, "allowed", func(data []byte) ([]byte, error) { return policy.Allow(data, s.Name, "") })
}

// decide changes the policy about a skill.
func (g *globals) decide(cmd *cobra.Command, h *host.Host, s *manifest.Skill, state string, edit func([]byte) ([]byte, error)) error {
	if err := editPolicy(cmd.Context(), h.Config.Paths.Policy, edit); err != nil {
		return err
	}
	return g.decided(cmd, h, s, state)
}

func (g *globals) decided(cmd *cobra.Command, h *host.Host, s *manifest.Skill, state string) error {
	out, file := cmd.OutOrStdout(), h.Config.Paths.Policy
	if g.json {
		return view.JSON(out, map[string]string{"skill": s.Name, "digest": s.Home.Digest, "state": state, "policy": file})
	}
	if state == "allowed as shipped" {
		fmt.Fprintf(out, "%s is built in and %s; nothing was changed\n", s.Name, state)
		return nil
	}
	fmt.Fprintf(out, "%s is %s by %s\n", s.Name, state, file)
	return nil
}

// confirm asks on the terminal. Anything but yes is no.
func confirm(cmd *cobra.Command, question string) bool {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // no answer is no
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}
