package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

func secretCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "secret",
		Short: "Set the secrets that the host adds to requests and skills never see",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(secretSet(g), secretRemove(g), secretList(g))
	return c
}

func secretSet(g *globals) *cobra.Command {
	var hosts []string
	var env, file string
	c := &cobra.Command{
		Use:   "set NAME --host HOST [--env VAR | --file PATH]",
		Short: "Bind a secret to the hosts that it may be sent to; the value is read from standard input",
		Long: `Bind a secret. The value is read from standard input and kept in the host's store,
or, with --env or --file, stays where it is and is read at each call. The hosts
are the most that any skill can send it to; a manifest can only narrow them.`,
		Example: `  skill secret set GITHUB_TOKEN --host api.github.com < token.txt
  skill secret set GITHUB_TOKEN --host api.github.com --env GITHUB_TOKEN`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g.newPolicy = true
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			if len(hosts) == 0 {
				return &sdk.Error{Kind: sdk.Invalid, What: "no --host", Hint: "say where the secret may be sent: skill secret set " + args[0] + " --host api.example.com"}
			}
			source, value := "store", ""
			switch {
			case env != "" && file != "":
				return &sdk.Error{Kind: sdk.Invalid, What: "--env and --file exclude each other"}
			case env != "":
				source = "env:" + env
			case file != "":
				source = "file:" + file
			default:
				if value, err = readSecret(cmd.InOrStdin()); err != nil {
					return err
				}
			}
			err = editPolicy(cmd.Context(), h.Config.Paths.Policy, func(data []byte) ([]byte, error) {
				return policy.SetSecret(data, args[0], source, hosts...)
			})
			if err != nil {
				return err
			}
			if source == "store" {
				if err := h.SetSecret(cmd.Context(), args[0], value); err != nil {
					return err
				}
			}
			if g.json {
				return view.JSON(cmd.OutOrStdout(), map[string]any{"secret": args[0], "source": source, "hosts": hosts, "policy": h.Config.Paths.Policy})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is bound to %s by %s\n", args[0], strings.Join(hosts, ", "), h.Config.Paths.Policy)
			return nil
		},
	}
	f := c.Flags()
	f.StringArrayVar(&hosts, "host", nil, "a host that the secret may be sent to; may be repeated")
	f.StringVar(&env, "env", "", "read the value from this environment variable of the host at each call")
	f.StringVar(&file, "file", "", "read the value from this file at each call")
	return c
}

// readSecret reads a value, one line or more, from standard input.
func readSecret(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if err != nil {
		return "", err
	}
	value := strings.TrimRight(string(data), "\r\n")
	if value == "" {
		return "", &sdk.Error{Kind: sdk.Invalid, What: "no value on standard input", Hint: "pipe it in, or use --env or --file"}
	}
	return value, nil
}

func secretRemove(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Forget the stored value of a secret",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: g.completeSecrets,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			stored, err := h.HasSecret(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !stored {
				return &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no stored value of a secret %q", args[0]), Hint: "see skill secret list"}
			}
			if err := h.RemoveSecret(cmd.Context(), args[0]); err != nil {
				return err
			}
			if g.json {
				return view.JSON(cmd.OutOrStdout(), map[string]string{"secret": args[0], "state": "removed", "policy": h.Config.Paths.Policy})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the stored value of %s is gone; its binding in %s stays\n", args[0], h.Config.Paths.Policy)
			return nil
		},
	}
}

// completeSecrets completes the name of a secret that has a stored value.
func (g *globals) completeSecrets(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return g.complete(cmd, func(h *host.Host) (names []string) {
		for _, s := range h.Catalog.Skills() {
			for _, x := range s.Secrets {
				if stored, err := h.HasSecret(cmd.Context(), x.Name); err == nil && stored {
					names = append(names, x.Name)
				}
			}
		}
		return names
	}, cobra.ShellCompDirectiveNoFileComp)
}

func secretList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the secrets that skills ask for, and whether they are set; values are never shown",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			type row struct {
				Secret string   `json:"secret"`
				Skill  string   `json:"skill"`
				Hosts  []string `json:"hosts"`
				Bound  bool     `json:"bound"`
				Set    bool     `json:"set"`
			}
			rows := []row{}
			for _, s := range h.Catalog.Skills() {
				for _, x := range s.Secrets {
					b, bound := h.Policy().Secret(x.Name)
					set, err := h.SecretIsSet(b)
					if err != nil {
						return err
					}
					rows = append(rows, row{x.Name, s.Name, x.Hosts, bound, bound && set})
				}
			}
			if g.json {
				return view.JSON(cmd.OutOrStdout(), rows)
			}
			for _, r := range rows {
				state := "not bound: skill secret set " + r.Secret + " --host …"
				if r.Bound && !r.Set {
					state = "bound, but it has no value"
				} else if r.Set {
					state = "set"
				}
				fmt.Fprintln(cmd.OutOrStdout(), view.Line(fmt.Sprintf("%s for %s to %s: %s", r.Secret, r.Skill, strings.Join(r.Hosts, ", "), state)))
			}
			return nil
		},
	}
}
