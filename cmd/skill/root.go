package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/sdk"
)

func root() *cobra.Command {
	g := new(globals)
	c := &cobra.Command{
		Use:   "skill",
		Short: "A host for tools that AI agents call: every call in a cage, allowed by you, on record",
		Long: `skill is an MCP server whose every tool is foreign code in a cage. What a tool may
touch is written in its manifest, narrowed by your policy and by the workspace,
and checked at each call. Everything is recorded.

Put "skill serve --workspace DIR" into your MCP client's configuration, or try a
tool with "skill call".`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := "see skill --help"
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "did you mean " + strings.Join(near, " or ")
			}
			return &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no command %q", args[0]), Hint: hint}
		},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,

		SuggestionsMinimumDistance: 2,
	}
	c.SetOut(view.Visible(os.Stdout))
	c.SetErr(view.Visible(os.Stderr))
	f := c.PersistentFlags()
	f.BoolVar(&g.json, "json", false, "print JSON")
	g.flags(f)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &sdk.Error{Kind: sdk.Invalid, What: err.Error(), Hint: "see --help"}
	})
	c.AddCommand(serveCommand(g), callCommand(g), answerCommand(g), listCommand(g), showCommand(g), explainCommand(g), allowCommand(g),
		secretCommand(g), auditCommand(g), doctorCommand(g), buildCommand(g), tokenCommand(g), versionCommand(g), pluginCommand())
	explainUsage(c)
	return c
}

// explainUsage gives the errors about arguments of all commands below c a kind
// and the usage.
func explainUsage(c *cobra.Command) {
	for _, sub := range c.Commands() {
		explainUsage(sub)
		usage := sub.Args
		if usage == nil {
			continue
		}
		sub.Args = func(cmd *cobra.Command, args []string) error {
			if err := usage(cmd, args); err != nil {
				return &sdk.Error{Kind: sdk.Invalid, What: err.Error(), Hint: "usage: " + strings.TrimSpace(cmd.UseLine())}
			}
			return nil
		}
	}
}
