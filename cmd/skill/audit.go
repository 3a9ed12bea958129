package main

import (
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"

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
	x.StringVar(&typ, "type", "", "boot, start, refuse, access, end, policy or close")
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
			fmt.Fprintf(w, "unreadable: %v\n", err)
		case g.json:
			if err := printLine(w, r); err != nil {
				return err
			}
		default:
			fmt.Fprintln(w, line(r))
		}
	}
	if bad {
		return errShown
	}
	return nil
}

// line is one record for a person.
func line(r audit.Record) string {
	s := fmt.Sprintf("%s %-6s %s", r.Time.Local().Format("2006-01-02 15:04:05.000"), r.Type, r.Call)
	switch r.Type {
	case audit.TypeBoot, audit.TypeClose, audit.TypePolicy:
		s += r.Boot + " " + r.Note
	case audit.TypeStart:
		s += fmt.Sprintf(" %s (%s) for %s", r.Tool, r.Skill, r.Caller)
		if r.Params != nil {
			s += fmt.Sprintf(" %v", r.Params.Shape)
		}
	case audit.TypeRefuse:
		s += fmt.Sprintf(" %s for %s", r.Tool, r.Caller)
	case audit.TypeAccess:
		s += fmt.Sprintf(" %s %s %s", r.Decision, r.Access, r.Target)
		if r.Count > 1 {
			s += fmt.Sprintf(" (%d times)", r.Count)
		}
	case audit.TypeEnd:
		s += fmt.Sprintf(" %s %v, %d bytes", r.Tool, r.Duration.Round(time.Microsecond), r.Bytes)
	}
	if r.Kind != "" {
		s += " " + string(r.Kind)
	}
	if r.Error != "" {
		s += ": " + r.Error
	}
	return s
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
				err = printJSON(w, rep)
			} else {
				for _, p := range rep.Problems {
					fmt.Fprintf(w, "%s: %s:%d: %s\n", p.Class, p.File, p.Line, p.What)
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
