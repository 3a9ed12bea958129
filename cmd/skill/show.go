package main

import (
	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
)

func showCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:               "show SKILL|TOOL",
		Short:             "Show what a skill is, offers and asks for",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.completeSkills,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			s, err := h.Catalog.Skill(args[0])
			if err != nil {
				e, lookup := h.Catalog.Lookup(args[0])
				if lookup != nil {
					return lookup
				}
				s = e.Skill
			}
			if g.json {
				return view.JSON(cmd.OutOrStdout(), view.SkillJSON(s))
			}
			view.Skill(cmd.OutOrStdout(), s)
			return nil
		},
	}
}
