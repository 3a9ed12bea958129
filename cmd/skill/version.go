package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
)

// version is set by the build.
var version = "devel"

func versionCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if g.json {
				return view.JSON(cmd.OutOrStdout(), map[string]string{"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "skill %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
