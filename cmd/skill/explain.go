package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

func explainCommand(g *globals) *cobra.Command {
	var try []string
	c := &cobra.Command{
		Use:   "explain TOOL [JSON|@FILE|-]",
		Short: "Show the layers of a call's grant and the verdict; nothing is run",
		Long: `Show what a call would be allowed: which layers speak of what, and where each is
written. With --try the grant is asked about one access, such as
"filesystem.read /etc/passwd" or "network.connect https://example.com".`,
		Example: `  skill explain ReadImage '{"file_path": "photo.jpg"}'
  skill explain ReadImage --try "filesystem.read /etc/passwd"`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: g.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			call := sdk.Call{Tool: args[0], Scope: h.Scope("")}
			withArgs := len(args) > 1
			if withArgs {
				if call.Args, err = readArgs(args[1], cmd.InOrStdin()); err != nil {
					return err
				}
			}
			plan, verdict := h.Dispatcher.Plan(call)
			if !withArgs && plan.Entry != nil && sdk.KindOf(verdict) == sdk.Invalid { // only the arguments are missing
				plan.Layers, verdict = h.Dispatcher.Layers(plan.Entry, call.Scope)
			}
			var tries []tried
			for _, t := range try {
				a, err := parseAccess(t)
				if err != nil {
					return err
				}
				why := verdict // a call that is refused touches nothing, and its layers may not be complete
				if why == nil {
					why = capability.NewGrant(plan.Layers, nil).Check(a)
				}
				tries = append(tries, tried{t, why})
			}
			out := cmd.OutOrStdout()
			if g.json {
				return errors.Join(printJSON(out, explainJSON(args[0], plan.Layers, verdict, tries)), shown(verdict))
			}
			if plan.Entry != nil {
				fmt.Fprintf(out, "%s of %s@%s (%s, %s)\n", plan.Entry.Name, plan.Entry.Skill.Name, plan.Entry.Skill.Version, plan.Entry.Skill.Runtime, plan.Entry.Skill.Home.Digest)
			}
			printLayers(out, plan.Layers)
			for _, t := range tries {
				if t.err == nil {
					fmt.Fprintf(out, "%s: allowed\n", t.access)
				} else {
					fmt.Fprintf(out, "%s: %v\n", t.access, t.err)
				}
			}
			if verdict != nil {
				fmt.Fprintln(out, "verdict: the call is refused")
				return verdict
			}
			fmt.Fprintln(out, "verdict: the call may run")
			return nil
		},
	}
	c.Flags().StringArrayVar(&try, "try", nil, `an access to ask about, "KIND.VERB TARGET"; may be repeated`)
	return c
}

type tried struct {
	access string
	err    error
}

// shown turns an error that the output already holds into an exit status.
func shown(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w%w", errShown, err)
}

func explainJSON(tool string, layers []capability.Layer, verdict error, tries []tried) any {
	type layer struct {
		Name   string              `json:"name"`
		File   string              `json:"file,omitempty"`
		Line   int                 `json:"line,omitempty"`
		Closed bool                `json:"closed,omitempty"`
		Allow  map[string][]string `json:"allow"`
		Deny   map[string][]string `json:"deny,omitempty"`
	}
	type try struct {
		Access  string          `json:"access"`
		Allowed bool            `json:"allowed"`
		Why     json.RawMessage `json:"why,omitempty"`
	}
	out := struct {
		Tool    string  `json:"tool"`
		Allowed bool    `json:"allowed"`
		Why     string  `json:"why,omitempty"`
		Layers  []layer `json:"layers"`
		Tries   []try   `json:"tries,omitempty"`
	}{Tool: tool, Allowed: verdict == nil, Layers: []layer{}}
	if verdict != nil {
		out.Why = verdict.Error()
	}
	for _, l := range layers {
		row := layer{l.Name, l.Pos.File, l.Pos.Line, l.Closed, map[string][]string{}, nil}
		for _, k := range capability.Kinds {
			if speaksOf(l, k) && !l.Closed {
				row.Allow[string(k)] = []string{}
			}
		}
		for _, c := range l.Allow {
			row.Allow[string(c.Kind)] = append(row.Allow[string(c.Kind)], c.Entry())
		}
		for _, c := range l.Deny {
			if row.Deny == nil {
				row.Deny = map[string][]string{}
			}
			row.Deny[string(c.Kind)] = append(row.Deny[string(c.Kind)], c.Entry())
		}
		out.Layers = append(out.Layers, row)
	}
	for _, t := range tries {
		row := try{Access: t.access, Allowed: t.err == nil}
		var e *sdk.Error
		if errors.As(t.err, &e) {
			row.Why, _ = json.Marshal(e) // strings only: cannot fail
		}
		out.Tries = append(out.Tries, row)
	}
	return out
}
