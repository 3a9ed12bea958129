package main

import (
	"github.com/spf13/cobra"

	"github.com/skillhost/skill/plugins/shell"
	readdocs "github.com/skillhost/skill/plugins/web"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/plugin"
)

// builtins are the plugins inside of this binary, by the source that their
// manifests name.
var builtins = map[string]func(){
	"shell": shell.Tools,
	"web":   readdocs.Tools,
}

// pluginCommand is how the host runs them: as anybody's plugin, in a cage.
func pluginCommand() *cobra.Command {
	return &cobra.Command{
		Use: "plugin NAME", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "serve the tools of a built-in plugin to the host that started it",
		RunE: func(_ *cobra.Command, args []string) error {
			tools, ok := builtins[args[0]]
			if !ok {
				return &sdk.Error{Kind: sdk.NotFound, What: "no built-in plugin " + args[0]}
			}
			tools()
			plugin.Serve()
			return nil
		},
	}
}
