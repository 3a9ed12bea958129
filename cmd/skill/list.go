package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host"
)

func listCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the skills and tools, and which of them may be called",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			rows := listRows(h)
			if g.json {
				return view.JSON(cmd.OutOrStdout(), rows)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "TOOL\tSKILL\tRUNTIME\tSTATE\tDESCRIPTION")
			for _, r := range rows {
				fmt.Fprintf(w, "%s\t%s@%s\t%s\t%s\t%s\n", r.Tool, r.Skill, r.Version, r.Runtime, r.State, view.Short(r.Description, 70))
			}
			return w.Flush()
		},
	}
}

// A listRow is one line of skill list.
type listRow struct {
	Tool        string `json:"tool"`
	Skill       string `json:"skill"`
	Version     string `json:"version"`
	Runtime     string `json:"runtime"`
	State       string `json:"state"` // "built in", "allowed" or "refused"
	Description string `json:"description"`
	Digest      string `json:"digest"`
}

func listRows(h *host.Host) []listRow {
	rows := []listRow{}
	scope := h.Scope()
	entries := h.Catalog.Entries()
	for _, e := range append(entries[:len(entries):len(entries)], h.Catalog.Instructions()...) {
		s := e.Skill
		r := listRow{e.Name, s.Name, s.Version, s.Runtime, "allowed", e.Tool.Description, s.Home.Digest}
		switch {
		case !h.Dispatcher.Visible(e, scope):
			r.State = "refused"
		case s.Home.Builtin:
			r.State = "built in"
		}
		rows = append(rows, r)
	}
	return rows
}
