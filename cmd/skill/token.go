package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host/mcp/bearer"
)

func tokenCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "token NAME [RIGHT…]",
		Short: "Make a token for a caller who comes over HTTP",
		Long: `Make a token for a caller who comes over HTTP, and print it, once, with what has to
be put into config.toml: a hash, from which nobody can make the token. The caller
is token:NAME to the policy, and gets what the policy gives it or one of its rights.`,
		Example: "  skill token ci tools.read",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, hash := bearer.NewToken()
			t := bearer.Token{Name: args[0], Hash: hash, Rights: args[1:]}
			if err := t.Check(); err != nil {
				return err
			}
			if g.json {
				return view.JSON(cmd.OutOrStdout(), map[string]any{"token": token, "name": t.Name, "hash": hash, "rights": t.Rights})
			}
			var rights []string
			for _, r := range t.Rights {
				rights = append(rights, fmt.Sprintf("%q", r))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n\nThe caller sends it as \"Authorization: Bearer …\". It is not shown again. Put into config.toml:\n\n[[http.tokens]]\nname = %q\nhash = %q\nrights = [%s]\n",
				token, t.Name, hash, strings.Join(rights, ", "))
			return nil
		},
	}
}
