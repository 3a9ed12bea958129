package main

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/host/ask/tty"
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
			if os.Getenv("GOGC") == "" {
				defer startCollector()()
			}
			var settings config.Config
			if f.addr != "" {
				var err error
				if settings, err = f.settings(cmd, g, args); err != nil {
					return err
				}
			}
			g.display = new(tty.Own)
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			h.Start()
			o := conversation.Options{Name: "skill", Version: version, Instructions: instructions, Tasks: h.Errands(), TaskAfter: h.Config.Tasks.After, Asker: h.Asker(), Inbox: h.Inbox(),
				Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))}
			if f.addr != "" {
				return serveHTTP(cmd, h, &settings.HTTP, f, conversation.NewRoom(h.Front(), o), o.Logger)
			}
			if h.Config.Questions.Page {
				page := &answerPage{ctx: cmd.Context(), room: h.Questions(), log: o.Logger}
				h.Questions().Offer(page.address)
			}
			return mcp.Serve(cmd.Context(), h.Front(), cmd.InOrStdin(), os.Stdout, mcp.Options{Options: o, Scope: h.Scope()})
		},
	}
	f.add(c)
	return c
}
