package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/config"
	"github.com/skillhost/skill/sdk"
)

// globals are the flags that all commands share.
type globals struct {
	json  bool
	paths config.Flags

	newPolicy   bool   // the command may make the policy file
	folder      string // of "skill call DIR TOOL"
	allowFolder bool

	display host.Display // of a command whose tools may ask; nil: it has none
}

func (g *globals) flags(f *pflag.FlagSet) {
	f.StringVar(&g.paths.Config, "config", "", "settings file instead of the user's config.toml")
	f.StringVar(&g.paths.Policy, "policy", "", "policy file instead of the user's policy.toml")
	f.StringVar(&g.paths.Workspace, "workspace", "", "the directory that tools may write to (default: the current one)")
	f.StringVar(&g.paths.EnvFile, "env-file", "", "a file with lines TOOLS=, STREAMING= and MODEL=, such as scorpiox-env.txt")
	f.StringArrayVar(&g.paths.Skills, "skills", nil, "a directory with more skills; may be repeated")
}

// config puts the settings together.
func (g *globals) config() (config.Config, error) { return config.Load(g.paths, os.LookupEnv) }

// open builds a host for the life of one command.
func (g *globals) open(cmd *cobra.Command) (*host.Host, error) {
	c, err := g.config()
	if err != nil {
		return nil, err
	}
	// An operator's restrictions must not be lost by a typing error.
	if _, err := os.Stat(c.Paths.Policy); os.IsNotExist(err) && c.Origins["policy"] != "default" && !g.newPolicy {
		return nil, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("no policy file %q", c.Paths.Policy), Hint: "named by " + c.Origins["policy"] + "; an empty file will do"}
	}
	return host.Open(c, host.Options{Version: version, Folder: g.folder, AllowFolder: g.allowFolder, Extra: extra(), Log: cmd.ErrOrStderr(), Display: g.display})
}

// completeTools completes the name of a tool.
func (g *globals) completeTools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return g.complete(cmd, func(h *host.Host) (names []string) {
		for _, r := range listRows(h) {
			names = append(names, r.Tool+"\t"+view.Short(r.Description, 60))
		}
		return names
	}, cobra.ShellCompDirectiveDefault)
}

// completeSkills completes the name of a skill.
func (g *globals) completeSkills(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return g.complete(cmd, func(h *host.Host) (names []string) {
		for _, s := range h.Catalog.Skills() {
			names = append(names, s.Name+"\t"+view.Short(s.Description, 60))
		}
		return names
	}, cobra.ShellCompDirectiveNoFileComp)
}

func (g *globals) complete(cmd *cobra.Command, names func(*host.Host) []string, d cobra.ShellCompDirective) ([]string, cobra.ShellCompDirective) {
	h, err := g.open(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer h.Close()
	return names(h), d
}
