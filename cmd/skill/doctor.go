package main

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/config"
)

func doctorCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Show the settings, where they come from, and what this machine can enforce",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			d := h.Diagnose(cmd.Context())
			bad := slices.ContainsFunc(d.Checks, func(c host.Check) bool { return !c.OK })
			w := cmd.OutOrStdout()
			if g.json {
				if err := printJSON(w, d); err != nil || !bad {
					return err
				}
				return errShown
			}
			fmt.Fprintf(w, "skill %s on %s/%s\n\n", version, runtime.GOOS, runtime.GOARCH)
			fmt.Fprintln(w, "Settings")
			for _, s := range config.Settings() {
				fmt.Fprintf(w, "  %-18s %-30s from %s\n", s.Key, d.Settings[s.Key].Value, d.Settings[s.Key].Origin)
			}
			fmt.Fprintln(w, "\nEnforcement")
			for _, e := range d.Enforcement {
				fmt.Fprintf(w, "  %-18s %-12s %s\n", e.Runtime, e.Level, e.Why)
			}
			fmt.Fprintln(w, "\nChecks")
			for _, c := range d.Checks {
				state := "ok"
				if !c.OK {
					state = "PROBLEM"
				}
				fmt.Fprintf(w, "  %-18s %-12s %s\n", c.Name, state, c.What)
			}
			if bad {
				return errShown
			}
			return nil
		},
	}
}
