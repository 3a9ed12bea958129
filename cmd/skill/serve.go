package main

import (
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/host/mcp"
	"github.com/skillhost/skill/host/mcp/conversation"
)

// instructions tell a client's model what this server is.
const instructions = `Every tool here runs in a sandbox. A call that is denied says which permission is missing and who can grant it; ask the user rather than trying another way.`

func serveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools over MCP on standard input and output",
		Long: `Serve the tools to an MCP client on standard input and output, in every revision
of the protocol from 2024-11-05 to 2026-07-28. Skills and policy are reloaded
when their files change. Messages for the operator go to standard error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Calls are short and make little garbage each; collecting less
			// often halves what a call costs, for some megabytes.
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(400)
			}
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			h.Start()
			return mcp.Serve(cmd.Context(), h, cmd.InOrStdin(), os.Stdout, mcp.Options{
				Options: conversation.Options{Name: "skill", Version: version, Instructions: instructions,
					Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))},
				Scope: h.Scope(),
			})
		},
	}
}
