package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

func allowCommand(g *globals) *cobra.Command {
	var yes, revoke bool
	c := &cobra.Command{
		Use:   "allow SKILL",
		Short: "Show what an installed skill asks for, and allow it",
		Long: `Show what an installed skill asks for and, after you say yes, write the line into
the policy that allows it, with the digest of its files. When any of its files
changes it is refused until you allow it again. --revoke refuses it.`,
		Args: cobra.ExactArgs(1),
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
			file := h.Config.Paths.Policy
			edit := func(data []byte) ([]byte, error) { return policy.Allow(data, s.Name, s.Home.Digest) }
			if revoke {
				edit = func(data []byte) ([]byte, error) { return policy.Forbid(data, s.Name) }
			} else {
				if err := printSkill(cmd.OutOrStdout(), s); err != nil {
					return err
				}
				for _, c := range s.Needs.Allow {
					if word := c.Danger(); word != "" {
						fmt.Fprintf(cmd.OutOrStdout(), "  DANGEROUS    %s: it will be refused until the policy says dangerous = [%q] for it\n", c.Entry(), word)
					}
				}
				if !yes && !confirm(cmd, fmt.Sprintf("Allow %s as it is now?", s.Name)) {
					return &sdk.Error{Kind: sdk.Canceled, What: "nothing was changed"}
				}
			}
			if err := editPolicy(file, edit); err != nil {
				return err
			}
			verb := "allowed"
			if revoke {
				verb = "refused"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is %s by %s\n", s.Name, verb, file)
			return nil
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&revoke, "revoke", false, "refuse the skill instead")
	return c
}

// confirm asks on the terminal. Anything but yes is no.
func confirm(cmd *cobra.Command, question string) bool {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // no answer is no
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

// editPolicy changes the policy file, which need not exist yet.
func editPolicy(file string, edit func([]byte) ([]byte, error)) error {
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return &sdk.Error{Kind: sdk.Unavailable, What: "the policy", Err: err}
	}
	if data, err = edit(data); err != nil {
		return err
	}
	return policy.WriteFile(file, data)
}
