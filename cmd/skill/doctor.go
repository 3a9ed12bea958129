package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/config"
)

func doctorCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Show the settings, where they come from, and what this machine can enforce",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := g.diagnose(cmd)
			if g.json {
				if err := view.JSON(cmd.OutOrStdout(), d); err != nil {
					return err
				}
			} else {
				printDiagnosis(cmd.OutOrStdout(), d)
			}
			if slices.ContainsFunc(d.Checks, func(c host.Check) bool { return !c.OK }) {
				return errShown
			}
			return nil
		},
	}
}

// diagnose looks at a host, or at why there is none.
func (g *globals) diagnose(cmd *cobra.Command) host.Diagnosis {
	c, err := g.config()
	if err != nil {
		return host.DiagnoseSettings(cmd.Context(), c, err)
	}
	h, err := g.open(cmd)
	if err != nil {
		return host.DiagnoseClosed(cmd.Context(), c, err)
	}
	defer h.Close()
	return h.Diagnose(cmd.Context())
}

func printDiagnosis(w io.Writer, d host.Diagnosis) {
	row := func(indented string, args ...any) { fmt.Fprintln(w, view.Line(fmt.Sprintf(indented, args...))) }
	row("skill %s on %s/%s", version, runtime.GOOS, runtime.GOARCH)
	fmt.Fprintln(w, "\nSettings")
	for _, s := range config.Settings() {
		row("  %-18s %-30s from %s", s.Key, d.Settings[s.Key].Value, d.Settings[s.Key].Origin)
	}
	fmt.Fprintln(w, "\nEnforcement")
	for _, e := range d.Enforcement {
		row("  %-18s %-12s %s", e.Runtime, e.Level, e.Why)
	}
	fmt.Fprintln(w, "\nChecks")
	for _, c := range d.Checks {
		state := "ok"
		if !c.OK {
			state = "PROBLEM"
		}
		row("  %-18s %-12s %s", c.Name, state, c.What)
	}
}
