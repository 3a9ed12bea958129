package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/dispatch"
	"github.com/skillhost/skill/sdk"
)

func explainCommand(g *globals) *cobra.Command {
	var try []string
	var task string
	c := &cobra.Command{
		Use:   "explain TOOL [JSON|@FILE|-]",
		Short: "Show the layers of a call's grant and the verdict; nothing is run",
		Long: `Show what a call would be allowed: which layers speak of what, and where each is
written. What skills have laid over a session lies there as well: over that of
--task, or in a client that is served. With --try the grant is asked about one access, such as
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
			plan, verdict, err := plan(h, task, args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			tries, err := tried(plan.Layers, verdict, try)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if g.json {
				return errors.Join(view.JSON(out, view.GrantJSON(args[0], plan.Layers, verdict, tries)), shown(verdict))
			}
			if plan.Entry != nil {
				fmt.Fprintln(out, view.Line(fmt.Sprintf("%s of %s@%s (%s, %s)", plan.Entry.Name, plan.Entry.Skill.Name, plan.Entry.Skill.Version, plan.Entry.Skill.Runtime, plan.Entry.Skill.Home.Digest)))
			}
			if plan.Level != "" {
				fmt.Fprintln(out, "confined at least at level", plan.Level)
			}
			view.Layers(out, plan.Layers)
			view.Tries(out, tries)
			if verdict != nil {
				fmt.Fprintln(out, "verdict: the call is refused")
				return verdict
			}
			fmt.Fprintln(out, "verdict: the call may start; each access is asked of all these layers")
			return nil
		},
	}
	c.Flags().StringArrayVar(&try, "try", nil, `an access to ask about, "KIND.VERB TARGET"; may be repeated`)
	taskFlag(c, &task)
	return c
}

// plan decides the call that args mean. Without arguments for the tool only
// their check is left out.
func plan(h *host.Host, task string, args []string, stdin io.Reader) (plan dispatch.Plan, verdict, err error) {
	call := sdk.Call{Tool: args[0]}
	if call.Scope, err = scopeOf(h, task); err != nil {
		return plan, nil, err
	}
	if len(args) > 1 {
		if call.Args, err = readArgs(args[1], stdin); err != nil {
			return plan, nil, err
		}
	}
	plan, verdict = h.Dispatcher.Plan(call)
	if len(args) > 1 || sdk.KindOf(verdict) != sdk.Invalid {
		return plan, verdict, nil
	}
	if plan.Entry == nil { // InvokeSkill, which has not been told what to invoke
		plan.Entry = plan.Via
	}
	if plan.Entry != nil {
		plan.Layers, verdict = h.Dispatcher.Layers(plan.Entry, call.Scope)
	}
	return plan, verdict, nil
}

// tried asks a grant about accesses. A call that is refused touches nothing, and
// its layers may not be complete.
func tried(layers []capability.Layer, verdict error, accesses []string) (tries []view.Try, err error) {
	for _, access := range accesses {
		a, err := view.ParseAccess(access)
		if err != nil {
			return nil, err
		}
		why := verdict
		if why == nil {
			why = capability.NewGrant(layers, nil).Check(a)
		}
		tries = append(tries, view.Try{Access: access, Err: why})
	}
	return tries, nil
}

// shown turns an error that the output already holds into an exit status.
func shown(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w%w", errShown, err)
}
