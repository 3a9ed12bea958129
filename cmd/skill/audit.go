package main

import (
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/sdk"
)

func auditCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Read and verify the record of every call",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(auditTail(g), auditQuery(g), auditVerify(g))
	return c
}

func auditTail(g *globals) *cobra.Command {
	var n int
	var follow bool
	c := &cobra.Command{
		Use:   "tail",
		Short: "Show the last records, of all hosts of this user",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, err := g.config()
			if err != nil {
				return err
			}
			return g.records(cmd.OutOrStdout(), audit.Tail(cmd.Context(), conf.Paths.Audit, n, follow))
		},
	}
	c.Flags().IntVarP(&n, "lines", "n", 20, "how many records")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with records as they are written")
	return c
}

func auditQuery(g *globals) *cobra.Command {
	var f audit.Filter
	var since, until, kind, typ string
	c := &cobra.Command{
		Use:     "query",
		Short:   "Find records",
		Example: `  skill audit query --since 24h --decision deny --json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, err := g.config()
			if err != nil {
				return err
			}
			if f.Since, err = moment(since); err != nil {
				return err
			}
			if f.Until, err = moment(until); err != nil {
				return err
			}
			f.Kind, f.Type = sdk.Kind(kind), audit.Type(typ)
			return g.records(cmd.OutOrStdout(), audit.Query(conf.Paths.Audit, f))
		},
	}
	x := c.Flags()
	x.StringVar(&since, "since", "", `from this time on: "2026-11-21T10:00:00Z", or how long ago: "24h"`)
	x.StringVar(&until, "until", "", "before this time")
	x.StringVar(&typ, "type", "", "boot, start, refuse, access, end, answer, policy or close")
	x.StringVar(&f.Tool, "tool", "", "the tool")
	x.StringVar(&f.Skill, "skill", "", "the skill")
	x.StringVar(&f.Caller, "caller", "", "the caller")
	x.StringVar(&f.Call, "call", "", "the call's id")
	x.StringVar(&f.Decision, "decision", "", "allow or deny")
	x.StringVar(&kind, "kind", "", "how it ended: invalid, not_found, denied, limit, guest, unavailable, canceled or internal")
	x.IntVar(&f.Limit, "limit", 0, "at most so many; 0 is all")
	return c
}

// moment reads a time, or how long ago it was.
func moment(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("time %q", s), Hint: `want "2026-11-21T10:00:00Z" or "24h"`}
	}
	return t, nil
}

// records prints records. A line that cannot be read is reported among them.
func (g *globals) records(w io.Writer, all iter.Seq2[audit.Record, error]) error {
	bad := false
	for r, err := range all {
		switch {
		case err != nil:
			bad = true
			if !g.json {
				fmt.Fprintln(w, view.Line(fmt.Sprintf("unreadable: %v", err)))
			} else if err := view.JSONLine(w, view.NewError(err)); err != nil {
				return err
			}
		case g.json:
			if err := view.JSONLine(w, r); err != nil {
				return err
			}
		default:
			view.Record(w, r)
		}
	}
	if bad {
		return errShown
	}
	return nil
}

// prune keeps the record to its bounds, as a host that serves does by the hour.
// Looking costs one read of the directory.
func (g *globals) prune(cmd *cobra.Command) {
	conf, err := g.config()
	if err != nil {
		return // the command has said so
	}
	files, err := os.ReadDir(conf.Paths.Audit)
	var total int64
	old := false
	for _, f := range files {
		if st, err := f.Info(); err == nil {
			total += st.Size()
			old = old || conf.Audit.MaxAge > 0 && time.Since(st.ModTime()) > conf.Audit.MaxAge
		}
	}
	if old || conf.Audit.MaxSize > 0 && total > conf.Audit.MaxSize {
		_, err = audit.Retain(conf.Paths.Audit, conf.Audit.MaxAge, conf.Audit.MaxSize, time.Now())
	}
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "skill:", err)
	}
}

func auditVerify(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check that no record was changed, added or removed",
		Long: `Check the hash chain of every file, and that no file is missing. Cut-off ends of
files whose host was killed are warnings. Someone who can write to the files as
you can replace all of them: keep a copy of the last line elsewhere to notice.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, err := g.config()
			if err != nil {
				return err
			}
			rep, err := audit.Verify(conf.Paths.Audit)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if g.json {
				err = view.JSON(w, rep)
			} else {
				for _, p := range rep.Problems {
					fmt.Fprintln(w, view.Line(fmt.Sprintf("%s: %s:%d: %s", p.Class, p.File, p.Line, p.What)))
				}
				verdict := "intact"
				if !rep.Intact() {
					verdict = "NOT INTACT"
				}
				fmt.Fprintf(w, "%s: %d records in %d files; %d calls, %d refused, %d running, %d interrupted\n",
					verdict, rep.Records, len(rep.Files), rep.Calls, rep.Refused, rep.Running, rep.Interrupted)
			}
			if err == nil && !rep.Intact() {
				return errShown
			}
			return err
		},
	}
}
