package main

import (
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/host/config"
	"github.com/skillhost/skill/host/mcp"
	"github.com/skillhost/skill/host/mcp/conversation"
)

// instructions tell a client's model what this server is.
const instructions = `Every tool here runs in a sandbox. A call that is denied says which permission is missing and who can grant it; ask the user rather than trying another way.`

func serveCommand(g *globals) *cobra.Command {
	f := new(httpFlags)
	c := &cobra.Command{
		Use:   "serve [--http [ADDR]]",
		Short: "Serve the tools over MCP, on standard input and output or over HTTP",
		Long: `Serve the tools to an MCP client on standard input and output, or to several over
HTTP, in every revision of the protocol from 2024-11-05 to 2026-07-28. Skills and
policy are reloaded when their files change. Messages for the operator go to
standard error.

Over HTTP the server is for this machine only, unless the settings say who may
come in from elsewhere (docs/http.md, docs/http-auth.md).`,
		Args: f.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Calls are short and make little garbage each; collecting less
			// often halves what a call costs, for some megabytes.
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(400)
			}
			var settings config.Config
			if f.addr != "" {
				var err error
				if settings, err = f.settings(cmd, g, args); err != nil {
					return err
				}
			}
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			h.Start()
			o := conversation.Options{Name: "skill", Version: version, Instructions: instructions, Tasks: h.Errands(),
				Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))}
			if f.addr != "" {
				return serveHTTP(cmd, h, &settings.HTTP, f, conversation.NewRoom(h, o), o.Logger)
			}
			return mcp.Serve(cmd.Context(), h, cmd.InOrStdin(), os.Stdout, mcp.Options{Options: o, Scope: h.Scope()})
		},
	}
	f.add(c)
	return c
}
